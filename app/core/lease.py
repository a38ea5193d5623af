"""One holder at a time for a key, for a limited time, with a number that only grows.

    (never seen) ──acquire──▶ HELD ──complete──▶ COMPLETED
                      ▲        │ release, break, lapse
                      └─ FREE ◀┘

A *lifecycle* begins with the first acquisition and ends exactly one day later; every state above lives inside
one. FREE and COMPLETED are stored; HELD turns FREE by comparison (`now >= lease_expires_at`), nobody writes that.

Invariants, named by the tests that prove them:

I1  At any instant at most one ownership of a key is live.
I2  A new ownership carries a fence above every earlier one of that key; a renewal keeps it.
I3  `absolute_expires_at` is set by the first acquisition of a lifecycle and never moves.
I4  `lease_expires_at <= absolute_expires_at`, and it is `now` + whole seconds when it is set: a TTL is never short.
I5  An owner token that stopped being live never becomes live again: a lapsed holder stays lost though nobody took
    the key, for otherwise a worker that was paused could pass for its own successor.
I6  A result, once recorded, is what every later caller with the fingerprint gets until the lifecycle ends.
I7  A fingerprint binds the lifecycle: another one (absence is a value too) learns nothing but the absolute end.
I8  A refusal changes nothing.

The hard corner is the last second of a lifecycle. A TTL is whole seconds and at least one, so a lease granted then
would outlive the lifecycle (I3 against I4). So there a free key begins the next lifecycle, a held one stays held but
cannot be renewed, and a completed one stays completed.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from app.core.instants import DAY_SECONDS, SECOND

SpentHow = Literal["released", "completed", "broken", "lapsed"]
Cause = Literal["granted", "renewed", "released", "completed", "broken"]


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """What is stored of a key's lifecycle. Digests are 32 bytes, instants microseconds.

    `owner_hash` is there while an ownership was granted and neither released, completed nor broken; whether it is
    live still depends on the clock. `spent_hash` and `spent_how` remember the last token that gave its ownership
    up, only to recognise a repeated call.
    """

    fingerprint_hash: bytes | None
    owner_hash: bytes | None
    fence: int
    attempt: int
    ttl_seconds: int
    granted_at: int
    lease_expires_at: int
    absolute_expires_at: int
    holder: bytes | None
    completed_at: int | None
    result: bytes | None
    spent_hash: bytes | None
    spent_how: SpentHow | None
    cause: Cause

    def is_over(self, now: int) -> bool:
        """Whether the lifecycle has ended."""
        return now >= self.absolute_expires_at

    def is_completed(self, now: int) -> bool:
        """Whether a result stands."""
        return self.completed_at is not None and not self.is_over(now)

    def is_held(self, now: int) -> bool:
        """Whether an ownership is live."""
        return self.owner_hash is not None and self.completed_at is None and now < self.lease_expires_at

    def is_held_by(self, owner_hash: bytes, now: int) -> bool:
        """Whether this token's ownership is live. Equality of digests of 256-bit secrets leaks nothing by time."""
        return self.is_held(now) and self.owner_hash == owner_hash


@dataclass(frozen=True, slots=True)
class Ask:
    """A wish to hold a key: digests, a TTL of 1 to 86,400 seconds, a label for those who will be refused.

    `brought` says that the caller made the owner token itself, so that it can send the same wish again.
    """

    owner_hash: bytes
    ttl_seconds: int
    fingerprint_hash: bytes | None = None
    holder: bytes | None = None
    brought: bool = False


@dataclass(frozen=True, slots=True)
class Granted:
    """The caller holds the key. `repeated`: it did already, by the token that it brought; nothing changed."""

    record: LeaseRecord
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class Held:
    """Somebody holds it, perhaps the caller's own earlier self."""

    record: LeaseRecord
    left: int
    """Microseconds until the lease ends, above 0."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """The lifecycle is bound to another fingerprint."""

    absolute_expires_at: int


@dataclass(frozen=True, slots=True)
class Completed:
    """A result stands. `repeated`: told again to the owner that recorded it."""

    record: LeaseRecord
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class Lost:
    """The token does not hold the key, for whatever reason."""

    reason: Literal["lost", "already_completed", "broken"] = "lost"


@dataclass(frozen=True, slots=True)
class Renewed:
    """The end was replaced."""

    record: LeaseRecord


@dataclass(frozen=True, slots=True)
class Released:
    """The key is free."""

    record: LeaseRecord
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class Broken:
    """An operator took the key from its holder."""

    record: LeaseRecord


@dataclass(frozen=True, slots=True)
class NotBroken:
    """It is not held under the fence that the operator saw; `fence` is the one now, if any."""

    fence: int | None


@dataclass(frozen=True, slots=True)
class Status:
    """What a stranger who knows the key may know. `record` is None for a key without a lifecycle."""

    status: Literal["free", "held", "completed"]
    record: LeaseRecord | None
    left: int = 0
    """Microseconds until the lease ends, above 0 while held."""
    attempt: int = 0
    """Ownerships in the lifecycle that is on; 0 where none is."""


@dataclass(frozen=True, slots=True)
class Verified:
    """Where a fence stands: the live one, below a newer one, its ownership over, or never seen for this key."""

    fence: Literal["current", "stale", "ended", "unknown"]


def acquire(
    record: LeaseRecord | None, ask: Ask, draw_fence: Callable[[], int], now: int
) -> Granted | Held | Conflict | Completed | Lost:
    """Grant the key if it is free. `draw_fence` is called only for a new ownership."""
    if record is None or _starts_anew(record, now):
        return Granted(_first_ownership(ask, draw_fence(), now))
    if record.fingerprint_hash != ask.fingerprint_hash:
        return Conflict(record.absolute_expires_at)
    if record.is_completed(now):
        return Completed(record)
    if ask.brought and record.is_held_by(ask.owner_hash, now):
        return Granted(record, repeated=True)
    if ask.brought and ask.owner_hash in (record.owner_hash, record.spent_hash):
        return _lost(record, ask.owner_hash)
    if record.is_held(now):
        return Held(record, record.lease_expires_at - now)
    return Granted(_next_ownership(record, ask, draw_fence(), now))


def renew(record: LeaseRecord | None, owner_hash: bytes, ttl_seconds: int, now: int) -> Renewed | Lost:
    """Replace the end of a live lease by now + TTL, cut to the whole seconds left of the lifecycle."""
    if record is None or not record.is_held_by(owner_hash, now):
        return _lost(record, owner_hash)
    granted = _whole_ttl(ttl_seconds, record.absolute_expires_at, now)
    if granted < 1:
        return Lost()
    return Renewed(replace(record, ttl_seconds=granted, lease_expires_at=now + granted * SECOND, cause="renewed"))


def release(record: LeaseRecord | None, owner_hash: bytes, now: int) -> Released | Lost:
    """Free the key at once. A repeat is told the same as long as nobody acquired it since."""
    if record is None or record.is_over(now):
        return Lost()
    if record.is_held_by(owner_hash, now):
        return Released(_spend(record, "released"))
    if record.owner_hash is None and record.spent_how == "released" and record.spent_hash == owner_hash:
        return Released(record, repeated=True)
    return _lost(record, owner_hash)


def complete(record: LeaseRecord | None, owner_hash: bytes, result: bytes, now: int) -> Completed | Lost:
    """Record the result (redacted bytes) and end the ownership. Only an equal result may be sent again."""
    if record is None or record.is_over(now):
        return Lost()
    if record.is_held_by(owner_hash, now):
        return Completed(replace(_spend(record, "completed"), completed_at=now, result=result))
    if record.is_completed(now) and record.spent_hash == owner_hash:
        return Completed(record, repeated=True) if record.result == result else Lost("already_completed")
    return _lost(record, owner_hash)


def break_off(record: LeaseRecord | None, fence: int, now: int) -> Broken | NotBroken:
    """Take the key from the holder with this very fence; another one meanwhile is left alone."""
    if record is not None and record.is_held(now) and record.fence == fence:
        return Broken(_spend(record, "broken"))
    return NotBroken(None if record is None or record.is_over(now) else record.fence)


def status(record: LeaseRecord | None, now: int) -> Status:
    """What anyone with the key may know."""
    if record is None or record.is_over(now):
        return Status("free", record)
    if record.is_completed(now):
        return Status("completed", record, attempt=record.attempt)
    if record.is_held(now):
        return Status("held", record, record.lease_expires_at - now, record.attempt)
    return Status("free", record, attempt=record.attempt)


def verify(record: LeaseRecord | None, fence: int, now: int) -> Verified:
    """Whether a fence is that of the live ownership: for the system that is written to."""
    if record is None or fence > record.fence:
        return Verified("unknown")
    if fence < record.fence:
        return Verified("stale")
    return Verified("current" if record.is_held(now) and not record.is_over(now) else "ended")


def _starts_anew(record: LeaseRecord, now: int) -> bool:
    if record.is_over(now):
        return True
    free = not record.is_completed(now) and not record.is_held(now)
    return free and record.absolute_expires_at - now < SECOND


def _whole_ttl(ttl_seconds: int, absolute_expires_at: int, now: int) -> int:
    return min(ttl_seconds, (absolute_expires_at - now) // SECOND)


def _first_ownership(ask: Ask, fence: int, now: int) -> LeaseRecord:
    end = now + DAY_SECONDS * SECOND
    return _ownership(ask, fence, now, end, attempt=1)


def _next_ownership(record: LeaseRecord, ask: Ask, fence: int, now: int) -> LeaseRecord:
    granted = _ownership(ask, fence, now, record.absolute_expires_at, attempt=record.attempt + 1)
    if record.owner_hash is not None:  # it lapsed, and only now somebody else's ownership says so
        return replace(granted, spent_hash=record.owner_hash, spent_how="lapsed")
    return replace(granted, spent_hash=record.spent_hash, spent_how=record.spent_how)


def _ownership(ask: Ask, fence: int, now: int, end: int, *, attempt: int) -> LeaseRecord:
    granted = _whole_ttl(ask.ttl_seconds, end, now)
    return LeaseRecord(
        fingerprint_hash=ask.fingerprint_hash,
        owner_hash=ask.owner_hash,
        fence=fence,
        attempt=attempt,
        ttl_seconds=granted,
        granted_at=now,
        lease_expires_at=now + granted * SECOND,
        absolute_expires_at=end,
        holder=ask.holder,
        completed_at=None,
        result=None,
        spent_hash=None,
        spent_how=None,
        cause="granted",
    )


def _spend(record: LeaseRecord, how: Literal["released", "completed", "broken"]) -> LeaseRecord:
    return replace(record, owner_hash=None, spent_hash=record.owner_hash, spent_how=how, cause=how)


def _lost(record: LeaseRecord | None, owner_hash: bytes) -> Lost:
    if record is not None and record.spent_how == "broken" and record.spent_hash == owner_hash:
        return Lost("broken")
    return Lost()
