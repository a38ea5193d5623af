"""Callers in line for a key: first come, first granted, within this process.

Only the head of a line is woken by a signal, so a release with a thousand callers in line costs one try. A head
that leaves, however it leaves, wakes the next. A caller whose connection is gone is passed over: it is told so
before it tries, and again when it was just granted something, so that no lease goes to nobody (kazoo #732, atlasdb
#2183).

Places with the same identity (one owner token, sent again because the first connection died) share one place: a
wake-up reaches all of them, the first takes the grant and the others find that it is theirs.
"""

from collections.abc import Callable
from types import TracebackType
from typing import Literal, Self

from gevent.event import Event

from app.clock import monotonic
from app.push.hub import Hub

Woken = Literal["look", "time", "gone", "stopping"]
"""Why a caller in line was woken: there may be something for it; its waiting time is up; its connection is closed; the
server is going away."""


class Place:
    """One caller's place in the line of a topic. Use it as a context manager."""

    def __init__(self, lines: "Lines", topic: str, identity: bytes, is_open: Callable[[], bool]) -> None:
        self._lines = lines
        self._topic = topic
        self._woken = Event()
        self._woken_at: float | None = None
        self.identity = identity
        self.is_open = is_open

    def __enter__(self) -> Self:
        self._lines.join(self._topic, self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lines.leave(self._topic, self)

    def wake(self) -> None:
        """Say that there may be something to see."""
        if self._woken_at is None:
            self._woken_at = monotonic()
        self._woken.set()

    def is_first(self) -> bool:
        """Whether nobody with another identity stands before it."""
        return self._lines.is_first(self._topic, self)

    def wait(self, timeout_seconds: float) -> Woken:
        """Sleep until woken or the time is up (monotonic seconds)."""
        if self._lines.is_stopping():
            return "stopping"
        slept = not self._woken.is_set()
        rung = self._woken.wait(max(0.0, timeout_seconds))
        if self._woken_at is not None and slept:
            self._lines.note_wake(monotonic() - self._woken_at)
        self._woken_at = None
        self._woken.clear()
        if self._lines.is_stopping():
            return "stopping"
        if not self.is_open():
            return "gone"
        return "look" if rung else "time"


class _Line:
    """The places of one topic, in order of arrival, those of one identity together."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self.places: dict[bytes, list[Place]] = {}

    def ring(self) -> None:
        """Wake the head; everyone when the server is going away."""
        if self._hub.stopping:
            self.wake_all()
        for place in self.head():
            place.wake()

    def wake_all(self) -> None:
        for places in self.places.values():
            for place in places:
                place.wake()

    def head(self) -> list[Place]:
        for places in self.places.values():
            return places
        return []


class Lines:
    """The lines of this process, by topic."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._lines: dict[str, _Line] = {}

    def note_wake(self, seconds: float) -> None:
        """Count how long a sleeping caller took to go on after it was woken."""
        self._hub.wakes.note(seconds)

    def is_stopping(self) -> bool:
        """Whether the server is going away."""
        return self._hub.stopping

    def place(self, topic: str, identity: bytes, is_open: Callable[[], bool]) -> Place:
        """A place at the end of the topic's line. `is_open` says whether the caller is still connected."""
        return Place(self, topic, identity, is_open)

    def length(self, topic: str) -> int:
        """How many callers stand in line for the topic."""
        line = self._lines.get(topic)
        return 0 if line is None else sum(len(places) for places in line.places.values())

    def total(self) -> int:
        """How many callers stand in any line."""
        return sum(self.length(topic) for topic in self._lines)

    def join(self, topic: str, place: Place) -> None:
        """Stand at the end, or beside the place of the same identity."""
        line = self._lines.get(topic)
        if line is None:
            line = self._lines[topic] = _Line(self._hub)
            self._hub.join(topic, line.ring)
        line.places.setdefault(place.identity, []).append(place)
        self._tell(topic)

    def leave(self, topic: str, place: Place) -> None:
        """Step out; when the head steps out, the next is woken."""
        line = self._lines[topic]
        was_head = place in line.head()
        places = line.places[place.identity]
        places.remove(place)
        if not places:
            del line.places[place.identity]
        if not line.places:
            self._hub.leave(topic, line.ring)
            del self._lines[topic]
        elif was_head:
            line.ring()
        self._tell(topic)

    def _tell(self, topic: str) -> None:
        """Pages show who stands in line: tell those who follow all leases, or all claims."""
        self._hub.ring([f"feed:{topic.partition(':')[0]}s"])

    def is_first(self, topic: str, place: Place) -> bool:
        """Whether the place belongs to the head."""
        return place in self._lines[topic].head()

    def wake_all(self, topic: str) -> None:
        """Let everyone in line look: there is an answer for all, such as a result."""
        line = self._lines.get(topic)
        if line is not None:
            line.wake_all()
