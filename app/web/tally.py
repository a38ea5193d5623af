"""Requests counted for the metrics, where their log lines are made.

A row of numbers for each combination that occurred: well under a microsecond for a request, where the official client
library's own counters take several. Every label value is one of ours: methods that we do not know are `other`, a route
is its template, an outcome is a code or status of the contract. Should those ever become many, the rest is `other`.
"""

from dataclasses import dataclass, field

from app.spread import Spread

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
MOST_ROWS = 2000
OTHER = "other"


@dataclass(frozen=True, slots=True)
class Kind:
    """What is told apart."""

    method: str
    route: str
    status: int
    outcome: str


@dataclass(slots=True)
class Row:
    """How many requests of a kind there were, and the spread of its route's durations."""

    spread: Spread
    count: int = 0


@dataclass(slots=True)
class RequestTally:
    """All requests of this process so far. Called on the loop only."""

    rows: dict[tuple[str, str, int, str], Row] = field(default_factory=dict)
    spreads: dict[str, Spread] = field(default_factory=dict)

    def note(self, method: str, route: str, status: int, outcome: str, seconds: float) -> None:
        """Count one answered request."""
        row = self.rows.get((method, route, status, outcome)) or self._row(method, route, status, outcome)
        row.count += 1
        row.spread.note(seconds)

    def _row(self, method: str, route: str, status: int, outcome: str) -> Row:
        if len(self.rows) >= MOST_ROWS:
            method, route, outcome = OTHER, OTHER, OTHER
        key = (method if method in _METHODS else OTHER, route, status, outcome)
        if key not in self.rows:
            self.rows[key] = Row(self.spreads.setdefault(route, Spread()))
        return self.rows[key]

    def counts(self) -> list[tuple[Kind, int]]:
        """How many of each kind."""
        return [(Kind(*key), row.count) for key, row in self.rows.items()]
