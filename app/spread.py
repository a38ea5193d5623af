"""How often a figure was how large: what a histogram of the metrics is made of.

One thread notes, any thread reads. A reader that comes in between may see a figure counted and not yet summed, which
is within what a scrape means. Noting costs well under a microsecond and allocates nothing.
"""

from bisect import bisect_left

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Bounds for durations: from a quick answer to the longest wait."""

SIZES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0)
"""Bounds for how many at once."""


class Spread:
    """Figures by size. `bounds` rise; a figure that is equal to a bound lies below it, as Prometheus counts."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...] = SECONDS) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def note(self, figure: float) -> None:
        """Count one."""
        self.counts[bisect_left(self.bounds, figure)] += 1
        self.total += figure

    def buckets(self) -> list[tuple[str, int]]:
        """Upper bound and how many lie at or below it, the last one without a bound."""
        running, rising = 0, list[tuple[str, int]]()
        for bound, count in zip((*self.bounds, float("inf")), tuple(self.counts), strict=True):
            running += count
            rising.append(("+Inf" if bound == float("inf") else repr(bound), running))
        return rising
