"""One thread that tells every certainty of this process when its time has passed.

The thread that renews cannot do it: it may be waiting for an answer that never comes, and no timeout of a network
library is a promise. The thread begins with the first certainty and ends with the last; a forked child has none until
it asks for one.
"""

import heapq
import itertools
import os
import threading
from collections.abc import Callable

from fencepost._clock import steady

_LONGEST_SLEEP_SECONDS = 5.0
"""A machine that was suspended wakes with its sleeps as long as before; so none is long."""


class Watchdog:
    """Calls each watched function at its time; the function says when it wants to be called again, or None."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._due: list[tuple[float, int, Callable[[], float | None]]] = []
        self._order = itertools.count()
        self._thread: threading.Thread | None = None

    def watch(self, due_at: float, look: Callable[[], float | None]) -> None:
        """Call `look` at that time of the steady clock."""
        with self._changed:
            heapq.heappush(self._due, (due_at, next(self._order), look))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="fencepost-watchdog", daemon=True)
                self._thread.start()
            self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                if not self._due:
                    self._thread = None
                    return
                due_at, _, look = self._due[0]
                sleep = due_at - steady()
                if sleep > 0:
                    self._changed.wait(min(sleep, _LONGEST_SLEEP_SECONDS))
                    continue
                heapq.heappop(self._due)
            again_at = look()
            if again_at is not None:
                with self._changed:
                    heapq.heappush(self._due, (again_at, next(self._order), look))


_watchdog = Watchdog()


def watch(due_at: float, look: Callable[[], float | None]) -> None:
    """Have `look` called at that time of the steady clock by this process's watchdog."""
    _watchdog.watch(due_at, look)


def _begin_anew() -> None:
    global _watchdog
    _watchdog = Watchdog()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)
