"""One request and its answer: what the log, the metrics and the headers want to know of it.

It rides in the WSGI environment from the first line to the last, so it is there whether Flask has been asked or not.
"""

import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, NamedTuple

from app import tokens
from app.clock import monotonic
from app.wire.reply import Reply

_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)
_WITHOUT_BODY = (204, 304)
_NAME = "fencepost.exchange"
_STATUS_LINES = {status.value: f"{status.value} {status.phrase.upper()}" for status in HTTPStatus}


class Sent(NamedTuple):
    """A whole answer, as bytes."""

    status: int
    headers: list[tuple[str, str]]
    content: bytes

    def line(self) -> str:
        """The status with its phrase, in capitals as Werkzeug writes it."""
        return _STATUS_LINES[self.status]


class Exchange:
    """Begins with the request. `outcome` is for the log, `rate_headers` say what is left of the day's allowance."""

    __slots__ = ("_request_id", "began", "environ", "outcome", "rate_headers")

    def __init__(self, environ: dict[str, Any]) -> None:
        self.environ = environ
        self.began = monotonic()
        self.outcome = "ok"
        self.rate_headers: Mapping[str, str] = {}
        self._request_id: str | None = None
        environ[_NAME] = self

    @staticmethod
    def of(environ: Mapping[str, Any]) -> "Exchange":
        """The one that this environment belongs to."""
        found: Exchange = environ[_NAME]
        return found

    @property
    def request_id(self) -> str:
        """The caller's request id if it is a decent one, else one of ours; the same for the whole request."""
        if self._request_id is None:
            sent = self.environ.get("HTTP_X_REQUEST_ID") or ""
            is_decent = _REQUEST_ID.fullmatch(sent) and not tokens.is_token(sent)  # it goes into the log
            self._request_id = sent if is_decent else tokens.mint_identifier()
        return self._request_id

    def answer(self, reply: Reply) -> Sent:
        """The reply with the headers that every answer carries."""
        outcome = reply.body.get("code") or reply.body.get("status") or "ok"
        content = b"" if reply.status in _WITHOUT_BODY else reply.encode()
        return self.send(reply.status, content, reply.headers, str(outcome))

    def send(self, status: int, content: bytes, more: Mapping[str, str], outcome: str) -> Sent:
        """The same for a body as bytes; `outcome` is the word for the log."""
        self.outcome = outcome
        headers = {
            "Content-Type": "application/json",
            "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff",
            "X-Request-Id": self.request_id,
            **self.rate_headers,
            **more,
        }
        return Sent(status, list(headers.items()), content)
