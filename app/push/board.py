"""Each watched thing is looked at once per signal in this process, however many follow it.

A signal marks the thing; one greenlet looks at everything marked in one query and rings the followers, who find the
look on their watch. So a move costs one query for a thousand followers, and a thousand moves in a burst cost a few.
Signals that come during a look cause another one: nothing is missed.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Generic, Protocol, Self, TypeVar

import gevent

from app.core.instants import SECOND
from app.push.deadlines import Deadlines
from app.push.hub import Hub
from app.storage.engine import Unavailable

_log = logging.getLogger("fencepost.push")
_MOST_AT_ONCE = 500
_PAUSE_SECONDS = 1.0


class Seen(Protocol):
    """The result of a look."""

    @property
    def ends_at(self) -> int | None: ...

    @property
    def mark(self) -> tuple[object, ...]: ...

    def is_older_than(self, other: Self, /) -> bool: ...


S = TypeVar("S", bound=Seen)


class Watch(Generic[S]):
    """One thing that somebody follows. `seen` is the last look, None when there is nothing to see."""

    __slots__ = ("_armed", "_board", "encoded", "holds", "key", "newcomers", "rings", "seen")

    def __init__(self, board: "Board[S]", key: str) -> None:
        self._board = board
        self._armed: int | None = None
        self.key = key
        self.seen: S | None = None
        self.newcomers: list[Callable[[], None]] = []
        """Those to ring after the next look even if nothing happened."""
        self.holds = 0
        self.rings: set[Callable[[], None]] = set()
        self.encoded: dict[object, bytes] = {}
        """Frames made from this look, shared by those who send the same."""

    def signal(self) -> None:
        """Look again soon."""
        self._board.look_at(self.key)

    def show(self, seen: S | None) -> None:
        """Take a look's result; ring those who follow if something happened."""
        is_older = seen is not None and self.seen is not None and seen.is_older_than(self.seen)
        is_news = not is_older and _mark(seen) != _mark(self.seen)
        if is_news:
            self.seen = seen  # else the one known already is kept, for many hold on to it
            self.encoded = {}
        to_ring, self.newcomers = tuple(self.rings) if is_news else self.newcomers, []
        for ring in to_ring:
            ring()

    def arm(self, deadlines: Deadlines, topic: str) -> None:
        """Look again when it ends, and once more a second later in case another machine's clock decides."""
        ends_at = None if self.seen is None else self.seen.ends_at
        if ends_at is not None and ends_at != self._armed:
            self._armed = ends_at
            deadlines.at(topic, ends_at)
            deadlines.at(topic, ends_at + SECOND)


def _mark(seen: Seen | None) -> tuple[object, ...] | None:
    return None if seen is None else seen.mark


class Board(Generic[S]):
    """The watched things of one kind, by key; `prefix` + key is their topic. All calls are made on the loop."""

    def __init__(
        self, prefix: str, hub: Hub, deadlines: Deadlines, look: Callable[[Sequence[str]], Mapping[str, S]]
    ) -> None:
        self._prefix = prefix
        self._hub = hub
        self._deadlines = deadlines
        self._query = look
        self._watches: dict[str, Watch[S]] = {}
        self._marked: dict[str, None] = {}
        self._is_looking = False

    def __len__(self) -> int:
        return len(self._watches)

    @contextmanager
    def listening(self, key: str) -> Iterator[Watch[S]]:
        """Listen from now on. Within it add a ring to the watch, which then stays until `leave`.

        A ring is called when a look found news and must not block. After adding it, either show what was seen since
        the listening began, or `look` and be rung in any case.
        """
        watch = self._watches.get(key)
        if watch is None:
            watch = self._watches[key] = Watch(self, key)
            self._hub.join(self._prefix + key, watch.signal)
        watch.holds += 1
        try:
            yield watch
        finally:
            watch.holds -= 1
            self._drop_unfollowed(watch)

    def leave(self, watch: Watch[S], ring: Callable[[], None]) -> None:
        """Follow no longer."""
        watch.rings.discard(ring)
        self._drop_unfollowed(watch)

    def look(self, watch: Watch[S], ring: Callable[[], None]) -> None:
        """Look soon, and ring then even if nothing happened."""
        watch.newcomers.append(ring)
        self.look_at(watch.key)

    def show(self, watch: Watch[S], seen: S) -> None:
        """Something else has looked, after `follow`."""
        watch.show(seen)
        watch.arm(self._deadlines, self._prefix + watch.key)

    def look_at(self, key: str) -> None:
        """Mark it, and see to it that somebody looks."""
        self._marked[key] = None
        if not self._is_looking:
            self._is_looking = True
            gevent.spawn(self._run)

    def _drop_unfollowed(self, watch: Watch[S]) -> None:
        if not watch.rings and not watch.holds and self._watches.get(watch.key) is watch:
            del self._watches[watch.key]
            self._hub.leave(self._prefix + watch.key, watch.signal)

    def _run(self) -> None:
        try:
            while self._marked and not self._hub.stopping:
                keys = [key for key in self._marked if key in self._watches][:_MOST_AT_ONCE]
                self._marked = {key: None for key in self._marked if key in self._watches and key not in keys}
                if keys:
                    self._look_at_these(keys)
        finally:
            self._is_looking = False

    def _look_at_these(self, keys: list[str]) -> None:
        try:
            seen = self._query(keys)
        except Unavailable:
            self._try_again(keys)
            return
        except Exception:  # noqa: BLE001 - told in the log; the followers are to be told the truth once it works again
            _log.exception("looking at what is followed failed")
            self._try_again(keys)
            return
        for key in keys:
            watch = self._watches.get(key)
            if watch is not None:
                watch.show(seen.get(key))
                watch.arm(self._deadlines, self._prefix + key)

    def _try_again(self, keys: list[str]) -> None:
        self._marked.update(dict.fromkeys(keys))
        gevent.sleep(_PAUSE_SECONDS)
