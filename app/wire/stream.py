"""The frames of the stream: a client's text to a checked wish, an event to a server's text.

Every frame is one JSON object with `t`. Members that we do not know are ignored in both directions, so that the two
sides may be of different age. What is no JSON object at all is malformed and ends the socket; everything else that
is wrong is told in an `err` frame and harms nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field

from app.wire.codes import Code
from app.wire.json import InvalidJson, NotAnObject, read_object
from app.wire.kinds import LARGEST_VERSION
from app.wire.lease import LeaseStatus
from app.wire.members import Members, check
from app.wire.reply import Refused


class StreamCode(StrEnum):
    """Machine words that only an `err` frame carries, beside those of app.wire.codes."""

    UNKNOWN_TYPE = "unknown_type"
    UNKNOWN_ID = "unknown_id"
    DUPLICATE_ID = "duplicate_id"
    TOO_MANY_SUBSCRIPTIONS = "too_many_subscriptions"
    OPERATOR_REQUIRED = "operator_required"
    OTHER_HANDOFF = "other_handoff"


class Malformed(Exception):
    """No JSON object: the socket is closed."""


@dataclass(frozen=True, slots=True)
class FollowHandoff:
    """A `sub` to one handoff. `token` None: the connection's own."""

    id: str
    handoff_id: str
    token: str | None
    after: int | None
    wants_payload: bool


@dataclass(frozen=True, slots=True)
class FollowLease:
    """A `sub` to one lease."""

    id: str
    key: str
    namespace: str | None


@dataclass(frozen=True, slots=True)
class FollowFeed:
    """A `sub` to one of the operator's feeds."""

    id: str
    feed: Literal["handoffs", "leases", "claims"]


@dataclass(frozen=True, slots=True)
class Leave:
    """An `unsub`."""

    id: str


@dataclass(frozen=True, slots=True)
class Beat:
    """An `hb`."""


@dataclass(frozen=True, slots=True)
class Invalid:
    """A frame that means nothing here; told in an `err`."""

    id: str | None
    code: str
    error: str


Wish = FollowHandoff | FollowLease | FollowFeed | Leave | Beat | Invalid

SubscriptionId = Annotated[str, Field(min_length=1, max_length=64)]


class _Sub(Members):
    id: SubscriptionId
    handoff: str | None = None
    token: str | None = None
    after: Annotated[int | None, Field(ge=0, le=LARGEST_VERSION)] = None
    payload: bool = False
    lease: dict[str, Any] | None = None
    feed: Literal["handoffs", "leases", "claims"] | None = None


class _Unsub(Members):
    id: SubscriptionId


M = TypeVar("M", bound=Members)


def read_wish(text: str) -> Wish:
    """What a client's text frame asks for. Raises Malformed."""
    if not text.lstrip(" \t\r\n").startswith("{"):
        raise Malformed
    try:
        frame = read_object(text.encode("utf-8"))
    except (InvalidJson, NotAnObject):
        raise Malformed from None
    match frame.get("t"):
        case "sub":
            return _checked(frame, _subscription)
        case "unsub":
            return _checked(frame, lambda members: Leave(_known(_Unsub, members).id))
        case "hb":
            return Beat()
    return Invalid(_id_of(frame), StreamCode.UNKNOWN_TYPE, "t must be one of sub, unsub, hb")


def _checked(frame: dict[str, object], make: Any) -> Wish:
    try:
        wish: Wish = make(frame)
    except Refused as refused:
        body = refused.reply.body
        return Invalid(_id_of(frame), str(body["code"]), str(body["error"]))
    return wish


def _subscription(frame: dict[str, object]) -> Wish:
    sub = _known(_Sub, frame)
    if sum(target is not None for target in (sub.handoff, sub.lease, sub.feed)) != 1:
        return Invalid(sub.id, Code.INVALID_REQUEST, "sub needs exactly one of handoff, lease, feed")
    if sub.handoff is not None:
        return FollowHandoff(sub.id, sub.handoff, sub.token, sub.after, sub.payload)
    if sub.lease is not None:
        lease = _known(LeaseStatus, sub.lease)
        return FollowLease(sub.id, lease.key, lease.namespace)
    assert sub.feed is not None
    return FollowFeed(sub.id, sub.feed)


def _known(model: type[M], members: Mapping[str, object]) -> M:
    return check(model, {name: value for name, value in members.items() if name in model.model_fields})


def _id_of(frame: Mapping[str, object]) -> str | None:
    found = frame.get("id")
    return found if isinstance(found, str) and len(found) <= 64 else None
