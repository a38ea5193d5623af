"""When a call is sent again, and when not.

Again: the connection failed, or the answer was 502, 503 or 504: nothing was decided, or nobody knows. Never: an answer
that is a decision, however unwelcome. The pause is random between zero and a bound that doubles (full jitter), and
never shorter than the server's Retry-After; all of it stays inside one time limit.
"""

import random
from dataclasses import dataclass, field

from fencepost._clock import steady

FIRST_BOUND_SECONDS = 0.1
LARGEST_BOUND_SECONDS = 5.0
_UNDECIDED = frozenset({502, 503, 504})


@dataclass
class Attempts:
    """The attempts at one call. `within_seconds` is the limit from the first to the last."""

    within_seconds: float
    began: float = field(default_factory=steady)
    bound: float = FIRST_BOUND_SECONDS

    @property
    def left(self) -> float:
        """Seconds left of the limit."""
        return self.began + self.within_seconds - steady()

    def pause(self, least_seconds: float = 0.0) -> float | None:
        """How long to wait before the next attempt; None when the limit would be passed."""
        pause = least_seconds + random.uniform(0, self.bound)
        self.bound = min(2 * self.bound, LARGEST_BOUND_SECONDS)
        return pause if pause < self.left else None


def is_decided(status: int) -> bool:
    """Whether an answer of this status stands, however unwelcome it is."""
    return status not in _UNDECIDED


def seconds_of(retry_after: str | None) -> float:
    """The header Retry-After as seconds; 0 without one."""
    text = retry_after or "0"
    return float(text) if text.isascii() and text.isdigit() else 0.0
