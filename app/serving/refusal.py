"""Answers to what is no proper HTTP, before any route is reached. The same JSON shape as everywhere.

The peer's bytes are not repeated, neither in the answer nor in the log: a broken request line may hold a token.
"""

from http import HTTPStatus

from gunicorn.http import errors  # type: ignore[import-untyped]

from app.tokens import mint_identifier
from app.wire.codes import Code
from app.wire.reply import Reply, refusal


def to_broken(fault: Exception) -> bytes:
    """The whole response to a head that could not be read, or not in time."""
    match fault:
        case TimeoutError():
            return _closing(refusal(Code.REQUEST_TIMEOUT, error="The head of the request came too slowly"))
        case errors.LimitRequestLine():
            return _closing(refusal(Code.TARGET_TOO_LONG))
        case errors.LimitRequestHeaders():
            return _closing(refusal(Code.HEADERS_TOO_LARGE))
        case errors.ExpectationFailed():
            return _closing(refusal(Code.EXPECTATION_FAILED))
        case errors.UnsupportedTransferCoding():
            return _closing(refusal(Code.TRANSFER_CODING_UNSUPPORTED))
        case _:
            return _closing(refusal(Code.INVALID_HTTP))


def to_failed() -> bytes:
    """The whole response where the application failed outside its own error handling."""
    return _closing(refusal(Code.INTERNAL))


def _closing(reply: Reply) -> bytes:
    body = reply.encode()
    head = (
        f"HTTP/1.1 {reply.status} {HTTPStatus(reply.status).phrase}\r\nConnection: close\r\n"
        "Content-Type: application/json\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"
        f"X-Request-Id: {mint_identifier()}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode("ascii") + body
