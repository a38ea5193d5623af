"""The five revisions of the protocol, in two eras.

Up to 2025-11-25 a client opens with `initialize` and later names the agreed revision in a header. From 2026-07-28 on
there is no opening: each request stands alone, says in `_meta` which revision it is in and what the client can do, and
repeats revision, method and tool in headers, so that a proxy can route without reading bodies. Whoever trusts the
header and whoever trusts the body must see the same call, so they are compared.

Both eras are served at one address. A request is of the new one if its header names a revision that has no opening, or
if `_meta` names any: so a new body without headers is told what it lacks instead of being taken for an old one.
"""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass

from app.mcp import rpc
from app.mcp.messages import Request
from app.mcp.rpc import Fault

NEWEST = "2026-07-28"
WITH_OPENING = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
ALL = (NEWEST, *WITH_OPENING)
_WITH_BATCHES = (None, "2025-03-26")

_VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
_CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
_NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_BASE64 = ("=?base64?", "?=")


@dataclass(frozen=True, slots=True)
class Headers:
    """What a request says of itself outside its body; None where it says nothing."""

    version: str | None
    method: str | None
    name: str | None

    @classmethod
    def of(cls, environ: Mapping[str, object]) -> "Headers":
        """The three headers of a WSGI environment."""
        keys = ("HTTP_MCP_PROTOCOL_VERSION", "HTTP_MCP_METHOD", "HTTP_MCP_NAME")
        return cls(*(None if environ.get(key) is None else str(environ[key]).strip() for key in keys))


def agreed(wanted: str) -> str:
    """The answer to the revision that an opening asks for: that one, else the newest that has an opening."""
    return wanted if wanted in WITH_OPENING else WITH_OPENING[0]


def allows_batches(headers: Headers) -> bool:
    """Batches came with 2025-03-26 and went with the next; a client that names none is taken for that one."""
    return headers.version in _WITH_BATCHES


def is_newest_era(headers: Headers, request: Request) -> bool:
    """Whether the request stands alone, by its header or by its `_meta`."""
    by_header = headers.version is not None and headers.version not in WITH_OPENING
    return by_header or _VERSION_KEY in (request.meta or {})


def check(headers: Headers, request: Request) -> None:
    """What 2026-07-28 asks of each request: `_meta`, then headers equal to it, then a revision served here.

    Raises Fault. In this order, so that a client that disagrees with itself is told that first.
    """
    meta = request.meta or {}
    if not meta and headers.version not in ALL:
        raise _unsupported(headers.version)
    missing = [key for key in (_VERSION_KEY, _CAPABILITIES_KEY) if key not in meta]
    if missing:
        raise Fault(rpc.INVALID_PARAMS, f"params._meta lacks {' and '.join(missing)}")
    if not isinstance(meta[_CAPABILITIES_KEY], dict):
        raise Fault(rpc.INVALID_PARAMS, f"params._meta: {_CAPABILITIES_KEY} must be an object")
    version = meta[_VERSION_KEY]
    _same("MCP-Protocol-Version", headers.version, version)
    _same("Mcp-Method", headers.method, request.method)
    member = _NAMED.get(request.method)
    if member is not None and (named := request.params.get(member)) is not None:
        _same("Mcp-Name", _decoded(headers.name), named)
    if version != NEWEST:
        raise _unsupported(version)


def _same(header: str, sent: str | None, said: object) -> None:
    if sent is None:
        raise Fault(rpc.HEADER_MISMATCH, f"The header {header} is missing or cannot be read")
    if sent != said:
        raise Fault(rpc.HEADER_MISMATCH, f"The header {header} differs from the body")


def _unsupported(version: object) -> Fault:
    known = {"supported": list(ALL), "requested": version}
    return Fault(rpc.UNSUPPORTED_VERSION, "Unsupported protocol version", known)


def _decoded(value: str | None) -> str | None:
    """A header's value, which is in base64 where it holds more than visible ASCII; None for a broken one."""
    if value is None or not (value.startswith(_BASE64[0]) and value.endswith(_BASE64[1])):
        return value
    inner = value[len(_BASE64[0]) : -len(_BASE64[1])]
    try:
        plain = base64.b64decode(inner, validate=True)
        is_canonical = base64.b64encode(plain).decode("ascii") == inner
        return plain.decode("utf-8") if is_canonical else None
    except (binascii.Error, ValueError):
        return None
