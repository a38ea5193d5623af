"""Several processes on one PostgreSQL: one sweeps at a time, and one that died holds the others up for a minute."""

from collections.abc import Iterator

import pytest

from app.clock import DatabaseClock
from app.core.instants import SECOND
from app.services.sweep import LEASES, Chore, Sweep
from app.storage import duty
from app.storage.postgres import PostgresEngine
from app.testmode import Failpoints
from tests.real.cluster import shared_cluster

pytestmark = pytest.mark.postgres

AHEAD = {"seconds": 0}


@pytest.fixture
def engines() -> Iterator[list[PostgresEngine]]:
    AHEAD["seconds"] = 0
    url = shared_cluster().database()
    opened = [
        PostgresEngine(url, clock=DatabaseClock(lambda: AHEAD["seconds"] * SECOND), deadline_seconds=30.0)
        for _ in range(2)
    ]
    yield opened
    for engine in opened:
        engine.close()


def test_while_one_process_sweeps_another_does_nothing_and_then_may(engines: list[PostgresEngine]) -> None:
    other = Sweep(engines[1], [LEASES], Failpoints(), is_shared=True)
    seen: list[dict[str, int]] = []

    def choose(_: object, __: int) -> list[object]:
        seen.append(other.run())
        return []

    chore = Chore("leases", choose, lambda _, __: 0)
    assert "leases" in Sweep(engines[0], [chore], Failpoints(), is_shared=True).run()
    assert seen == [{}]
    assert other.run() == {"leases": 0, "daily_counts": 0}


def test_a_process_that_died_with_the_duty_holds_it_for_a_minute_only(engines: list[PostgresEngine]) -> None:
    one, other = engines
    term = one.run(lambda tx: duty.take(tx, "d"))
    assert term is not None
    assert other.run(lambda tx: duty.take(tx, "d")) is None
    AHEAD["seconds"] = duty.TERM_SECONDS + 1
    theirs = other.run(lambda tx: duty.take(tx, "d"))
    assert theirs is not None
    assert one.run(lambda tx: duty.keep(tx, "d", term)) is None
    kept = other.run(lambda tx: duty.keep(tx, "d", theirs))
    assert kept is not None
    other.run(lambda tx: duty.give_up(tx, "d", kept))
    assert one.run(lambda tx: duty.take(tx, "d")) is not None
