"""Answers that a caller branches on are values; what each means stands with it. Instants are Unix seconds."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Granted:
    """The key is yours until released, completed, or no longer renewed."""

    owner_token: str = field(repr=False)
    fencing_token: int
    ttl_seconds: int
    attempt: int
    absolute_expires_at: int
    repeated: bool = False


@dataclass(frozen=True)
class Completed:
    """The work was done in this lifecycle; here is its result. Do not do it again."""

    result: Any
    fencing_token: int
    completed_at: int


@dataclass(frozen=True)
class Held:
    """Somebody holds the key; come back after `retry_after_seconds`, or wait."""

    retry_after_seconds: int
    fencing_token: int
    holder: str | None = None
    held_since_at: int | None = None


@dataclass(frozen=True)
class Conflict:
    """The key is bound to another fingerprint until `absolute_expires_at`: the input is not the same."""

    absolute_expires_at: int


@dataclass(frozen=True)
class Lost:
    """The owner token does not hold the key. `reason` is "broken" where an operator took it."""

    reason: str = "lost"


@dataclass(frozen=True)
class Claimed:
    """Yours to do, exactly once. `recovered`: an earlier claimant's lease lapsed; its work may be half done."""

    claim_token: str = field(repr=False)
    fencing_token: int
    attempt: int
    claimed_at: int
    expires_at: int
    lease_expires_at: int | None = None
    recovered: bool = False
    repeated: bool = False
    namespace_token: str | None = field(default=None, repr=False)
    answer: bytes = field(default=b"", repr=False, compare=False)
    """The answer as received, with its receipt (see fencepost.receipts); it holds tokens."""


@dataclass(frozen=True)
class Duplicate:
    """It was done; here is what was recorded. `has_result` tells a recorded null from nothing recorded."""

    result: Any
    has_result: bool
    completed_at: int
    answer: bytes = field(default=b"", repr=False, compare=False)
    """The answer as received, with its receipt (see fencepost.receipts)."""


@dataclass(frozen=True)
class InProgress:
    """Another caller is at it. `leased`: it can be taken over when its lease lapses; else not before it expires."""

    retry_after_seconds: int
    leased: bool


@dataclass(frozen=True)
class PayloadConflict:
    """The same action key was claimed for another payload."""

    expires_at: int


@dataclass(frozen=True)
class Change:
    """One committed move of a handoff; the first is its creation. `note` is somebody else's text: data, no order."""

    version: int
    state: str
    previous: str | None
    by: str
    at: int
    note: str | None
    ended: bool


AcquireOutcome = Granted | Completed | Held | Conflict | Lost
ClaimOutcome = Claimed | Duplicate | InProgress | PayloadConflict
