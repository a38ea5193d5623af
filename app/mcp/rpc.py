"""JSON-RPC: what an error is, which HTTP status it travels with, and how a reply is written.

From 2026-07-28 on, an error has the HTTP status that the revision pins for its code. Before that, HTTP says only
whether the message came through, so an error that answers a request travels in a 200: older clients take a 4xx for a
broken transport.
"""

from collections.abc import Mapping

from app.wire.json import Number, dump
from app.wire.reply import Reply

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
HEADER_MISMATCH = -32020
UNSUPPORTED_VERSION = -32022

_HTTP = {METHOD_NOT_FOUND: 404, INTERNAL_ERROR: 200}

Id = str | int | Number
"""What a request is known by. The protocol allows no null and no fraction; a Number is a whole one of many digits."""


class Fault(Exception):
    """The protocol's kind of refusal: the request was not done because of how it was asked. Holds no secret."""

    def __init__(self, code: int, message: str, details: Mapping[str, object] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.details = details  # the protocol's `data`

    @property
    def http(self) -> int:
        """The HTTP status that 2026-07-28 pins; 400 for all but two."""
        return _HTTP.get(self.code, 400)


def result(id_: Id, members: Mapping[str, object]) -> dict[str, object]:
    """A reply that answers."""
    return {"jsonrpc": "2.0", "id": id_, "result": members}


def error(id_: Id | None, fault: Fault) -> dict[str, object]:
    """A reply that refuses; the id is null where none could be read."""
    told: dict[str, object] = {"code": fault.code, "message": fault.message}
    if fault.details is not None:
        told["data"] = fault.details
    return {"jsonrpc": "2.0", "id": id_, "error": told}


def fault_of(reply: Reply) -> Fault:
    """What the edge refused, such as a body too large or a limit used up: its own body is the `data`.

    The protocol has no code for limits, and its range is reserved, so there the code is the HTTP status.
    """
    code = {500: INTERNAL_ERROR}.get(reply.status, INVALID_REQUEST if reply.status < 429 else reply.status)
    return Fault(code, str(reply.body["error"]), reply.body)


def encode(replies: list[dict[str, object]]) -> bytes:
    """The replies of a batch as one array."""
    return b"[" + b",".join(map(dump, replies)) + b"]"
