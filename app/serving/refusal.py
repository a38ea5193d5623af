"""Answers to what is no proper HTTP, before any route is reached. The same JSON shape as everywhere.

The peer's bytes are not repeated, neither in the answer nor in the log: a broken request line may hold a token.
"""

import json

from gunicorn.http import errors  # type: ignore[import-untyped]

_STATUS = {
    400: "Bad Request",
    408: "Request Timeout",
    414: "URI Too Long",
    417: "Expectation Failed",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    501: "Not Implemented",
}


def refusal(fault: Exception) -> bytes:
    """The whole response to a head that could not be read."""
    match fault:
        case TimeoutError():
            return response(408, "header_timeout", "The head of the request did not come in time")
        case errors.LimitRequestLine():
            return response(414, "target_too_long", "The request line is too long")
        case errors.LimitRequestHeaders():
            return response(431, "headers_too_large", "The headers are too many or too long")
        case errors.ExpectationFailed():
            return response(417, "expectation_failed", "Only Expect: 100-continue is understood")
        case errors.UnsupportedTransferCoding():
            return response(501, "transfer_coding_unsupported", "Only the chunked transfer coding is understood")
        case _:
            return response(400, "invalid_http", "The request is not valid HTTP/1.1")


def response(status: int, code: str, error: str) -> bytes:
    """A response that ends the connection."""
    body = json.dumps({"ok": False, "code": code, "error": error}).encode()
    head = (
        f"HTTP/1.1 {status} {_STATUS[status]}\r\nConnection: close\r\nContent-Type: application/json\r\n"
        f"Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode("ascii") + body
