"""Who listens to what in this process.

Listen first, then look at the row, then wait: a commit between the look and the wait has already rung the
ticket, so it cannot be missed. A ticket that was rung ten times while its owner looked elsewhere is rung once.

A ring may be a late or empty hint. A commit that this process made is more than that: it is told before its own
caller is answered, so one that is told to a ticket came after the ticket, and is news even to somebody who did not
know what there was before.

All calls are made on the event loop; another thread passes a signal in through the engine's loop callback.
"""

from collections.abc import Callable, Collection, Iterable
from types import TracebackType
from typing import Self

import gevent
from gevent.event import Event

from app.clock import monotonic
from app.spread import Spread


class Ticket:
    """A place among the listeners of some topics. Use it as a context manager."""

    def __init__(self, hub: "Hub", topics: Iterable[str]) -> None:
        self._hub = hub
        self._topics = set(topics)
        self._rung = Event()
        self._rung_at: float | None = None
        self.has_seen_commit = False
        """Whether this process committed to one of the topics while it listened."""

    def __enter__(self) -> Self:
        for topic in self._topics:
            self._hub.join(topic, self.ring)
            self._hub.witness(topic, self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        for topic in self._topics:
            self._hub.leave(topic, self.ring)
            self._hub.unwitness(topic, self)

    def ring(self) -> None:
        """Say that there may be something to see."""
        if self._rung_at is None:
            self._rung_at = monotonic()
        self._rung.set()

    def wait(self, timeout_seconds: float) -> bool:
        """Sleep until rung, the hub stops, or the time is up; then forget the ring.

        True when rung (or stopping), False on time-out. Monotonic seconds; 0 or less does not sleep.
        """
        if self._hub.stopping:
            return True
        slept = not self._rung.is_set()
        rung = bool(self._rung.wait(max(0.0, timeout_seconds)))
        if self._rung_at is not None and slept:
            self._hub.wakes.note(monotonic() - self._rung_at)
        self._rung_at = None
        self._rung.clear()
        return rung


class Hub:
    """An index from a topic to whoever wants to hear of it."""

    def __init__(self) -> None:
        self._listeners: dict[str, set[Callable[[], None]]] = {}
        self._witnesses: dict[str, set[Ticket]] = {}
        self._relays: list[Callable[[list[str]], None]] = []
        self.stopping = False
        self.wakes = Spread()
        """Seconds from a signal to the moment at which a sleeping caller went on."""

    def relay(self, tell: Callable[[list[str]], None]) -> None:
        """Tell this of every commit too: for other processes."""
        self._relays.append(tell)

    def listen(self, *topics: str) -> Ticket:
        """A ticket for these topics; it listens while its context is open."""
        return Ticket(self, topics)

    def join(self, topic: str, ring: Callable[[], None]) -> None:
        """Call `ring` at every signal of the topic. It must not block."""
        self._listeners.setdefault(topic, set()).add(ring)

    def leave(self, topic: str, ring: Callable[[], None]) -> None:
        """Stop calling it; unknown pairs are ignored."""
        listeners = self._listeners.get(topic)
        if listeners is not None:
            listeners.discard(ring)
            if not listeners:
                del self._listeners[topic]

    def witness(self, topic: str, ticket: Ticket) -> None:
        """Tell this ticket of commits to the topic."""
        self._witnesses.setdefault(topic, set()).add(ticket)

    def unwitness(self, topic: str, ticket: Ticket) -> None:
        """Stop telling it; unknown pairs are ignored."""
        witnesses = self._witnesses.get(topic)
        if witnesses is not None:
            witnesses.discard(ticket)
            if not witnesses:
                del self._witnesses[topic]

    def committed(self, topics: Collection[str]) -> None:
        """Signal topics that this process has just committed to, before it answers whoever asked for it."""
        for topic in topics:
            for ticket in self._witnesses.get(topic, ()):
                ticket.has_seen_commit = True
            self.ring([topic])
        for tell in self._relays:
            tell(list(topics))

    def ring(self, topics: Iterable[str]) -> None:
        """Signal these topics to their listeners."""
        for topic in topics:
            for ring in tuple(self._listeners.get(topic, ())):
                ring()

    def listened(self) -> list[str]:
        """The topics somebody listens to now."""
        return list(self._listeners)

    def stop(self) -> None:
        """Wake everyone for good: the server is going away."""
        self.stopping = True
        for topic in self.listened():
            self.ring([topic])
        gevent.sleep(0)
