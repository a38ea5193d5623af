"""So many of something for each address and UTC day.

Counting every request in the database would cost a write for each. So a process reserves a *block* durably, a
hundredth of the limit at most, and hands it out from memory: what is stored is never less than what was used. A
crash therefore loses at most one block of somebody's allowance and never lets anybody past the limit. Small limits
have blocks of one and are exact.
"""

from dataclasses import dataclass

from app.core.instants import DAY_SECONDS, SECOND, seconds_up

_LARGEST_BLOCK = 32
_SHARE_OF_LIMIT = 100


@dataclass(frozen=True, slots=True)
class Counted:
    """It was counted and may go on."""

    limit: int
    remaining: int
    reset_seconds: int
    """Until UTC midnight, rounded up."""


@dataclass(frozen=True, slots=True)
class Exhausted:
    """Nothing is left for this address today."""

    limit: int
    reset_seconds: int


def day_of(now: int) -> int:
    """The UTC day as a number since the epoch."""
    return now // (DAY_SECONDS * SECOND)


def seconds_to_midnight(now: int) -> int:
    """Until the next UTC midnight, rounded up, 1 to 86,400."""
    return seconds_up((day_of(now) + 1) * DAY_SECONDS * SECOND - now)


def block_of(limit: int, used: int) -> int:
    """How much a process may reserve at once: at least one, never past the limit; 0 when nothing is left."""
    return max(0, min(limit - used, max(1, min(_LARGEST_BLOCK, limit // _SHARE_OF_LIMIT))))
