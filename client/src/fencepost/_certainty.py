"""Until when an ownership is certain.

Counted on this machine's own steady clock from the moment *before* a request was sent: the server cannot have started
the TTL earlier (kubernetes/client-go #448, the DynamoDB lock client). With the network gone it therefore ends by
itself, no later than that moment + TTL, whatever anybody answers. A process that was paused finds the time passed at
its next check.

    certain --extend--> certain     --time passes, or the server says lost--> lost (told, once)
    certain --end--> over           (the holder's own act: nobody is told)

Nothing leads back: an answer to a renewal that comes after the end revives nothing.
"""

import math
import os
import threading
import weakref
from collections.abc import Callable

from fencepost import _watchdog
from fencepost._clock import steady
from fencepost.errors import LeaseLost


class Certainty:
    """Until when an ownership is certain, and whether it is known to be over. Safe from any thread.

    `never_beyond` is an instant of the steady clock that no renewal moves: the end of what the ownership is part of.
    """

    def __init__(self, sent_at: float, ttl_seconds: float, never_beyond: float = math.inf) -> None:
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._never_beyond = never_beyond
        self._until = min(sent_at + ttl_seconds, never_beyond)
        self._reason: str | None = None
        self._watchers: list[Callable[[], None]] = []
        self._lost = threading.Event()
        _watchdog.watch(self._until, _look(weakref.ref(self)))

    @property
    def lost(self) -> threading.Event:
        """Set once it is lost, by time or by the server's word; asking looks at the clock first."""
        self._expire()
        return self._lost

    @property
    def is_over(self) -> bool:
        """Whether it has ended in any way."""
        self._expire()
        return self._reason is not None

    def extend(self, sent_at: float, ttl_seconds: float) -> None:
        """A renewal that was sent then was granted; it replaces the end, and revives nothing."""
        with self._lock:
            if self._reason is not None or self._until <= steady():
                return
            until = min(sent_at + ttl_seconds, self._never_beyond)
            is_sooner = until < self._until
            self._until = until
        if is_sooner:
            _watchdog.watch(self._until, _look(weakref.ref(self)))

    def left(self) -> float:
        """Seconds of certainty left; 0 or less when it is over."""
        return 0.0 if self._reason is not None else self._until - steady()

    def lose(self, reason: str) -> None:
        """Declare it lost and tell the watchers; the first reason stands."""
        with self._lock:
            if self._reason is not None:
                return
            self._reason = reason
            watchers = list(self._watchers)
        self._lost.set()
        for watcher in watchers:
            watcher()

    def end(self, reason: str) -> None:
        """The holder gave it up itself: nobody is told, and it is not certain any more."""
        with self._lock:
            if self._reason is None:
                self._reason = reason

    def watch(self, watcher: Callable[[], None]) -> None:
        """Call this, on whatever thread, once it is lost; at once if it is."""
        with self._lock:
            self._watchers.append(watcher)
            is_late = self._lost.is_set()
        if is_late:
            watcher()

    def check(self) -> None:
        """Raise LeaseLost unless the ownership is certain at this instant, in the process that has it."""
        if os.getpid() != self._process:
            raise LeaseLost("forked")
        self._expire()
        if self._reason is not None:
            raise LeaseLost(self._reason)

    def _expire(self) -> None:
        if self._reason is None and os.getpid() == self._process and self._until <= steady():
            self.lose("expired")


def _look(certainty: "weakref.ref[Certainty]") -> Callable[[], float | None]:
    """What the watchdog calls; it keeps nothing alive."""

    def look() -> float | None:
        it = certainty()
        if it is None or it.is_over:
            return None
        return steady() + it.left()

    return look
