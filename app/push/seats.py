"""How many callers may wait or stream at once in this process.

Every parked call and socket costs memory and a descriptor, so their number is bounded and the next one is told to
come back, before it has taken anything (gunicorn #2585: idle connections starving real requests).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

Use = Literal["wait", "socket"]


class Full(Exception):
    """No seat is free; try again in a moment."""

    retry_after_seconds = 1


class Seats:
    """A fixed number of seats, shared by long-polls, waiting acquires and claims, and sockets."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.taken = 0
        self.taken_for: dict[str, int] = {"wait": 0, "socket": 0}

    @contextmanager
    def seat(self, use: Use = "wait") -> Iterator[None]:
        """Sit for the length of the block. Raises Full at once when none is free."""
        if self.taken >= self.limit:
            raise Full
        self.taken += 1
        self.taken_for[use] += 1
        try:
            yield
        finally:
            self.taken -= 1
            self.taken_for[use] -= 1
