"""Removing what is over, in batches small enough that live traffic does not notice."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gevent

from app.core.limits import day_of
from app.storage import duty, limits, outbox, person, sweep, sweep_claims
from app.storage.engine import Engine, Reader, Transaction
from app.testmode import Failpoints

_BATCH = 200
_PAUSE_SECONDS = 0.02
_DUTY = "duty:sweep"


@dataclass(frozen=True, slots=True)
class Chore:
    """One kind of row: `choose` reads up to so many that are over, `drop` deletes those that still are."""

    name: str
    choose: Callable[[Reader, int], list[Any]]
    drop: Callable[[Transaction, list[Any]], int]


LEASES = Chore("leases", sweep.ended_leases, sweep.drop_leases)
HANDOFFS = Chore("handoffs", sweep.over_handoffs, sweep.drop_handoffs)
CLAIMS = Chore("claims", sweep_claims.ended_claims, sweep_claims.drop_claims)
NAMESPACES = Chore("namespaces", sweep_claims.abandoned_namespaces, sweep_claims.drop_namespaces)
NOTICES = Chore("notices", outbox.lapsed, outbox.drop)
SESSIONS = Chore("sessions", person.lapsed_sessions, person.drop_sessions)
EVERY_CHORE = [LEASES, HANDOFFS, CLAIMS, NAMESPACES, NOTICES, SESSIONS]


class Sweep:
    """Runs the chores once through."""

    def __init__(self, engine: Engine, chores: list[Chore], failpoints: Failpoints, *, is_shared: bool = False) -> None:
        self._is_shared = is_shared
        self._engine = engine
        self._chores = chores
        self._failpoints = failpoints

    def run(self) -> dict[str, int]:
        """Rows removed by kind. Raises Unavailable; what was removed until then stays removed.

        Where other processes have the same database (`is_shared`), nothing while one of them is at it.
        """
        if not self._is_shared:
            return self._sweep(lambda: True)
        term = self._engine.run(lambda tx: duty.take(tx, _DUTY))

        def goes_on() -> bool:
            nonlocal term
            mine = term
            term = None if mine is None else self._engine.run(lambda tx: duty.keep(tx, _DUTY, mine))
            return term is not None

        if term is None:
            return {}
        removed = self._sweep(goes_on)
        last = term
        if last is not None:
            self._engine.run(lambda tx: duty.give_up(tx, _DUTY, last))
        return removed

    def _sweep(self, goes_on: Callable[[], bool]) -> dict[str, int]:
        removed: dict[str, int] = {}
        for chore in self._chores:
            if not goes_on():
                return removed
            removed[chore.name] = self._run(chore)
        removed["daily_counts"] = self._engine.run(lambda tx: limits.drop_before(tx, day_of(tx.now()) - 1))
        return removed

    def _run(self, chore: Chore) -> int:
        removed = 0
        while True:
            chosen = self._engine.read(lambda reader: chore.choose(reader, _BATCH))
            self._failpoints.at("sweep-after-select")
            if chosen:
                removed += self._engine.run(lambda tx, chosen=chosen: chore.drop(tx, chosen))  # type: ignore[misc]
            if len(chosen) < _BATCH:
                return removed
            gevent.sleep(_PAUSE_SECONDS)
