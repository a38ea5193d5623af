"""Leases on the wire: what the seven routes take and what they answer.

A key's rule hangs on its namespace. Under a namespace, which is a secret, keys may be readable. Without one the key
is itself the secret, so it must be long and varied, or anyone could guess it and take the lease.
"""

import re
from typing import Annotated, Literal, Self, assert_never

from pydantic import AfterValidator, Field, model_validator

from app.core.instants import seconds_down, seconds_up
from app.core.lease import (
    Completed,
    Conflict,
    Granted,
    Held,
    LeaseRecord,
    Lost,
    Released,
    Renewed,
    Status,
    Verified,
)
from app.wire.codes import Code
from app.wire.json import RawJson
from app.wire.kinds import (
    Fence,
    Fingerprint,
    Holder,
    LeaseOwnerToken,
    Namespace,
    Raw,
    TtlSeconds,
    WaitSeconds,
)
from app.wire.lease_answers import (
    CompletedAnswer,
    GrantedAnswer,
    NamespaceAnswer,
    ReleasedAnswer,
    RenewedAnswer,
    StatusAnswer,
    VerifiedAnswer,
)
from app.wire.members import Members, Rule, fault
from app.wire.reply import Reply, iso, pair, refusal, retry_after

LARGEST_RESULT = 32_768
"""Bytes of a result as sent."""

_LEAST_DISTINCT = 8
_readable_key = re.compile(r"[A-Za-z0-9._~:/@+=,-]{1,128}").fullmatch
_unguessable_key = re.compile(r"[!-~]{32,200}").fullmatch
_READABLE_RULE = "1 to 128 characters of A-Z a-z 0-9 - . _ ~ : / @ + = ,"
_UNGUESSABLE_RULE = "32 to 200 printable ASCII characters without spaces, at least 8 of them distinct"

Key = Annotated[
    str,
    Rule(f"{_READABLE_RULE} with a namespace, or {_UNGUESSABLE_RULE} without one"),
    Field(
        min_length=1,
        max_length=200,
        pattern="^[!-~]+$",
        description=f"Names the work. With a namespace: {_READABLE_RULE}. Without one the key is itself the secret: "
        f"{_UNGUESSABLE_RULE}. The same key in two namespaces, or with and without one, is two leases.",
    ),
]


OwnToken = Annotated[
    str, Field(description="The owner token of your grant: as the grant gave it, or as you brought it.")
]


def _small_enough(result: RawJson) -> RawJson:
    size = result.size
    if size > LARGEST_RESULT:
        raise fault(
            f"The result is {size} bytes and may be {LARGEST_RESULT}; nothing was recorded and the lease stays held",
            code=Code.RESULT_TOO_LARGE,
            members={"size_bytes": size, "limit_bytes": LARGEST_RESULT},
        )
    return result


class OfKey(Members):
    """What every route about a key takes."""

    key: Key
    namespace: Namespace | None = None

    @model_validator(mode="after")
    def _key_fits_its_namespace(self) -> Self:
        if self.namespace is not None:
            if not _readable_key(self.key):
                raise fault(f"key must be {_READABLE_RULE}", field="key")
        elif not _unguessable_key(self.key) or len(set(self.key)) < _LEAST_DISTINCT:
            raise fault(
                f"key must be {_UNGUESSABLE_RULE} where no namespace is sent",
                field="key",
                fix="Send the namespace that POST /services/v1/lease/namespace gave you to use short readable keys, "
                "or use a long random key.",
            )
        return self


class AcquireLease(OfKey):
    """`POST /lease`, `POST /lease/acquire`."""

    ttl_seconds: TtlSeconds = 60
    fingerprint: Fingerprint | None = None
    owner_token: LeaseOwnerToken | None = None
    wait_seconds: WaitSeconds = 0
    holder: Holder | None = None


class RenewLease(OfKey):
    """`POST /lease/renew`. A malformed owner token is simply lost, here and on the next two."""

    owner_token: OwnToken
    ttl_seconds: TtlSeconds = 60


class ReleaseLease(OfKey):
    """`POST /lease/release`."""

    owner_token: OwnToken


class CompleteLease(OfKey):
    """`POST /lease/complete`. A result over the limit is refused with 413."""

    owner_token: OwnToken
    result: Annotated[Raw, AfterValidator(_small_enough)] = Field(
        description=f"What the work came to: any JSON value, null included, at most {LARGEST_RESULT} bytes as sent. "
        "Kept as sent, with values under names such as password or token redacted. A secret inside an ordinary value "
        "is not found."
    )


class LeaseStatus(OfKey):
    """`POST /lease/status`."""


class VerifyLease(OfKey):
    """`POST /lease/verify`."""

    fencing_token: Fence


class CheckLease(OfKey):
    """Status, and where a fence is given what that fence is worth: one question for agents."""

    fencing_token: Fence | None = None


def namespace_minted(namespace: str) -> Reply:
    """201 with a new namespace."""
    body: NamespaceAnswer = {"ok": True, "namespace": namespace, "entropy_bits": 256}
    return Reply(201, body)


def acquired(outcome: Granted | Held | Conflict | Completed | Lost, owner_token: str) -> Reply:
    """The answer to an acquire. `owner_token` is the one that was asked with, shown only where it was granted."""
    match outcome:
        case Granted():
            return _granted(outcome, owner_token)
        case Held():
            return _held(outcome)
        case Conflict():
            members = pair("absolute_expires_at", outcome.absolute_expires_at)
            return refusal(Code.LEASE_CONFLICT, status="conflict", members=members)
        case Completed():
            return _completed(outcome)
        case Lost():
            return _lost(outcome)
        case _:
            assert_never(outcome)


def renewed(outcome: Renewed | Lost) -> Reply:
    """The answer to a renewal."""
    match outcome:
        case Renewed(record=record):
            body: RenewedAnswer = {
                "ok": True,
                "status": "held",
                "ttl_seconds": record.ttl_seconds,
                "fencing_token": record.fence,
                "lease_expires_at": iso(record.lease_expires_at),
                "lease_expires_at_timestamp": seconds_down(record.lease_expires_at),
                "absolute_expires_at": iso(record.absolute_expires_at),
                "absolute_expires_at_timestamp": seconds_down(record.absolute_expires_at),
            }
            return Reply(200, body)
        case Lost():
            return _lost(outcome)
        case _:
            assert_never(outcome)


def released(outcome: Released | Lost) -> Reply:
    """The answer to a release."""
    match outcome:
        case Released(record=record):
            body: ReleasedAnswer = {"ok": True, "status": "released", "fencing_token": record.fence}
            if outcome.repeated:
                body["repeated"] = True
            return Reply(200, body)
        case Lost():
            return _lost(outcome)
        case _:
            assert_never(outcome)


def completed(outcome: Completed | Lost) -> Reply:
    """The answer to a completion."""
    match outcome:
        case Completed():
            return _completed(outcome)
        case Lost():
            return _lost(outcome)
        case _:
            assert_never(outcome)


def status(outcome: Status) -> Reply:
    """The answer to a question about a key."""
    record = outcome.record
    body: StatusAnswer = {"ok": True, "status": outcome.status, "attempt": outcome.attempt}
    if record is None:
        return Reply(200, body)
    body["fencing_token"] = record.fence
    if outcome.status == "held":
        body["retry_after_seconds"] = seconds_up(outcome.left)
        body["lease_expires_at"] = iso(record.lease_expires_at)
        body["lease_expires_at_timestamp"] = seconds_down(record.lease_expires_at)
        body["absolute_expires_at"] = iso(record.absolute_expires_at)
        body["absolute_expires_at_timestamp"] = seconds_down(record.absolute_expires_at)
    if outcome.status == "completed" and record.completed_at is not None:
        body["completed_at"] = iso(record.completed_at)
        body["completed_at_timestamp"] = seconds_down(record.completed_at)
    if outcome.status != "free" and record.holder is not None:
        body["holder"] = record.holder.decode("utf-8")
    return Reply(200, body)


def verified(outcome: Verified) -> Reply:
    """The answer to a question about a fence."""
    body: VerifiedAnswer = {"ok": True, "current": outcome.fence == "current", "fence": outcome.fence}
    return Reply(200, body)


def checked(outcome: Status, fence: Verified | None) -> Reply:
    """The answer to both questions at once: that of a fence only where one was asked about."""
    known = status(outcome)
    return known if fence is None else Reply(200, {**known.body, **verified(fence).body})


def _granted(outcome: Granted, owner_token: str) -> Reply:
    record = outcome.record
    body: GrantedAnswer = {
        "ok": True,
        "status": "held",
        "owner_token": owner_token,
        "ttl_seconds": record.ttl_seconds,
        "fencing_token": record.fence,
        "lease_expires_at": iso(record.lease_expires_at),
        "lease_expires_at_timestamp": seconds_down(record.lease_expires_at),
        "absolute_expires_at": iso(record.absolute_expires_at),
        "absolute_expires_at_timestamp": seconds_down(record.absolute_expires_at),
        "attempt": record.attempt,
    }
    if outcome.repeated:
        body["repeated"] = True
    return Reply(201, body)


def _held(outcome: Held) -> Reply:
    record = outcome.record
    wait = seconds_up(outcome.left)
    members = {
        "retry_after_seconds": wait,
        "fencing_token": record.fence,
        **pair("lease_expires_at", record.lease_expires_at),
        **pair("absolute_expires_at", record.absolute_expires_at),
    }
    if record.holder is not None:
        members["holder"] = record.holder.decode("utf-8")
        members |= pair("held_since_at", record.granted_at)
    return refusal(Code.LEASE_HELD, status="held", members=members, headers=retry_after(wait))


def _completed(outcome: Completed) -> Reply:
    record = outcome.record
    assert record.completed_at is not None
    body: CompletedAnswer = {
        "ok": True,
        "status": "completed",
        "completed_at": iso(record.completed_at),
        "completed_at_timestamp": seconds_down(record.completed_at),
        "result": _result(record),
        "fencing_token": record.fence,
        "absolute_expires_at": iso(record.absolute_expires_at),
        "absolute_expires_at_timestamp": seconds_down(record.absolute_expires_at),
    }
    if outcome.repeated:
        body["repeated"] = True
    return Reply(200, body)


def _result(record: LeaseRecord) -> RawJson:
    assert record.result is not None
    return RawJson(record.result.decode("utf-8"))


_Reason = Literal["lost", "already_completed", "broken"]
_LOST: dict[_Reason, tuple[Code, str | None]] = {
    "lost": (Code.LEASE_LOST, None),
    "already_completed": (Code.ALREADY_COMPLETED, "It was completed already with another result, which stands"),
    "broken": (Code.LEASE_LOST, "An operator took the lease from this owner token"),
}


def _lost(outcome: Lost) -> Reply:
    code, error = _LOST[outcome.reason]
    members = {"reason": "broken"} if outcome.reason == "broken" else None
    return refusal(code, status="lost", error=error, members=members)
