"""What happens to the guarded work at the moment its ownership is lost.

Async: the task that entered the block is cancelled, and the block turns that into LeaseLost. Sync: nothing is
interrupted, for there is no safe way to (portalocker #141); the work asks `lease.check()` between its steps.
The two classes are the one place, with `_wire`, where sync and async are written side by side.
"""

import asyncio

from fencepost._certainty import Certainty
from fencepost._renewal import Renewal


class Guard:
    """The sync guard: it interrupts nothing."""

    def __init__(self, certainty: Certainty) -> None:
        self._certainty = certainty

    def end(self, kind: type[BaseException] | None) -> bool:
        """The block is left by this exception; whether that is our interruption of its work."""
        return False

    def end_renewal(self, renewal: Renewal) -> None:
        """Stop a renewal and wait a moment for its thread."""
        renewal.end()


class AsyncGuard:
    """Cancels the current task when the ownership is lost."""

    def __init__(self, certainty: Certainty) -> None:
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        self._is_over = False
        self._cancelled = False
        certainty.watch(self._from_any_thread)

    def end(self, kind: type[BaseException] | None) -> bool:
        """The block is left by this exception; whether that is our interruption of its work, and nobody else's."""
        self._is_over = True
        if not self._cancelled or self._task is None:
            return False
        uncancel = getattr(self._task, "uncancel", None)  # since Python 3.11
        is_only_ours = uncancel is None or uncancel() == 0
        return is_only_ours and kind is not None and issubclass(kind, asyncio.CancelledError)

    async def end_renewal(self, renewal: Renewal) -> None:
        """Stop a renewal and wait a moment for its thread, without blocking the loop."""
        renewal.stop()
        await asyncio.get_running_loop().run_in_executor(None, renewal.end)

    def _from_any_thread(self) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._cancel)

    def _cancel(self) -> None:
        if not self._is_over and self._task is not None and not self._task.done():
            self._cancelled = True
            self._task.cancel("the lease is lost")
