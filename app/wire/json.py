"""The one reader and the one writer of JSON, stricter than the standard library's.

Two programs that read one document must never see two different things, so a document is refused where parsers
are known to disagree: a member name given twice (compared after unescaping), NaN and Infinity, half of a
surrogate pair, a byte-order mark, another encoding than UTF-8, anything after the value. What callers store is
kept as its text and never goes through a parser and a printer: `1.10`, `1e400`, an integer of 5,000 digits, the
order of members and the spelling of escapes come back as they came. No number ever becomes a float.

The standard library's C scanner does the work; its hooks see each number and each object. What it cannot say by
itself (depth, half surrogates, where a name stood twice) is answered by `_survey`, a walk over the tokens that
runs only for documents that could have such a fault. The depth is judged before the scanner runs, since that
recurses.
"""

import re
from _json import encode_basestring, make_encoder, scanstring
from collections.abc import Mapping
from dataclasses import dataclass
from json import JSONDecodeError, JSONDecoder
from typing import NoReturn

DEEPEST = 64
"""Levels of objects and arrays in a document; its outermost value is level 1."""

_INTEGER_DIGITS = 18
_NOTHING_NESTED: Mapping[str, frozenset[str]] = {}
_NAMED_TWICE = "a member name stands twice in one object"
_NOT_A_NUMBER = "NaN and Infinity are not JSON"
_HALF_PAIR = "an escape is half of a surrogate pair"

_space = re.compile(r"[ \t\n\r]*").match
_half_pair_possible = re.compile(r"\\u[dD][89a-fA-F]").search
_surrogate = re.compile("[\ud800-\udfff]").search
# A string is taken whole (atomic group), closed or not: so the walk is linear for any text.
_token = re.compile(r'(?>"[^"\\]*(?:\\.[^"\\]*)*)"?|[\[\]{}]|NaN|Infinity', re.DOTALL)


class InvalidJson(ValueError):
    """The bytes are no JSON document that this service reads.

    `reason` is a clause for people and holds nothing of the document; `position` counts bytes from 0.
    """

    def __init__(self, reason: str, position: int) -> None:
        super().__init__(f"{reason} (byte {position})")
        self.reason = reason
        self.position = position


class NotAnObject(ValueError):
    """Good JSON, but no object where one is due."""


class _Suspect(Exception):
    """A hook saw a fault but not its place."""


@dataclass(frozen=True, slots=True)
class RawJson:
    """A checked JSON value as its text, exactly as sent, without the white space around it."""

    text: str

    @property
    def size(self) -> int:
        """Bytes of the text in UTF-8."""
        return len(self.text) if self.text.isascii() else len(self.text.encode("utf-8"))


@dataclass(frozen=True, slots=True)
class Number:
    """A JSON number that is no plain integer of sane size, as spelled. No integer member accepts it."""

    text: str


def read_object(
    body: bytes,
    *,
    raw: frozenset[str] = frozenset(),
    nested: Mapping[str, frozenset[str]] = _NOTHING_NESTED,
    deepest: int = DEEPEST,
) -> dict[str, object]:
    """The members of a document that is one object.

    Members named in `raw` come back as RawJson, others as Python values in which a plain integer of up to 18
    characters is an int and any other number a Number. For a document that only wraps another, `nested` says what is
    `raw` in the objects of these members, and `deepest` how deep it may be. Nothing but white space, or a lone `null`,
    counts as `{}`. Raises InvalidJson, and NotAnObject for another value.
    """
    text = _decode(body, deepest)
    start = _skip(text, 0)
    if start == len(text):
        return {}
    try:
        if text[start] == "{":
            members, end = _members(text, start, raw, nested)
            _expect_end(text, end)
            return members
        value, end = _scan(text, start)
        _expect_end(text, end)
    except (JSONDecodeError, StopIteration, _Suspect) as fault:
        _refuse(text, fault)
    if value is None:
        return {}
    raise NotAnObject


def read_elements(body: bytes, *, deepest: int = DEEPEST) -> list[RawJson]:
    """The elements of a document that is one array, each as its text. Raises InvalidJson and NotAnObject."""
    text = _decode(body, deepest)
    start = _skip(text, 0)
    try:
        if text.startswith("[", start):
            return _elements(text, start)
        _, end = _scan(text, start)
        _expect_end(text, end)
    except (JSONDecodeError, StopIteration, _Suspect) as fault:
        _refuse(text, fault)
    raise NotAnObject


def dump(answer: Mapping[str, object]) -> bytes:
    """The answer as compact UTF-8; a RawJson or Number in it, at any depth, is written as its own text.

    Raises ValueError for a NaN, an Infinity or half a surrogate pair, TypeError for what has no JSON form.
    """
    document = answer if isinstance(answer, dict) else dict(answer)
    return "".join(_encode(document, 0)).encode("utf-8")


def _decode(body: bytes, deepest: int) -> str:
    if body.startswith(b"\xef\xbb\xbf"):
        raise InvalidJson("a byte-order mark stands before the document", 0)
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as fault:
        # The exception holds the whole body, so it is not kept as the cause.
        raise InvalidJson("not UTF-8", fault.start) from None
    if text.count("[") + text.count("{") > deepest or ("\\u" in text and _half_pair_possible(text)):
        problem = _survey(text, deepest)
        if problem is not None:
            raise problem
    return text


def _members(
    text: str, start: int, raw: frozenset[str], nested: Mapping[str, frozenset[str]]
) -> tuple[dict[str, object], int]:
    """The members of the object that begins here, and where it has ended."""
    members: dict[str, object] = {}
    at = _skip(text, start + 1)
    if text.startswith("}", at):
        return members, at + 1
    while True:
        if not text.startswith('"', at):
            raise JSONDecodeError("expecting a member name in double quotes", text, at)
        name, at = scanstring(text, at + 1, True)
        if name in members:
            raise _Suspect
        at = _skip(text, at)
        if not text.startswith(":", at):
            raise JSONDecodeError("expecting ':'", text, at)
        at = _skip(text, at + 1)
        if name in nested and text.startswith("{", at):
            members[name], end = _members(text, at, nested[name], _NOTHING_NESTED)
        else:
            value, end = _scan(text, at)
            members[name] = RawJson(text[at:end]) if name in raw else value
        at, more = _after(text, end, "}")
        if not more:
            return members, at


def _elements(text: str, start: int) -> list[RawJson]:
    elements: list[RawJson] = []
    at = _skip(text, start + 1)
    if text.startswith("]", at):
        _expect_end(text, at + 1)
        return elements
    while True:
        _, end = _scan(text, at)
        elements.append(RawJson(text[at:end]))
        at, more = _after(text, end, "]")
        if not more:
            _expect_end(text, at)
            return elements


def _after(text: str, end: int, closing: str) -> tuple[int, bool]:
    """Past the comma that follows, or past the closing bracket."""
    at = _skip(text, end)
    mark = text[at : at + 1]
    if mark == ",":
        return _skip(text, at + 1), True
    if mark != closing:
        raise JSONDecodeError(f"expecting ',' or '{closing}'", text, at)
    return at + 1, False


def _expect_end(text: str, end: int) -> None:
    at = _skip(text, end)
    if at != len(text):
        raise JSONDecodeError("something stands after the document", text, at)


def _skip(text: str, at: int) -> int:
    if at < len(text) and text[at] > " ":
        return at
    found = _space(text, at)
    assert found is not None
    return found.end()


def _refuse(text: str, fault: Exception) -> NoReturn:
    # `from None`: a JSONDecodeError holds the whole document, which may hold secrets.
    if isinstance(fault, JSONDecodeError):
        reason = fault.msg.removesuffix(" at").removesuffix(" starting").removesuffix(": ")
        raise InvalidJson(reason[:1].lower() + reason[1:], _in_bytes(text, fault.pos)) from None
    if isinstance(fault, StopIteration):
        raise InvalidJson("expecting a value", _in_bytes(text, fault.value)) from None
    raise (_survey(text, len(text)) or InvalidJson(_NAMED_TWICE, 0)) from None


def _in_bytes(text: str, position: int) -> int:
    return len(text[:position].encode("utf-8"))


def _survey(text: str, deepest: int) -> InvalidJson | None:
    """The first fault in nesting, names, escapes or constants. A document with broken syntax may pass."""
    open_names: list[set[str] | None] = []
    for found in _token.finditer(text):
        part = found.group()
        problem = None
        if part in ("[", "{"):
            open_names.append(set() if part == "{" else None)
            problem = f"nested deeper than {deepest} levels" if len(open_names) > deepest else None
        elif part in ("]", "}"):
            if open_names:
                open_names.pop()
        elif part[0] == '"':
            names = open_names[-1] if open_names else None
            is_name = names is not None and text.startswith(":", _skip(text, found.end()))
            problem = _fault_of_string(part, names if is_name else None)
        else:
            problem = _NOT_A_NUMBER
        if problem is not None:
            return InvalidJson(problem, _in_bytes(text, found.start()))
    return None


def _fault_of_string(quoted: str, names: set[str] | None) -> str | None:
    if "\\" in quoted or names is not None:
        try:
            value, _ = scanstring(quoted, 1, True)
        except JSONDecodeError:
            return None  # broken syntax: the parser says what and where
        if _surrogate(value):
            return _HALF_PAIR
        if names is not None:
            if value in names:
                return _NAMED_TWICE
            names.add(value)
    return None


def _integer(spelling: str) -> int | Number:
    return int(spelling) if len(spelling) <= _INTEGER_DIGITS else Number(spelling)


def _constant(_: str) -> NoReturn:
    raise _Suspect


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _Suspect
    return members


class _Spliced(str):
    """Text that the encoder writes as it is."""

    __slots__ = ()


def _splice(value: object) -> _Spliced:
    if isinstance(value, RawJson | Number):
        return _Spliced(value.text)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def _write_text(value: str) -> str:
    return value if type(value) is _Spliced else encode_basestring(value)


_scan = JSONDecoder(
    parse_int=_integer, parse_float=Number, parse_constant=_constant, object_pairs_hook=_object
).scan_once  # type: ignore[attr-defined]  # the C scanner itself, which typeshed leaves out
_encode = make_encoder(None, _splice, _write_text, None, ":", ",", False, False, False)
