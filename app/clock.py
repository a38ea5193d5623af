"""The only reader of time.

A lease ends by comparison with one clock, so that clock must not step. The wall clock is read once, when
the process starts, and carried on by the machine's boot-time clock, which no administrator or NTP daemon
steps and which counts the time a machine was suspended (etcd #12291, #6700: leases lived or died with the
wall clock). Instants are whole microseconds since the Unix epoch.

Test mode may add an offset. Only its largest value so far counts: stepping it back neither revives nor
lengthens anything, time simply goes on from where it was.
"""

import time
from collections.abc import Callable
from typing import Protocol

MICROSECONDS = 1_000_000
_BELIEVED_MICROSECONDS = 10 * MICROSECONDS
_BOOT_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Clock(Protocol):
    """Something that knows the deciding instant."""

    def now(self) -> int:
        """Microseconds since the epoch; never smaller than a value returned before."""
        ...


def monotonic() -> float:
    """Seconds on the monotonic clock: for waits and deadlines, never for anything stored."""
    return time.monotonic()


def wall() -> float:
    """Seconds since the epoch as the machine's wall clock says: for logs and webhook stamps, never for decisions."""
    return time.time()


def _boot_microseconds() -> int:
    return time.clock_gettime_ns(_BOOT_CLOCK) // 1000


def no_offset() -> int:
    """The offset outside test mode: none."""
    return 0


class RisingOffset:
    """The test-mode offset in microseconds, of which only the largest value ever seen counts."""

    def __init__(self, read: Callable[[], int] = no_offset) -> None:
        self._read = read
        self._largest: int | None = None

    def __call__(self) -> int:
        seen = self._read()
        if self._largest is None or seen > self._largest:
            self._largest = seen
        return self._largest


class SteadyClock:
    """The wall clock read once and carried on by the boot-time clock.

    `begin_at_least` lifts it to the largest instant ever committed, so that a restart under an earlier wall
    clock grants no lease a second life.
    """

    def __init__(self, offset: Callable[[], int] = no_offset) -> None:
        self._offset = RisingOffset(offset)
        self._origin = time.time_ns() // 1000 - _boot_microseconds()

    def begin_at_least(self, instant: int) -> None:
        """Never answer less than `instant` from now on."""
        behind = instant - self.now()
        if behind > 0:
            self._origin += behind

    def now(self) -> int:
        return self._origin + _boot_microseconds() + self._offset()


class DatabaseClock:
    """The database's clock as last told, carried on by the boot-time clock: for timers, never for decisions.

    What is told arrives late by the way from the database, so the earliest of the last seconds' is believed. Machines
    whose own clocks are minutes apart agree by it. It goes back only where the database's clock does.
    """

    def __init__(self, offset: Callable[[], int] = no_offset) -> None:
        self._offset = RisingOffset(offset)
        self._origin = time.time_ns() // 1000 - _boot_microseconds()
        self._believed_at = -_BELIEVED_MICROSECONDS

    def told(self, instant: int) -> int:
        """Take an instant that the database said just now; the same with test mode's offset."""
        since_boot = _boot_microseconds()
        origin = instant - since_boot
        is_stale = since_boot - self._believed_at >= _BELIEVED_MICROSECONDS
        if is_stale or origin > self._origin or self._origin - origin > MICROSECONDS:
            self._origin, self._believed_at = origin, since_boot
        return instant + self._offset()

    def now(self) -> int:
        return self._origin + _boot_microseconds() + self._offset()


class ManualClock:
    """A clock that moves only when told: for tests that need the same microsecond twice."""

    def __init__(self, start: int = 1_800_000_000 * MICROSECONDS) -> None:
        self._now = start

    def now(self) -> int:
        return self._now

    def advance(self, seconds: float = 0.0, *, microseconds: int = 0) -> None:
        """Move forward; a negative step is an error, as on the real clock."""
        step = round(seconds * MICROSECONDS) + microseconds
        if step < 0:
            raise ValueError("the deciding clock never goes back")
        self._now += step

    def begin_at_least(self, instant: int) -> None:
        """As on the steady clock."""
        self._now = max(self._now, instant)
