"""One request and its answer: what the log, the metrics and the headers want to know of it.

It is there from the first line to the last, whether Flask has been asked or not.
"""

import re
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

from app import tokens
from app.clock import monotonic
from app.wire.reply import Reply, Sent

_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)
_WITHOUT_BODY = (204, 304)
_at_hand: ContextVar["Exchange"] = ContextVar("exchange")  # each connection is a greenlet with a context of its own


class Exchange:
    """Begins with the request. `outcome` is for the log, `rate_headers` say what is left of the day's allowance."""

    __slots__ = ("_request_id", "began", "environ", "outcome", "rate_headers")

    def __init__(self, environ: dict[str, Any]) -> None:
        self.environ = environ
        self.began = monotonic()
        self.outcome = "ok"
        self.rate_headers: Mapping[str, str] = {}
        self._request_id: str | None = None
        _at_hand.set(self)

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


def here() -> Exchange:
    """The exchange at hand. Raises LookupError outside of a request."""
    return _at_hand.get()
