"""A lane carries calls to a native thread and the answers back, and never makes the event loop wait.

A caller is a greenlet (it sleeps on its hub) or a plain thread without a hub (it sleeps on a lock). Calls of one
turn of the loop are handed over together by a timer of zero seconds, which fires when the loop next looks up from
its callbacks (a callback would stand behind all of those): the native thread starts with many at once, instead of
fighting the loop for the interpreter over each. Answers of one group return in one loop callback, which first
signals what was committed and then resumes the callers.

A call is QUEUED, then TAKEN, then DONE. A caller whose patience ends may withdraw a call that is still queued: it
will never run. Of one that is taken nothing is known. The gate makes taking and withdrawing exclude each other.
"""

from _queue import Empty, SimpleQueue
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from gevent import monkey
from gevent._hub_local import get_hub_if_exists
from gevent.hub import Hub, Waiter

from app.clock import monotonic
from app.storage.engine import Unavailable

T = TypeVar("T")
W = TypeVar("W")

new_lock: Callable[[], Any] = monkey.get_original("_thread", "allocate_lock")
start_thread: Callable[..., int] = monkey.get_original("_thread", "start_new_thread")

QUEUED, TAKEN, WITHDRAWN, DONE = range(4)
_LATE = object()
_MOST_RESUMED_IN_A_TURN = 32


class Sleeper(Protocol):
    """How one caller sleeps and is woken."""

    def get(self) -> object: ...

    def switch(self, value: object = None) -> None: ...


class _ThreadSleeper:
    """For a caller without an event loop."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._lock = new_lock()
        self._lock.acquire()

    def get(self) -> object:
        return None if self._lock.acquire(True, self._seconds) else _LATE

    def switch(self, value: object = None) -> None:
        self._lock.release()


class Call(Generic[W]):
    """One piece of work on its way, and what came of it. `apart` asks to be run outside a group."""

    __slots__ = ("apart", "fault", "hub", "sleeper", "state", "topics", "urgent", "value", "work")

    def __init__(self, work: W, *, urgent: bool = False, apart: bool = False) -> None:
        self.work = work
        self.hub: Hub | None = get_hub_if_exists()
        self.urgent = urgent
        self.apart = apart
        self.state = QUEUED
        self.value: Any = None
        self.fault: BaseException | None = None
        self.topics: list[str] = []
        self.sleeper: Sleeper

    def refuse(self, reason: str, *, unknown: bool = False) -> None:
        """Answer that the store is unavailable."""
        self.value, self.topics = None, []
        self.fault = Unavailable(reason, committed="unknown" if unknown else "no")


class _Batch(NamedTuple, Generic[W]):
    """The calls of one turn of one event loop, and the timer that hands them over."""

    calls: list[Call[W]]
    timer: Any


class Lane(Generic[W]):
    """The way to the native threads of one kind. `deadline_seconds` bounds each call, its queueing included."""

    def __init__(
        self,
        name: str,
        *,
        deadline_seconds: float,
        threads: int = 1,
        most_queued: int = 10_000,
        on_commit: Callable[[list[str]], None] | None = None,
    ) -> None:
        self.name = name
        self.deadline_seconds = deadline_seconds
        self.refusal: str | None = None
        self._most_queued = most_queued
        self._on_commit = on_commit
        self._arrived: deque[Call[W]] = deque()
        self._bell: SimpleQueue[None] = SimpleQueue()
        self._urgent: deque[Call[W]] = deque()
        self._patient: deque[Call[W]] = deque()
        self._batches: dict[Hub, _Batch[W]] = {}
        self._busy_since: list[float | None] = [None] * threads
        self._gate = new_lock()

    # Callers' side

    def ask(self, work: W, *, urgent: bool = False) -> Any:
        """Have the work done and return its value. Raises Unavailable, or what the work raised."""
        self._admit()
        return self._send(Call(work, urgent=urgent), self.deadline_seconds)

    def ask_apart(self, work: W, seconds: float) -> Any:
        """Have the work done outside a group, even in a lane that refuses others: to close, or to copy."""
        return self._send(Call(work, apart=True), seconds)

    def _send(self, call: Call[W], seconds: float) -> Any:
        hub = call.hub
        if hub is None:
            self._wait_in_thread(call, seconds)
        else:
            self._wait_in_greenlet(call, hub, seconds)
        if call.fault is not None:
            raise call.fault
        return call.value

    @property
    def queued(self) -> int:
        """How many calls wait to be taken."""
        return len(self._arrived) + len(self._urgent) + len(self._patient)

    @property
    def is_stuck(self) -> bool:
        """Whether every thread has been at one piece of work for longer than the deadline."""
        busy = [since for since in self._busy_since if since is not None]
        return len(busy) == len(self._busy_since) and monotonic() - max(busy) > self.deadline_seconds

    def _admit(self) -> None:
        if self.refusal is not None:
            raise Unavailable(self.refusal, committed="no")
        if self._busy_since[0] is not None and self.is_stuck:
            raise Unavailable(f"the {self.name} has not moved for {self.deadline_seconds:g} s", committed="no")
        if self.queued > self._most_queued:
            raise Unavailable(f"more than {self._most_queued} calls wait for the {self.name}", committed="no")

    def _wait_in_thread(self, call: Call[W], seconds: float) -> None:
        call.sleeper = _ThreadSleeper(seconds)
        self._hand_over([call])
        if call.sleeper.get() is _LATE:
            self._give_up(call)

    def _wait_in_greenlet(self, call: Call[W], hub: Hub, seconds: float) -> None:
        sleeper: Any = Waiter(hub)
        call.sleeper = sleeper
        self._hand_over_soon(call, hub)
        timer = hub.loop.timer(seconds)
        timer.start(sleeper.switch, _LATE, update=True)  # from now, and not from when the loop last looked at a clock
        try:
            if sleeper.get() is _LATE:
                self._give_up(call)
        except BaseException:
            self._withdraw(call)
            raise
        finally:
            timer.close()

    def _hand_over_soon(self, call: Call[W], hub: Hub) -> None:
        batch = self._batches.get(hub)
        if batch is None:
            batch = self._batches[hub] = _Batch([], hub.loop.timer(0.0))
        batch.calls.append(call)
        if len(batch.calls) == 1:
            batch.timer.start(self._hand_over, batch.calls)

    def _hand_over(self, calls: list[Call[W]]) -> None:
        self._arrived.extend(calls)
        for _ in calls:
            self._bell.put(None)
        calls.clear()

    def _withdraw(self, call: Call[W]) -> int:
        """Take back a call if it is still queued; the state in which it was found."""
        with self._gate:
            found = call.state
            if found == QUEUED:
                call.state = WITHDRAWN
        return found

    def _give_up(self, call: Call[W]) -> None:
        found = self._withdraw(call)
        if found == QUEUED:
            raise Unavailable(f"the {self.name} was too busy", committed="no")
        if found == TAKEN:
            raise Unavailable(f"the {self.name} did not answer in time", committed="unknown")
        call.sleeper.get()

    # The native threads' side

    def take_one(self, thread: int) -> Call[W]:
        """The next call, as soon as there is one; for lanes with several threads."""
        self._busy_since[thread] = None
        while True:
            self._bell.get()
            call = self._arrived.popleft()
            if self._claim([call]):
                self._busy_since[thread] = monotonic()
                return call

    def take_group(self, most: int, patience_seconds: float) -> list[Call[W]]:
        """At most `most` calls, urgent ones first; empty when none came in time. For the only thread of a lane."""
        self._busy_since[0] = None
        if not self._urgent and not self._patient:
            self._wait_for_bell(patience_seconds)
        self._busy_since[0] = monotonic()
        for _ in range(self._bell.qsize()):
            self._bell.get_nowait()
        while self._arrived:
            self._sort(self._arrived.popleft())
        group: list[Call[W]] = []
        for line in (self._urgent, self._patient):
            while line and len(group) < most:
                group.append(line.popleft())
        return self._claim(group)

    def _wait_for_bell(self, seconds: float) -> None:
        try:
            self._bell.get(timeout=seconds)
        except Empty:
            return

    def _sort(self, call: Call[W]) -> None:
        (self._urgent if call.urgent else self._patient).append(call)

    def _claim(self, calls: list[Call[W]]) -> list[Call[W]]:
        with self._gate:
            claimed = [call for call in calls if call.state == QUEUED]
            for call in claimed:
                call.state = TAKEN
        return claimed

    def answer(self, calls: Iterable[Call[W]]) -> None:
        """Send these calls back: their topics are signalled, then their callers resumed."""
        by_hub: dict[Hub | None, list[Call[W]]] = {}
        with self._gate:
            for call in calls:
                call.state = DONE
                by_hub.setdefault(call.hub, []).append(call)
        for hub, theirs in by_hub.items():
            if hub is None:
                self._deliver(theirs, None)
            else:
                hub.loop.run_callback_threadsafe(self._deliver, theirs, hub)

    def _deliver(self, calls: list[Call[W]], hub: Hub | None) -> None:
        try:
            topics = dict.fromkeys(topic for call in calls for topic in call.topics)
            if topics and self._on_commit is not None:
                self._on_commit(list(topics))
        finally:
            self._resume(calls, hub)

    def _resume(self, calls: list[Call[W]], hub: Hub | None) -> None:
        """Wake the callers, some in this turn of their loop and the others in the next, so that it keeps turning."""
        if hub is not None and len(calls) > _MOST_RESUMED_IN_A_TURN:
            hub.loop.run_callback(self._resume, calls[_MOST_RESUMED_IN_A_TURN:], hub)
            calls = calls[:_MOST_RESUMED_IN_A_TURN]
        for call in calls:
            call.sleeper.switch(None)
