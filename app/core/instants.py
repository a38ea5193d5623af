"""Instants are whole microseconds since the epoch; what people and programs read is whole seconds.

A printed end is rounded down, so that nobody relies on a lease past its end; a waiting time is rounded up, so
that nobody comes back too early.
"""

SECOND = 1_000_000
DAY_SECONDS = 86_400


def seconds_down(microseconds: int) -> int:
    """Whole seconds, rounded down: for printed instants and for time left."""
    return microseconds // SECOND


def seconds_up(microseconds: int) -> int:
    """Whole seconds, rounded up, at least 1: for every kind of retry-after."""
    return max(1, -(-microseconds // SECOND))
