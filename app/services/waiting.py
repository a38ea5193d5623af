"""Waiting in line for something that one caller at a time can have: a lease, or an unfinished claim.

The rules of what is granted stay in core; this is only the order of looking and sleeping, and it is the same for
both. A *try* may take the thing, in a write transaction. A *look* only reads: for callers who may not take it because
others stand before them. A caller who finds the thing free with a line before it steps behind that line, so that
nobody who hammers without waiting overtakes those who wait; it is answered as soon as the head has been served.
"""

from collections import OrderedDict
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Generic, TypeVar

import gevent

from app.clock import monotonic
from app.services.ports import Caller, Deadlines, HungUp, Lines, Seats

Outcome = TypeVar("Outcome")

_BUSY_SECONDS = 1.0
_MOST_BUSY = 10_000
_SETTLE_SECONDS = 1.0
_SETTLE_STEP_SECONDS = 0.01


@dataclass(frozen=True, slots=True)
class Wish(Generic[Outcome]):
    """What one caller wants, as five questions.

    `attempt(urgent)` tries in a transaction. `look()` reads; it answers None where an attempt would take the thing.
    `busy_until(outcome)` is the instant at which somebody else's ownership ends, None for any outcome that is not
    "somebody has it". `is_taken(outcome)` says that this caller now owns something that must not be left to a closed
    connection, and `undo(outcome)` gives it back.
    """

    topic: str
    identity: bytes
    attempt: Callable[[bool], Outcome]
    look: Callable[[], Outcome | None]
    busy_until: Callable[[Outcome], int | None]
    is_taken: Callable[[Outcome], bool]
    undo: Callable[[Outcome], object]


class Waiting:
    """Runs wishes against the lines of this process. `looks_first`: there are lines in other processes too."""

    def __init__(self, lines: Lines, deadlines: Deadlines, seats: Seats, *, looks_first: bool = False) -> None:
        self._lines = lines
        self._deadlines = deadlines
        self._seats = seats
        self._looks_first = looks_first
        self._busy: OrderedDict[str, float] = OrderedDict()

    def fulfil(self, wish: Wish[Outcome], wait_seconds: int, caller: Caller) -> Outcome:
        """The outcome at once, or after up to `wait_seconds` in line. Raises HungUp, or Full from the seats."""
        if self._lines.length(wish.topic) == 0:
            outcome = self._fresh(wish)
        elif wait_seconds:
            return self._in_line(wish, wait_seconds, caller)
        else:
            outcome = self._settled(wish)
        if wait_seconds and wish.busy_until(outcome) is not None:
            return self._in_line(wish, wait_seconds, caller)
        return outcome

    def in_line(self, topic: str) -> int:
        """How many callers of this process stand in line for the topic."""
        return self._lines.length(topic)

    def _in_line(self, wish: Wish[Outcome], wait_seconds: int, caller: Caller) -> Outcome:
        give_up_at = monotonic() + wait_seconds
        with ExitStack() as stack:
            stack.enter_context(self._seats.seat())
            place = stack.enter_context(self._lines.place(wish.topic, wish.identity, caller.is_open))
            stack.enter_context(caller.on_hang_up(place.wake))
            is_woken = False
            while True:
                outcome = self._turn(wish, may_try=place.is_first(), is_woken=is_woken)
                is_woken = True
                if outcome is not None:
                    busy_until = wish.busy_until(outcome)
                    if busy_until is None:
                        return self._served(wish, outcome, caller)
                    self._deadlines.at(wish.topic, busy_until)
                match place.wait(give_up_at - monotonic()):
                    case "gone":
                        raise HungUp
                    case "time" | "stopping":
                        break
        return self._settled(wish)

    def _fresh(self, wish: Wish[Outcome]) -> Outcome:
        """A first try. Where it costs a lock in a far database, what was busy a moment ago is only looked at first."""
        if self._looks_first and monotonic() < self._busy.get(wish.topic, 0.0):
            seen = wish.look()
            if seen is not None and wish.busy_until(seen) is not None:
                return seen
        outcome = wish.attempt(False)
        if self._looks_first and wish.busy_until(outcome) is not None:
            self._busy[wish.topic] = monotonic() + _BUSY_SECONDS
            self._busy.move_to_end(wish.topic)
            if len(self._busy) > _MOST_BUSY:
                self._busy.popitem(last=False)
        return outcome

    def _turn(self, wish: Wish[Outcome], *, may_try: bool, is_woken: bool) -> Outcome | None:
        """What a caller in line finds. Where heads of other processes try too, a woken one looks before it locks."""
        if not may_try or (is_woken and self._looks_first):
            outcome = wish.look()
            if outcome is not None or not may_try:
                return outcome
        return wish.attempt(True)

    def _served(self, wish: Wish[Outcome], outcome: Outcome, caller: Caller) -> Outcome:
        if not wish.is_taken(outcome):
            self._lines.wake_all(wish.topic)
        elif not caller.is_open():
            wish.undo(outcome)
            raise HungUp
        return outcome

    def _settled(self, wish: Wish[Outcome]) -> Outcome:
        """An answer without taking what somebody in line is about to get; after a second of that, a plain attempt."""
        settle_by = monotonic() + _SETTLE_SECONDS
        while True:
            outcome = wish.look()
            if outcome is not None:
                return outcome
            if self._lines.length(wish.topic) == 0 or monotonic() >= settle_by:
                return wish.attempt(False)
            gevent.sleep(_SETTLE_STEP_SECONDS)
