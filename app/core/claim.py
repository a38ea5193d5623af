"""Claim an action exactly once, before the side effect that must not happen twice.

    FREE ──claim──▶ UNFINISHED ──complete──▶ COMPLETED
     ▲               │  ▲   │                    │
     │   release, or │  └───┘ takeover, once     │ its ttl ends
     │   ttl ends    │        the lease lapsed   │
     └───────────────┴───────────────────────────┘

An unfinished claim is *leased* or not. Without a lease nobody gets past it before its ttl ends: whoever crashed in
the middle may have charged the card, and only a person can know. With a lease the caller said that another may try
again once the lease lapsed. Both wishes are common, so both exist and the caller names one by `lease_ttl`.

Nobody writes an end. A claim is over when `now >= expires_at`, a lease has lapsed when `now >= lease_expires_at`;
a release moves `expires_at` to now, so a released claim and one that ran out are the same to everybody.

Invariants, named by the tests that prove them:

O1  At any instant at most one claim of an action is live, and one claimant is current.
O2  A claim without a lease has one claimant from its first to its last microsecond.
O3  A takeover happens only from `lease_expires_at` on, of an unfinished claim. It keeps `expires_at`, and brings a
    new claimant, a new `claimed_at`, a higher fence and the next attempt.
O4  A recorded result is never replaced: completing again answers with the first one, and a late claimant that names
    itself cannot complete over its successor.
O5  Another payload (both known) is a conflict whatever the state, decided before everything else.
O6  Every new claimant has a fence above every earlier one of the action; a repeat and a renewal keep it.
O7  A ttl is `now` + whole seconds, never less; a lease likewise, except that no lease outlives its claim.
O8  A refusal changes nothing, except that conflicts are counted for the operator.
O9  Nothing recorded, a recorded `null` and a result that cannot be read back are three things.

The hard corner is the holder of a lapsed lease that nobody took over. The work may well be done, so it may still
complete (as any holder of the namespace token may), but it cannot renew: it would go on without knowing that
another had been free to start. A claim by its own token then is a takeover like any other, with a new fence.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from app.core.instants import SECOND

LARGEST_RESULT_BYTES = 16_384
LONGEST_TTL_SECONDS = 31_536_000
DEFAULT_TTL_SECONDS = 86_400

Recorded = Literal["nothing", "result", "unreadable"]


@dataclass(frozen=True, slots=True)
class ClaimRecord:
    """What is stored of an action's newest claim. Digests are 32 bytes, instants microseconds.

    `changed_at` is the instant of the last change: no later decision is taken at an earlier one, whatever the
    database's clock says. `result_hash` is there when a result was recorded, so that a damaged one is noticed.
    """

    claimant_hash: bytes
    fence: int
    attempt: int
    claimed_at: int
    changed_at: int
    expires_at: int
    lease_expires_at: int | None
    payload_hash: bytes | None = None
    completed_at: int | None = None
    result: bytes | None = None
    result_hash: bytes | None = None
    conflicts: int = 0

    def is_live(self, now: int) -> bool:
        """Whether it stands at all, unfinished or completed."""
        return now < self.expires_at

    def is_completed(self) -> bool:
        """Whether it was completed; a live one keeps its result."""
        return self.completed_at is not None

    def is_lapsed(self, now: int) -> bool:
        """Whether it is unfinished and its lease ran out, so that another may take over."""
        return self.completed_at is None and self.lease_expires_at is not None and now >= self.lease_expires_at

    def recorded(self) -> Recorded:
        """What a completed claim has to show: nothing, its result, or one that is not what was stored."""
        if self.result_hash is None:
            return "nothing"
        if self.result is None or hashlib.sha256(self.result).digest() != self.result_hash:
            return "unreadable"
        return "result"


@dataclass(frozen=True, slots=True)
class ClaimAsk:
    """A wish to be the one: the digest of the claimant's token, ttls of 1 to 31,536,000 seconds, the payload's digest.

    Without `lease_ttl_seconds` the claim is held for its whole ttl.
    """

    claimant_hash: bytes
    ttl_seconds: int = DEFAULT_TTL_SECONDS
    lease_ttl_seconds: int | None = None
    payload_hash: bytes | None = None


@dataclass(frozen=True, slots=True)
class Claimed:
    """The caller is the one. `repeated`: it was already, by the token that it brought; nothing changed."""

    record: ClaimRecord
    repeated: bool = False

    @property
    def recovered(self) -> bool:
        """Whether somebody before may have begun the work."""
        return self.record.attempt > 1


@dataclass(frozen=True, slots=True)
class InProgress:
    """Another is at it under a live lease."""

    record: ClaimRecord
    left: int
    """Microseconds until the lease ends, above 0."""


@dataclass(frozen=True, slots=True)
class ClaimHeld:
    """Another is at it, or died over it, without a lease."""

    record: ClaimRecord
    left: int
    """Microseconds until the claim ends, above 0."""


@dataclass(frozen=True, slots=True)
class Duplicate:
    """It has been done; the record holds what came of it."""

    record: ClaimRecord


@dataclass(frozen=True, slots=True)
class ClaimConflict:
    """The action is bound to another payload. The record counts the conflict and shows nothing else."""

    record: ClaimRecord


@dataclass(frozen=True, slots=True)
class NoClaim:
    """Nothing live to act on."""


@dataclass(frozen=True, slots=True)
class ClaimLost:
    """The caller named itself as claimant and is not the current one, or its lease lapsed."""


@dataclass(frozen=True, slots=True)
class ClaimCompleted:
    """The result stands from now on."""

    record: ClaimRecord


@dataclass(frozen=True, slots=True)
class AlreadyCompleted:
    """A result stood before; nothing was overwritten."""

    record: ClaimRecord


@dataclass(frozen=True, slots=True)
class ResultTooLarge:
    """The claim stays open, to be completed again with less. `size` in bytes."""

    size: int


@dataclass(frozen=True, slots=True)
class ClaimReleased:
    """The action is free at once."""

    record: ClaimRecord


@dataclass(frozen=True, slots=True)
class ClaimRenewed:
    """The end of the lease was replaced."""

    record: ClaimRecord


@dataclass(frozen=True, slots=True)
class NotLeased:
    """There is no lease to renew: the claim is held for its whole ttl."""


@dataclass(frozen=True, slots=True)
class ClaimNotBroken:
    """It is not unfinished under the fence that the operator saw; `fence` is the live one's, if any."""

    fence: int | None


@dataclass(frozen=True, slots=True)
class ClaimStatus:
    """Where the action stands. `record` is None while it is free."""

    status: Literal["free", "in_progress", "held", "lapsed", "completed"]
    record: ClaimRecord | None


def claim(
    record: ClaimRecord | None, ask: ClaimAsk, draw_fence: Callable[[], int], now: int
) -> Claimed | InProgress | ClaimHeld | Duplicate | ClaimConflict:
    """Make the caller the one, if nobody is. `draw_fence` is called only for a new claimant."""
    now = _at(record, now)
    if record is None or not record.is_live(now):
        return Claimed(_first_claim(ask, draw_fence(), now))
    if None not in (record.payload_hash, ask.payload_hash) and record.payload_hash != ask.payload_hash:
        return ClaimConflict(replace(record, conflicts=record.conflicts + 1))
    if record.is_completed():
        return Duplicate(record)
    if record.is_lapsed(now):
        return Claimed(_takeover(record, ask, draw_fence(), now))
    if record.claimant_hash == ask.claimant_hash:
        return Claimed(record, repeated=True)
    if record.lease_expires_at is not None:
        return InProgress(record, record.lease_expires_at - now)
    return ClaimHeld(record, record.expires_at - now)


def complete(
    record: ClaimRecord | None, claimant_hash: bytes | None, result: bytes | None, ttl_seconds: int, now: int
) -> ClaimCompleted | AlreadyCompleted | NoClaim | ClaimLost | ResultTooLarge:
    """Record the result (None: nothing) and keep it for `ttl_seconds` from now.

    `claimant_hash` is None for a holder of the namespace token that does not say which claimant it is. A result that
    stands is answered whoever asks and whatever was sent.
    """
    now = _at(record, now)
    if record is None or not record.is_live(now):
        return NoClaim()
    if record.is_completed():
        return AlreadyCompleted(record)
    if claimant_hash is not None and claimant_hash != record.claimant_hash:
        return ClaimLost()
    if result is not None and len(result) > LARGEST_RESULT_BYTES:
        return ResultTooLarge(len(result))
    return ClaimCompleted(
        replace(
            record,
            changed_at=now,
            completed_at=now,
            expires_at=now + ttl_seconds * SECOND,
            lease_expires_at=None,
            result=result,
            result_hash=None if result is None else hashlib.sha256(result).digest(),
        )
    )


def release(
    record: ClaimRecord | None, claimant_hash: bytes | None, now: int
) -> ClaimReleased | AlreadyCompleted | NoClaim | ClaimLost:
    """Give an unfinished claim up: the next one is as if there had been none."""
    now = _at(record, now)
    if record is None or not record.is_live(now):
        return NoClaim()
    if record.is_completed():
        return AlreadyCompleted(record)
    if claimant_hash is not None and claimant_hash != record.claimant_hash:
        return ClaimLost()
    return ClaimReleased(_end(record, now))


def renew(
    record: ClaimRecord | None, claimant_hash: bytes, lease_ttl_seconds: int, now: int
) -> ClaimRenewed | AlreadyCompleted | NoClaim | ClaimLost | NotLeased:
    """Replace the end of a live lease by now + `lease_ttl_seconds`, cut to the claim's own end."""
    now = _at(record, now)
    if record is None or not record.is_live(now):
        return NoClaim()
    if record.is_completed():
        return AlreadyCompleted(record)
    if claimant_hash != record.claimant_hash:
        return ClaimLost()
    if record.lease_expires_at is None:
        return NotLeased()
    if record.is_lapsed(now):
        return ClaimLost()
    lease_expires_at = min(now + lease_ttl_seconds * SECOND, record.expires_at)
    return ClaimRenewed(replace(record, changed_at=now, lease_expires_at=lease_expires_at))


def give_back(record: ClaimRecord | None, claimant_hash: bytes, now: int) -> ClaimReleased | ClaimLost:
    """Undo a claim whose caller hung up before it was told.

    A first claim is released. A takeover is left lapsed and not free, for the next one has to hear that somebody
    before the caller may have begun.
    """
    now = _at(record, now)
    if record is None or not record.is_live(now) or record.is_completed() or record.claimant_hash != claimant_hash:
        return ClaimLost()
    if record.attempt == 1:
        return ClaimReleased(_end(record, now))
    return ClaimReleased(replace(record, changed_at=now, lease_expires_at=now))


def break_off(record: ClaimRecord | None, fence: int, now: int) -> ClaimReleased | ClaimNotBroken:
    """Release the unfinished claim with this very fence, for an operator; another one meanwhile is left alone."""
    now = _at(record, now)
    if record is None or not record.is_live(now):
        return ClaimNotBroken(None)
    if record.is_completed() or record.fence != fence:
        return ClaimNotBroken(record.fence)
    return ClaimReleased(_end(record, now))


def status(record: ClaimRecord | None, now: int) -> ClaimStatus:
    """Where the action stands; changes nothing."""
    now = _at(record, now)
    if record is None or not record.is_live(now):
        return ClaimStatus("free", None)
    if record.is_completed():
        return ClaimStatus("completed", record)
    if record.is_lapsed(now):
        return ClaimStatus("lapsed", record)
    return ClaimStatus("held" if record.lease_expires_at is None else "in_progress", record)


def _at(record: ClaimRecord | None, now: int) -> int:
    return now if record is None else max(now, record.changed_at)


def _end(record: ClaimRecord, now: int) -> ClaimRecord:
    return replace(record, changed_at=now, expires_at=now, lease_expires_at=None)


def _first_claim(ask: ClaimAsk, fence: int, now: int) -> ClaimRecord:
    expires_at = now + ask.ttl_seconds * SECOND
    return ClaimRecord(
        claimant_hash=ask.claimant_hash,
        fence=fence,
        attempt=1,
        claimed_at=now,
        changed_at=now,
        expires_at=expires_at,
        lease_expires_at=_lease_end(ask, expires_at, now),
        payload_hash=ask.payload_hash,
    )


def _takeover(record: ClaimRecord, ask: ClaimAsk, fence: int, now: int) -> ClaimRecord:
    return replace(
        record,
        claimant_hash=ask.claimant_hash,
        fence=fence,
        attempt=record.attempt + 1,
        claimed_at=now,
        changed_at=now,
        lease_expires_at=_lease_end(ask, record.expires_at, now),
        payload_hash=ask.payload_hash or record.payload_hash,
    )


def _lease_end(ask: ClaimAsk, expires_at: int, now: int) -> int | None:
    if ask.lease_ttl_seconds is None:
        return None
    return min(now + ask.lease_ttl_seconds * SECOND, expires_at)
