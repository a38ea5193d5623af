"""What goes back: a status, a body and the headers that belong to this answer.

Headers that every answer carries (content type, caching, request id) are added at the edge. Instants come in
pairs: for people as ISO 8601 in UTC with whole seconds, for programs as Unix seconds; both rounded down, so that
nobody relies on a lease past its end. Waiting times are rounded up, so that nobody comes back too early.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from http import HTTPStatus
from typing import NamedTuple

from app.core.instants import seconds_down
from app.wire.codes import MEANINGS, Code
from app.wire.json import dump


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer: HTTP status, members of the JSON body, headers beyond those of every answer."""

    status: int
    body: Mapping[str, object]
    headers: Mapping[str, str] = field(default_factory=dict)

    def encode(self) -> bytes:
        """The body as bytes."""
        return dump(self.body)


class Sent(NamedTuple):
    """A whole answer, ready to be sent."""

    status: int
    headers: list[tuple[str, str]]
    content: bytes

    def line(self) -> str:
        """The status with its phrase, in capitals as Werkzeug writes it."""
        return _STATUS_LINES[self.status]


HUNG_UP = 499
_STATUS_LINES = {status.value: f"{status.value} {status.phrase.upper()}" for status in HTTPStatus}
_STATUS_LINES[HUNG_UP] = f"{HUNG_UP} CLIENT CLOSED REQUEST"


class Refused(Exception):
    """The request cannot be taken as it was sent; `reply` says why. Holds nothing secret of the request."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(str(reply.body.get("code")))
        self.reply = reply


def refusal(
    code: Code,
    *,
    status: str | None = None,
    error: str | None = None,
    fix: str | None = None,
    field: str | None = None,
    headers: Mapping[str, str] | None = None,
    members: Mapping[str, object] | None = None,
) -> Reply:
    """The common shape: `ok: false`, a `status` word where the page names one, code, error, fix, field, the rest.

    `error` and `fix` default to the texts of the code.
    """
    meaning = MEANINGS[code]
    body: dict[str, object] = {"ok": False}
    if status is not None:
        body["status"] = status
    body["code"] = code.value
    body["error"] = error or meaning.error
    next_step = fix or meaning.fix
    if next_step is not None:
        body["fix"] = next_step
    if field is not None:
        body["field"] = field
    if members:
        body.update(members)
    return Reply(meaning.http, body, dict(headers) if headers else {})


def retry_after(seconds: int) -> dict[str, str]:
    """The header that says when to come back: whole seconds, at least 1."""
    return {"Retry-After": str(max(1, seconds))}


def iso(at: int) -> str:
    """An instant in microseconds as `2026-11-30T12:00:00Z`, rounded down."""
    return _iso_of_second(seconds_down(at))


def pair(name: str, at: int) -> dict[str, object]:
    """The two members of an instant: `name` as ISO 8601 and `name_timestamp` as Unix seconds, both rounded down.

    `name` is the member's full name, such as `created_at`, or `at`.
    """
    second = seconds_down(at)
    return {name: _iso_of_second(second), f"{name}_timestamp": second}


@lru_cache(maxsize=1024)
def _iso_of_second(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).isoformat()[:19] + "Z"
