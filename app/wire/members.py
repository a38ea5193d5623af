"""Input: bytes to checked members, or a refusal that names the first thing wrong.

Types are taken without coercion: `true` is not 1, `60.0` and `"60"` are not 60. An optional member that is `null`
counts as absent. An unknown name is refused and not dropped: a misspelt `fingerprint` that is silently ignored
would be a double charge. Faults are looked for in one order (names, then members as declared, then what ties
members together) and only the first is told, so that the same body always gets the same answer. A message says
the rule and never the value, which may be a secret.

A route's members are a subclass of `Members`; its types come from `app.wire.kinds`. The rule in a message is read
off the JSON Schema of the member unless the type carries a `Rule` of its own.
"""

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import PydanticCustomError

from app.tokens import Kind
from app.wire import errors
from app.wire.codes import Code
from app.wire.json import InvalidJson, NotAnObject, RawJson, read_object
from app.wire.reply import Refused, Reply, refusal
from app.wire.schema import fields_by_name, input_schema, mentions

_LONGEST_SHOWN = 64
_plain_name = re.compile(rf"[A-Za-z0-9_.-]{{1,{_LONGEST_SHOWN}}}").fullmatch
_like_a_secret = re.compile(f"(?:{'|'.join(kind.value for kind in Kind)})[A-Za-z0-9_-]{{16}}").search


class Members(BaseModel):
    """What a route takes. Frozen; shows nothing of its values when printed, for they may be secrets."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, hide_input_in_errors=True)

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        return iter(())


class NoMembers(Members):
    """For routes that take none."""


@dataclass(frozen=True, slots=True)
class Rule:
    """In a type's annotation: how a message ends that begins with "name must be"."""

    text: str


@dataclass(frozen=True, slots=True)
class _Plan:
    """What `check` needs to know of a model, found out once."""

    optional: frozenset[str]
    raw: frozenset[str]
    rules: dict[str, str]


M = TypeVar("M", bound=Members)


def parse(model: type[M], body: bytes) -> M:
    """The members in a body. Raises Refused with the reply for the first fault."""
    try:
        members = read_object(body, raw=_plan(model).raw)
    except InvalidJson as fault:
        raise Refused(errors.invalid_json(fault)) from None
    except NotAnObject:
        raise Refused(errors.not_an_object()) from None
    return check(model, members)


def check(model: type[M], members: dict[str, object]) -> M:
    """The members as read by `read_object`, checked; takes the dict over. Raises Refused."""
    plan = _plan(model)
    for name in members:
        if name not in plan.rules:
            raise Refused(_unknown(name, list(plan.rules)))
    if None in members.values():
        members = {name: value for name, value in members.items() if value is not None or name not in plan.optional}
    try:
        return model.model_validate(members)
    except ValidationError as fault:
        # Without its cause: pydantic's error holds the values.
        raise Refused(_first_of(fault, plan)) from None


def fault(
    error: str,
    *,
    field: str | None = None,
    code: Code = Code.INVALID_REQUEST,
    fix: str | None = None,
    members: Mapping[str, object] | None = None,
) -> PydanticCustomError:
    """For validators: raise this to refuse with a sentence and a code of their own.

    `field` is needed where a whole model is judged; in the validator of one member it is known. `members` go into
    the answer beside the common ones.
    """
    context = {"field": field, "error": error, "code": code, "fix": fix, "members": dict(members or {})}
    return PydanticCustomError("fencepost", "{error}", context)


@cache
def _plan(model: type[Members]) -> _Plan:
    fields = fields_by_name(model)
    properties = input_schema(model, null=False).get("properties", {})
    return _Plan(
        optional=frozenset(name for name, field in fields.items() if not field.is_required()),
        raw=frozenset(name for name, field in fields.items() if mentions(field.annotation, RawJson)),
        rules={
            name: _own_rule((field.annotation, *field.metadata)) or _rule_of(properties[name])
            for name, field in fields.items()
        },
    )


def _own_rule(parts: tuple[Any, ...]) -> str | None:
    for part in reversed(parts):  # the outermost annotation comes last and has the last word
        if isinstance(part, Rule):
            return part.text
        found = _own_rule(get_args(part))
        if found is not None:
            return found
    return None


def _rule_of(schema: dict[str, Any]) -> str:
    if "const" in schema or "enum" in schema:
        words = schema.get("enum") or [schema["const"]]
        return "one of " + ", ".join(f'"{word}"' for word in words)
    match schema.get("type"):
        case "integer" if "minimum" in schema and "maximum" in schema:
            return f"a whole number from {schema['minimum']} to {schema['maximum']}"
        case "integer":
            return "a whole number"
        case "string" if "maxLength" in schema:
            return f"text of {schema.get('minLength', 0)} to {schema['maxLength']} characters"
        case "string":
            return "text"
        case "boolean":
            return "true or false"
        case "array":
            return "a list"
        case "object":
            return "an object"
    return "any JSON value"


def _unknown(name: str, known: list[str]) -> Reply:
    takes = f"This route takes: {', '.join(known)}." if known else "This route takes no members: send {}."
    if not _plain_name(name) or _like_a_secret(name):
        return refusal(Code.INVALID_REQUEST, error="There is a member with an unknown name", fix=takes)
    near = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.5)
    hint = f'; did you mean "{near[0]}"?' if near else ""
    return refusal(Code.INVALID_REQUEST, error=f'Unknown member "{name}"{hint}', fix=takes, field=name)


def _first_of(invalid: ValidationError, plan: _Plan) -> Reply:
    first = invalid.errors(include_url=False, include_input=False)[0]
    field = str(first["loc"][0]) if first["loc"] else None
    if first["type"] == "fencepost":
        said = first["ctx"]
        code = Code(said["code"])
        named = (said["field"] or field) if code is Code.INVALID_REQUEST else None
        return refusal(code, error=said["error"], fix=said["fix"], field=named, members=said["members"])
    rule = plan.rules.get(field or "", "valid")
    lacks = first["type"] == "missing" and len(first["loc"]) == 1
    error = f"{field} is required: {rule}" if lacks else f"{field} must be {rule}"
    return refusal(Code.INVALID_REQUEST, error=error, field=field)
