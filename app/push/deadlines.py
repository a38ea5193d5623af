"""Ends that nobody writes: a lease lapses and a handoff expires by comparison, so a timer has to say when to look.

One heap, one greenlet. It sleeps to the soonest deadline, at most `longest_nap_seconds`, because the deciding
clock can run ahead of real time in test mode. A deadline may be a year away and its listener gone in a second, so
those that nobody listens for any more are thrown out whenever the heap has doubled.
"""

import heapq

import gevent
from gevent.event import Event

from app.clock import MICROSECONDS, Clock
from app.push.hub import Hub

_LEAST_ROOM = 1_024


class Deadlines:
    """Rings a topic at an instant of the deciding clock."""

    def __init__(self, clock: Clock, hub: Hub, *, longest_nap_seconds: float = 1.0) -> None:
        self._clock = clock
        self._hub = hub
        self._longest_nap = longest_nap_seconds
        self._heap: list[tuple[int, str]] = []
        self._waiting: set[tuple[int, str]] = set()
        self._roomy = _LEAST_ROOM
        self._sooner = Event()
        self._greenlet: gevent.Greenlet[[], None] | None = None

    def at(self, topic: str, instant: int) -> None:
        """Ring `topic` once `instant` (microseconds since the epoch) has come, if somebody listens by then.

        Listen first: a deadline without a listener may be forgotten.
        """
        entry = (instant, topic)
        if entry in self._waiting:
            return
        if len(self._heap) >= self._roomy:
            self._forget_unheard()
        self._waiting.add(entry)
        heapq.heappush(self._heap, entry)
        if self._greenlet is None:
            self._greenlet = gevent.spawn(self._run)
        elif self._heap[0] is entry:
            self._sooner.set()

    def kept(self) -> int:
        """How many deadlines are remembered."""
        return len(self._heap)

    def stop(self) -> None:
        """End the timer."""
        if self._greenlet is not None:
            self._greenlet.kill()
            self._greenlet = None

    def _forget_unheard(self) -> None:
        listened = set(self._hub.listened())
        self._heap = [entry for entry in self._heap if entry[1] in listened]
        heapq.heapify(self._heap)
        self._waiting = set(self._heap)
        self._roomy = max(_LEAST_ROOM, 2 * len(self._heap))

    def _run(self) -> None:
        while True:
            self._ring_due()
            nap = self._longest_nap
            if self._heap:
                nap = min(nap, max(0.0, (self._heap[0][0] - self._clock.now()) / MICROSECONDS))
            self._sooner.wait(nap)
            self._sooner.clear()

    def _ring_due(self) -> None:
        due: list[str] = []
        while self._heap and self._heap[0][0] <= self._clock.now():
            entry = heapq.heappop(self._heap)
            self._waiting.discard(entry)
            due.append(entry[1])
        self._hub.ring(due)
