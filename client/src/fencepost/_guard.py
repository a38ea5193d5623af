"""What happens to the guarded work at the moment its lease is lost.

Async: the task that entered the block is cancelled, and the block turns that into LeaseLost. Sync: nothing is
interrupted, for there is no safe way to (portalocker #141); the work asks `lease.check()` between its steps.
"""

import asyncio

from fencepost._renewal import Certainty


class Guard:
    """The sync guard: it interrupts nothing."""

    def __init__(self, certainty: Certainty) -> None:
        self.cancelled_by_us = False

    def end(self) -> bool:
        """The block is left; whether its work was interrupted by us."""
        return False


class AsyncGuard:
    """Cancels the current task when the lease is lost."""

    def __init__(self, certainty: Certainty) -> None:
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        self._is_over = False
        self._cancelled = False
        certainty.watch(self._from_any_thread)

    def end(self) -> bool:
        """The block is left; whether its work was interrupted by us."""
        self._is_over = True
        if self._cancelled and self._task is not None and hasattr(self._task, "uncancel"):
            self._task.uncancel()
        return self._cancelled

    def _from_any_thread(self) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._cancel)

    def _cancel(self) -> None:
        if not self._is_over and self._task is not None and not self._task.done():
            self._cancelled = True
            self._task.cancel("the lease is lost")
