"""Refusals that every route shares, one function each."""

from collections.abc import Iterable
from typing import Literal

from app.wire.codes import Code
from app.wire.json import InvalidJson
from app.wire.reply import HUNG_UP, Reply, refusal, retry_after

_COMMITTED = {
    "no": "nothing was committed",
    "unknown": "whether it was committed is unknown",
}
_FIXES = {
    "no": "Send the request again after Retry-After seconds.",
    "unknown": (
        "After Retry-After seconds look at the current state, or repeat the request with the same owner_token, nonce "
        "or claim_token, which is safe."
    ),
}


def invalid_json(fault: InvalidJson) -> Reply:
    """400: the reason and the position in bytes from 0, nothing of the body."""
    return refusal(
        Code.INVALID_JSON,
        error=f"The body is not valid JSON: {fault.reason}, at byte {fault.position}",
        members={"position": fault.position},
    )


def not_an_object() -> Reply:
    """400: good JSON, but no object."""
    return refusal(
        Code.INVALID_REQUEST, error="The body must be one JSON object", fix="Send a JSON object, such as {}."
    )


def query_not_allowed() -> Reply:
    """400: a query string on a route that takes none."""
    return refusal(Code.QUERY_NOT_ALLOWED)


def incomplete_body() -> Reply:
    """400: the body ended early."""
    return refusal(Code.INCOMPLETE_BODY)


def invalid_http() -> Reply:
    """400: the framing of the body is broken."""
    return refusal(Code.INVALID_HTTP)


def request_timeout() -> Reply:
    """408: the body came too slowly."""
    return refusal(Code.REQUEST_TIMEOUT)


def token_required() -> Reply:
    """401: no Authorization header, or one that is not `Bearer <token>`."""
    return refusal(Code.TOKEN_REQUIRED, headers={"WWW-Authenticate": "Bearer"})


def not_found() -> Reply:
    """404: the same bytes for an unknown object and for a wrong token."""
    return refusal(Code.NOT_FOUND)


def unknown_route() -> Reply:
    """404: no such path."""
    return refusal(Code.UNKNOWN_ROUTE)


def method_not_allowed(allowed: Iterable[str]) -> Reply:
    """405 with the methods that the path takes."""
    methods = ", ".join(sorted(allowed))
    return refusal(Code.METHOD_NOT_ALLOWED, fix=f"Use one of these methods: {methods}.", headers={"Allow": methods})


def options(allowed: Iterable[str]) -> Reply:
    """204: no refusal, but the same list, for who asks what a path takes."""
    return Reply(204, {}, {"Allow": ", ".join(sorted(allowed))})


def not_acceptable() -> Reply:
    """406: the caller takes no JSON."""
    return refusal(Code.NOT_ACCEPTABLE)


def origin_not_allowed() -> Reply:
    """403: a browser page of another origin."""
    return refusal(Code.ORIGIN_NOT_ALLOWED)


def unsupported_media_type(what: Literal["type", "coding"] = "type") -> Reply:
    """415: another content type or none (`type`), or a compressed body (`coding`)."""
    if what == "type":
        return refusal(Code.UNSUPPORTED_MEDIA_TYPE)
    return refusal(
        Code.UNSUPPORTED_MEDIA_TYPE,
        error="The body must not be compressed",
        fix="Send the body without a Content-Encoding header.",
    )


def body_too_large(cap: int) -> Reply:
    """413 with the cap in bytes."""
    return refusal(Code.BODY_TOO_LARGE, error=f"The body is larger than {cap} bytes", members={"limit_bytes": cap})


def rate_limited(retry_after_seconds: int, *, what: str = "requests", limit: int | None = None) -> Reply:
    """429 until UTC midnight. `what` is counted, as in "requests" or "new handoffs"."""
    allowance = f"{limit} {what}" if limit is not None else what
    return refusal(
        Code.RATE_LIMITED,
        error=f"The daily limit of {allowance} for this address is used up",
        headers=retry_after(retry_after_seconds),
        members={"retry_after_seconds": max(1, retry_after_seconds)},
    )


def full(retry_after_seconds: int, *, error: str | None = None) -> Reply:
    """503: no room for another live object until the soonest of them expires."""
    return refusal(
        Code.FULL,
        error=error,
        headers=retry_after(retry_after_seconds),
        members={"retry_after_seconds": max(1, retry_after_seconds)},
    )


def too_many_waiters(retry_after_seconds: int = 1) -> Reply:
    """503: this process holds as many open waits and sockets as it may."""
    return refusal(
        Code.TOO_MANY_WAITERS,
        headers=retry_after(retry_after_seconds),
        members={"retry_after_seconds": max(1, retry_after_seconds)},
    )


def unavailable(*, committed: Literal["no", "unknown"], retry_after_seconds: int = 1) -> Reply:
    """503: the database is away or too busy. Says whether anything was committed, as text and as `committed`."""
    return refusal(
        Code.UNAVAILABLE,
        error=f"The database cannot be reached or is too busy; {_COMMITTED[committed]}",
        fix=_FIXES[committed],
        headers=retry_after(retry_after_seconds),
        members={"committed": committed, "retry_after_seconds": max(1, retry_after_seconds)},
    )


def hung_up() -> Reply:
    """For the log and the figures, since nobody is left to read it: 499, the status that nginx notes in this case."""
    return Reply(HUNG_UP, {"ok": False, "status": "hung_up"})


def internal(request_id: str) -> Reply:
    """500 with the request id and no internals."""
    return refusal(Code.INTERNAL, members={"request_id": request_id})
