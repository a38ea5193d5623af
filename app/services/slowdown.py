"""Failed sign-ins slow the next ones down, by name and by address (P5 of core/person.py).

A try counts as a failure from its beginning, until it has succeeded: so a hundred tries at once are not a hundred free
ones. What is remembered is bounded, and forgotten after a quarter of an hour of quiet. Each process counts for itself.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from app.clock import monotonic
from app.core.person import FORGET_SECONDS, pause_seconds

_MOST_REMEMBERED = 20_000


@dataclass(slots=True)
class _Count:
    failures: int = 0
    last_at: float = 0.0

    def left(self, now: float) -> float:
        return self.last_at + pause_seconds(self.failures) - now


class Slowdown:
    """Counts failures. `now` reads monotonic seconds."""

    def __init__(self, now: Callable[[], float] = monotonic) -> None:
        self._now = now
        self._counts: OrderedDict[str, _Count] = OrderedDict()

    def begin(self, *keys: str) -> float:
        """0 and the try is counted; or the seconds that are still to be waited, and nothing is counted."""
        now = self._now()
        counts = [self._count(key, now) for key in keys]
        wait = max(count.left(now) for count in counts)
        if wait > 0:
            return wait
        for count in counts:
            count.failures += 1
            count.last_at = now
        return 0.0

    def succeeded(self, name: str, address: str) -> None:
        """The try that was begun with these keys was a good one."""
        self._counts.pop(name, None)
        count = self._counts.get(address)
        if count is not None:
            count.failures = max(0, count.failures - 1)

    def _count(self, key: str, now: float) -> _Count:
        count = self._counts.get(key)
        if count is None or now - count.last_at > FORGET_SECONDS:
            count = self._counts[key] = _Count()
            if len(self._counts) > _MOST_REMEMBERED:
                self._counts.popitem(last=False)
        self._counts.move_to_end(key)
        return count
