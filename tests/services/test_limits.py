"""The daily allowance on a real file: never more than the limit, whatever is restarted, and little written."""

import gevent

from app.clock import ManualClock
from app.core.instants import DAY_SECONDS
from app.core.limits import Counted, Exhausted
from app.services.limits import DailyLimit
from app.storage.sqlite import SqliteEngine
from tests.storage.shelf import PATIENT


def taken(limit: DailyLimit, address: str, times: int) -> int:
    return sum(isinstance(limit.take(address), Counted) for _ in range(times))


def test_an_address_gets_the_limit_and_no_more_however_often_the_process_dies(tmp_path) -> None:
    clock, total = ManualClock(), 0
    for _ in range(12):
        engine = SqliteEngine(tmp_path / "fencepost.db", clock=clock, **PATIENT)
        total += taken(DailyLimit(engine, clock, "requests", 1000), "203.0.113.1", 90)
        engine.close()
    assert 1000 - 12 * 10 <= total <= 1000


def test_an_orderly_stop_gives_back_what_was_not_used(tmp_path) -> None:
    clock, total = ManualClock(), 0
    engine = SqliteEngine(tmp_path / "fencepost.db", clock=clock, **PATIENT)
    for _ in range(12):
        limit = DailyLimit(engine, clock, "requests", 1000)
        total += taken(limit, "203.0.113.1", 90)
        limit.give_back()
    engine.close()
    assert total == 1000


def test_addresses_and_kinds_are_counted_apart_and_a_new_day_begins_anew(tmp_path) -> None:
    clock = ManualClock()
    engine = SqliteEngine(tmp_path / "fencepost.db", clock=clock, **PATIENT)
    requests, handoffs = (DailyLimit(engine, clock, kind, 5) for kind in ("requests", "handoffs"))
    assert taken(requests, "a", 9) == taken(requests, "b", 9) == taken(handoffs, "a", 9) == 5
    clock.advance(DAY_SECONDS)
    assert taken(requests, "a", 9) == 5
    engine.close()


def test_many_at_once_share_a_block_and_the_last_ones_are_not_refused_early(tmp_path) -> None:
    clock = ManualClock()
    engine = SqliteEngine(tmp_path / "fencepost.db", clock=clock, **PATIENT)
    limit = DailyLimit(engine, clock, "requests", 500)
    jobs = [gevent.spawn(limit.take, "a") for _ in range(800)]
    gevent.joinall(jobs)
    outcomes = [job.value for job in jobs]
    engine.close()
    assert sum(isinstance(outcome, Counted) for outcome in outcomes) == 500
    assert sorted(o.remaining for o in outcomes if isinstance(o, Counted)) == list(range(500))
    assert int(str(engine.report()["operations"])) < 200


def test_what_is_counted_within_a_transaction_counts_only_if_it_commits(tmp_path) -> None:
    clock = ManualClock()
    engine = SqliteEngine(tmp_path / "fencepost.db", clock=clock, **PATIENT)
    limit = DailyLimit(engine, clock, "handoffs", 2)

    def fails(tx) -> None:
        limit.take_within(tx, "a")
        raise RuntimeError

    for _ in range(5):
        try:
            engine.run(fails)
        except RuntimeError:
            continue
    seen = [engine.run(lambda tx: limit.take_within(tx, "a")) for _ in range(3)]
    engine.close()
    assert [type(outcome) for outcome in seen] == [Counted, Counted, Exhausted]
