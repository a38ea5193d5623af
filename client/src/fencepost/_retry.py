"""When a call is sent again, and when not.

Again: the connection failed, or the answer was 502, 503 or 504: nothing was decided, or nobody knows. Never: an answer
that is a decision, however unwelcome. The pause is random between zero and a bound that doubles (full jitter), and
never shorter than the server's Retry-After; all of it stays inside one time limit.
"""

import random
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

FIRST_BOUND_SECONDS = 0.1
LARGEST_BOUND_SECONDS = 5.0
_UNDECIDED = frozenset({502, 503, 504})


@dataclass
class Attempts:
    """The attempts at one call. `within_seconds` is the limit from the first to the last."""

    within_seconds: float
    began: float = field(default_factory=time.monotonic)
    bound: float = FIRST_BOUND_SECONDS

    @property
    def left(self) -> float:
        """Seconds left of the limit."""
        return self.began + self.within_seconds - time.monotonic()

    def pause(self, status: int | None, headers: Mapping[str, str] | None = None) -> float | None:
        """How long to wait before the next attempt; None when the answer stands or the limit would be passed.

        `status` is None when there was no answer at all.
        """
        if status is not None and status not in _UNDECIDED:
            return None
        least = _retry_after(headers)
        pause = least + random.uniform(0, self.bound)
        self.bound = min(2 * self.bound, LARGEST_BOUND_SECONDS)
        return pause if pause < self.left else None


def _retry_after(headers: Mapping[str, str] | None) -> float:
    text = (headers or {}).get("Retry-After", "0")
    return float(text) if text.isascii() and text.isdigit() else 0.0
