"""JSON Schema (2020-12) of what goes in and what comes out, from the definitions that also check and type it.

OpenAPI and the MCP tools show these. An optional member may be sent as `null`, which means absent; `input_schema`
says so unless told not to, since some callers of tools cannot read a type of two words.
"""

from copy import deepcopy
from functools import cache
from typing import Any, get_args

from pydantic import BaseModel, TypeAdapter
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema

from app.wire.json import RawJson

Schema = dict[str, Any]


class _Plain(GenerateJsonSchema):
    """Without the titles that would be made up from the names."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def fields_by_name(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """The members of a model by their names on the wire, which a word of Python such as `from` may keep from ours."""
    return {field.alias or name: field for name, field in model.model_fields.items()}


def input_schema(model: type[BaseModel], *, null: bool = True) -> Schema:
    """The schema of a route's or tool's members: an object that allows no others.

    With `null`, optional members also take null.
    """
    schema = model.model_json_schema(schema_generator=_Plain, mode="validation")
    schema.pop("title", None)
    schema.pop("description", None)
    fields = fields_by_name(model)
    properties = schema.get("properties", {})
    schema["properties"] = {name: _member(rule, fields[name], null) for name, rule in properties.items()}
    return schema


def output_schema(*answers: Any, closed: bool = False) -> Schema:
    """One object schema that covers every answer given: TypedDicts of app.wire.

    It holds every member of each; those that all answers have are required; a word such as `status` is the list of
    its words. `closed` forbids other members: for tests, since callers must bear members that come later.
    """
    schemas = [deepcopy(_answer(answer)) for answer in answers]
    merged = schemas[0] if len(schemas) == 1 else _merge(schemas)
    if closed:
        merged["additionalProperties"] = False
    return merged


def mentions(annotation: Any, wanted: type) -> bool:
    """Whether an annotation is made of this type, somewhere."""
    return annotation is wanted or any(mentions(part, wanted) for part in get_args(annotation))


@cache
def _answer(answer: Any) -> Schema:
    schema = TypeAdapter(answer).json_schema(schema_generator=_Plain, mode="serialization")
    schema.pop("title", None)
    schema.pop("description", None)
    return schema


def _member(schema: Schema, field: FieldInfo, null: bool) -> Schema:
    choices = schema.pop("anyOf", [])
    takes_null = field.is_required() or mentions(field.annotation, RawJson)
    values = choices if takes_null else [choice for choice in choices if choice != {"type": "null"}]
    if len(values) == 1:
        schema = {**values[0], **schema}
    elif values:
        schema["anyOf"] = values
    if schema.get("default", ...) is None:
        del schema["default"]
    return _or_null(schema) if null and not takes_null else schema


def _or_null(schema: Schema) -> Schema:
    if "anyOf" in schema:
        return {**schema, "anyOf": [*schema["anyOf"], {"type": "null"}]}
    if "$ref" in schema:
        return {"anyOf": [{"$ref": schema.pop("$ref")}, {"type": "null"}], **schema}
    if "const" in schema:
        schema["enum"] = [schema.pop("const")]
    if "enum" in schema:
        schema["enum"] = [*schema["enum"], None]
    if "type" in schema:
        schema["type"] = [schema["type"], "null"]
    return schema


def _merge(schemas: list[Schema]) -> Schema:
    names = dict.fromkeys(name for schema in schemas for name in schema["properties"])
    properties = {
        name: _merge_member([schema["properties"][name] for schema in schemas if name in schema["properties"]])
        for name in names
    }
    required = [name for name in names if all(name in schema.get("required", ()) for schema in schemas)]
    definitions = {name: rule for schema in schemas for name, rule in schema.get("$defs", {}).items()}
    merged: Schema = {"type": "object", "properties": properties, "required": required}
    if definitions:
        merged["$defs"] = definitions
    return merged


def _merge_member(rules: list[Schema]) -> Schema:
    distinct: list[Schema] = []
    for rule in rules:
        if rule not in distinct:
            distinct.append(rule)
    if len(distinct) == 1:
        return distinct[0]
    words = [_words(rule) for rule in distinct]
    if all(words):
        union = list(dict.fromkeys(word for some in words for word in some))
        merged = {key: value for key, value in distinct[0].items() if key not in ("const", "enum")}
        told = dict.fromkeys(rule["description"] for rule in distinct if "description" in rule)
        return {**merged, **({"description": " ".join(told)} if told else {}), "enum": union}
    return {"anyOf": distinct}


def _words(rule: Schema) -> list[object]:
    return [rule["const"]] if "const" in rule else list(rule.get("enum", []))
