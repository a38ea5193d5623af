"""From the bytes of a POST to JSON-RPC messages.

Read by the strict reader of app/wire, so a document that two parsers could understand differently is refused whole.
Arguments of tools stay text: they go to the same check as a REST body, and what is stored of them is kept as sent. The
envelope may nest deeper than a body, so that a body of the full depth fits into it and one too deep is refused by the
same rule, with the same position, as over REST.
"""

import re
from dataclasses import dataclass

from app.mcp import rpc
from app.mcp.rpc import Fault, Id
from app.wire import errors
from app.wire.json import InvalidJson, NotAnObject, Number, read_elements, read_object

MOST_IN_A_BATCH = 20
_DEEPEST = 256
_PARAMS = {"params": frozenset({"arguments"})}
_whole_number = re.compile(r"-?[0-9]+", re.ASCII).fullmatch


@dataclass(frozen=True, slots=True)
class Request:
    """A call that must be answered. `params` has `arguments` as text, everything else read."""

    id: Id
    method: str
    params: dict[str, object]

    @property
    def meta(self) -> dict[str, object] | None:
        """`_meta` of the params, None if it is no object."""
        meta = self.params.get("_meta")
        return meta if isinstance(meta, dict) else None


@dataclass(frozen=True, slots=True)
class Silent:
    """A notification, or a response to something: nothing answers it."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """No message. The fault is told under the id, if one could be read."""

    fault: Fault
    id: Id | None = None


Message = Request | Silent | Unreadable


def read(body: bytes) -> Message | list[Message]:
    """One message, or those of a batch."""
    try:
        if not body.lstrip(b" \t\r\n").startswith(b"["):
            return _message(body)
        elements = read_elements(body, deepest=_DEEPEST)
    except InvalidJson as fault:
        return Unreadable(Fault(rpc.PARSE_ERROR, "Parse error", errors.invalid_json(fault).body))
    if not 0 < len(elements) <= MOST_IN_A_BATCH:
        return _invalid(f"A batch has 1 to {MOST_IN_A_BATCH} messages")
    return [_message(element.text.encode("utf-8")) for element in elements]


def id_of(body: bytes) -> Id | None:
    """The id of a request that is refused before anything of it is looked at."""
    message = read(body)
    return message.id if isinstance(message, Request) else None


def _message(body: bytes) -> Message:
    try:
        members = read_object(body, nested=_PARAMS, deepest=_DEEPEST)
    except NotAnObject:
        return _invalid("A message is one JSON object")
    known = _known(members.get("id"))
    if members.get("jsonrpc") != "2.0":
        return _invalid('jsonrpc must be "2.0"', known)
    if "id" in members and known is None:
        return _invalid("id must be a string or a whole number")
    method = members.get("method")
    if not isinstance(method, str):
        if method is None and ("result" in members or "error" in members):
            return Silent()
        return _invalid("method must be a string", known)
    if known is None:
        return Silent()
    params = members.get("params")
    if params is None:
        return Request(known, method, {})
    if not isinstance(params, dict):
        return Unreadable(Fault(rpc.INVALID_PARAMS, "params must be an object"), known)
    return Request(known, method, params)


def _known(id_: object) -> Id | None:
    """An id that a request may have, however many digits a client gives it; None for anything else."""
    if isinstance(id_, str) or type(id_) is int:
        return id_
    return id_ if isinstance(id_, Number) and _whole_number(id_.text) else None


def _invalid(why: str, id_: Id | None = None) -> Unreadable:
    return Unreadable(Fault(rpc.INVALID_REQUEST, f"Invalid request: {why}"), id_)
