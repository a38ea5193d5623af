"""Moves that were refused, by handoff: a burst of them means that two sides disagree about where it stands.

Only moves by somebody with the right to try are counted. What is remembered is bounded, kept by this process alone, and
forgotten after a quarter of an hour.
"""

from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass

from app.clock import monotonic

BURST = 3
WINDOW_SECONDS = 900
_MOST_HANDOFFS = 1_000
_MOST_COUNTED = 100


@dataclass(frozen=True, slots=True)
class Burst:
    """How many moves of a handoff were refused (100 stands for more), and how many seconds ago the last one was."""

    handoff_id: str
    count: int
    seconds_ago: float


class Refusals:
    """Counts them. `now` reads monotonic seconds."""

    def __init__(self, now: Callable[[], float] = monotonic) -> None:
        self._now = now
        self._seen: OrderedDict[str, deque[float]] = OrderedDict()

    def note(self, handoff_id: str) -> bool:
        """Count one; whether this makes it a burst."""
        times = self._seen.setdefault(handoff_id, deque(maxlen=_MOST_COUNTED))
        self._seen.move_to_end(handoff_id)
        if len(self._seen) > _MOST_HANDOFFS:
            self._seen.popitem(last=False)
        times.append(self._now())
        return len(self._recent(times)) == BURST

    def forget(self, handoff_id: str) -> None:
        """It moved: whatever was in the way is over."""
        self._seen.pop(handoff_id, None)

    def bursts(self, most: int) -> list[Burst]:
        """The handoffs with at least three in the last quarter of an hour, the latest first."""
        now = self._now()
        found: list[Burst] = []
        for handoff_id, times in reversed(self._seen.items()):
            recent = self._recent(times)
            if len(recent) >= BURST:
                found.append(Burst(handoff_id, len(recent), now - recent[-1]))
        return found[:most]

    def _recent(self, times: deque[float]) -> list[float]:
        since = self._now() - WINDOW_SECONDS
        return [at for at in times if at > since]
