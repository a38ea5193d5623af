"""Calls as values and answers as outcomes: no network here, so that sync and async share it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import quote

from fencepost import _json, errors
from fencepost.outcomes import (
    AcquireOutcome,
    Claimed,
    ClaimOutcome,
    Completed,
    Conflict,
    Duplicate,
    Granted,
    Held,
    InProgress,
    Lost,
    PayloadConflict,
)

V1 = "/services/v1"
_Kind = TypeVar("_Kind")
LONGEST_WAIT_SECONDS = 25


@dataclass(frozen=True)
class Call:
    """One request that may be sent again without harm. `wait_seconds` is how long the server may keep it."""

    method: str
    path: str
    content: bytes | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    version: int | None = None
    wait_seconds: float = 0.0

    def headers(self) -> dict[str, str]:
        """What stands in the head beside what every request has."""
        headers = {} if self.content is None else {"Content-Type": "application/json"}
        if self.token is not None:
            if not (self.token.isascii() and self.token.isprintable()):
                raise ValueError("a token is printable ASCII; this one is not, so nothing was sent")
            headers["Authorization"] = f"Bearer {self.token}"
        if self.version is not None:
            headers["If-None-Match"] = f'"{self.version}"'
        return headers


class Members(dict[str, Any]):
    """An answer's members. One that the contract promises and that is not there raises Unreachable, not KeyError."""

    def __missing__(self, name: str) -> Any:
        raise errors.Unreachable(f"the server does not answer as Fencepost does: no {name}")


@dataclass(frozen=True)
class Answer:
    """What came back: the status, the JSON object, its bytes, and how long the server asks to be left alone."""

    status: int
    body: Mapping[str, Any] = field(repr=False)
    content: bytes = field(default=b"", repr=False)
    retry_after_seconds: float = 0.0


def path_of(*segments: str) -> str:
    """A path under /services/v1. What a caller or a link brings stays one segment, whatever is written in it."""
    return "/".join([V1, *(quote(segment, safe="") for segment in segments)])


def member(body: Mapping[str, Any], name: str, kind: type[_Kind]) -> _Kind:
    """A member of a type. Raises Unreachable for another type, and for none: whoever answers so is no Fencepost."""
    value = body[name]
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise errors.Unreachable(f"the server does not answer as Fencepost does: {name} is no {kind.__name__}")
    return value


def ttl_of(body: Mapping[str, Any], name: str) -> int:
    """A TTL that was granted: whole seconds, at least 1. Raises Unreachable."""
    seconds = member(body, name, int)
    if seconds < 1:
        raise errors.Unreachable(f"the server does not answer as Fencepost does: {name} is below 1")
    return seconds


def next_wait(left_seconds: float) -> int:
    """How long to ask the server to wait when so much time is left: whole seconds, 0 to 25."""
    return max(0, min(LONGEST_WAIT_SECONDS, int(left_seconds)))


def members(**given: Any) -> dict[str, Any]:
    """The members that are given; None is absent."""
    return {name: value for name, value in given.items() if value is not None}


def post(path: str, body: Mapping[str, Any], waiting: float = 0.0, *, token: str | None = None) -> Call:
    """A call with a body. Raises ValueError or TypeError for what JSON cannot say, before anything is sent."""
    return Call("POST", path, _json.written(body), token=token, wait_seconds=waiting)


def present(value: Any) -> Any:
    """A member's value that is sent even when it is None."""
    return _json.RawJson("null") if value is None else value


def lease(route: str, waiting: float = 0.0, /, **given: Any) -> Call:
    """A call of the lease's routes, which the server may park for `waiting` seconds."""
    return post(f"{V1}/lease/{route}", members(**given), waiting)


def once(route: str, waiting: float = 0.0, /, **given: Any) -> Call:
    """A call of the once-key's routes; the claim's own is "". The server may park it for `waiting` seconds."""
    return post(f"{V1}/once-key{route}", members(**given), waiting)


def acquired(answer: Answer) -> AcquireOutcome:
    """What an acquire came to. Raises Refused."""
    body = answer.body
    match answer.status, body.get("status"):
        case 201, "held":
            return Granted(
                owner_token=member(body, "owner_token", str),
                fencing_token=member(body, "fencing_token", int),
                ttl_seconds=ttl_of(body, "ttl_seconds"),
                attempt=member(body, "attempt", int),
                absolute_expires_at=body["absolute_expires_at_timestamp"],
                repeated=body.get("repeated", False),
            )
        case 200, "completed":
            return Completed(body["result"], body["fencing_token"], body["completed_at_timestamp"])
        case 409, "held":
            return Held(
                retry_after_seconds=member(body, "retry_after_seconds", int),
                fencing_token=member(body, "fencing_token", int),
                holder=body.get("holder"),
                held_since_at=body.get("held_since_at_timestamp"),
            )
        case 409, "conflict":
            return Conflict(body["absolute_expires_at_timestamp"])
        case 409, "lost":
            return Lost(body.get("reason", "lost"))
    raise errors.refused(answer.status, body)


def claim_kept(answer: Answer) -> Mapping[str, Any] | Lost:
    """What a claim's renewal came to. Raises Refused for what is no decision about the claim."""
    if answer.status == 200:
        member(answer.body, "lease_expires_at_timestamp", int)
        return answer.body
    if answer.body.get("code") in {"claim_lost", "already_completed", "no_claim", "not_leased", "not_found"}:
        return Lost(str(answer.body["code"]))
    raise errors.refused(answer.status, answer.body)


def kept(answer: Answer) -> Mapping[str, Any] | Lost:
    """What a renewal, release or completion came to: its members, or Lost. Raises Refused."""
    if answer.status == 200:
        return answer.body
    if answer.status == 409 and answer.body.get("status") == "lost":
        if answer.body.get("code") == "already_completed":
            raise errors.refused(answer.status, answer.body)
        return Lost(answer.body.get("reason", "lost"))
    raise errors.refused(answer.status, answer.body)


def claimed(answer: Answer, claim_token: str) -> ClaimOutcome:
    """What a claim came to. Raises Refused, Forbidden among them."""
    body = answer.body
    match answer.status, body.get("status"):
        case 200, "claimed":
            return Claimed(
                claim_token=body.get("claim_token", claim_token),
                fencing_token=member(body, "fencing_token", int),
                attempt=member(body, "attempt", int),
                claimed_at=member(body, "claimed_at_timestamp", int),
                expires_at=member(body, "expires_at_timestamp", int),
                lease_expires_at=body.get("lease_expires_at_timestamp"),
                recovered=body.get("recovered", False),
                repeated=body.get("repeated", False),
                namespace_token=body.get("namespace_token"),
                answer=answer.content,
            )
        case 200, "duplicate":
            has_result = member(body, "has_result", bool)
            return Duplicate(body["result"], has_result, body["completed_at_timestamp"], answer.content)
        case 200, "in_progress" | "held":
            return InProgress(body["retry_after"], leased=body["status"] == "in_progress")
        case 200, "conflict":
            return PayloadConflict(body["expires_at_timestamp"])
    raise errors.refused(answer.status, body)


def done(answer: Answer) -> Mapping[str, Any]:
    """The members of a success. Raises Refused."""
    if 200 <= answer.status < 300:
        return answer.body
    raise errors.refused(answer.status, answer.body)
