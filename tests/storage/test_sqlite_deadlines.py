"""A stuck disk delays those who wait for it, until their deadline, and nobody else."""

from collections.abc import Callable
from pathlib import Path

import gevent
import pytest
from gevent.monkey import get_original

from app.clock import monotonic
from app.storage.engine import Transaction, Unavailable
from app.storage.sqlite import SqliteEngine
from tests.storage import shelf
from tests.storage.shelf import Barrier, Open


def test_a_taken_call_that_runs_late_is_unknown_and_a_queued_one_never_runs(open_engine: Open, tmp_path: Path) -> None:
    barrier = Barrier(tmp_path, "before-commit")
    engine = open_engine(failpoints=barrier.failpoints, write_deadline_seconds=0.3)
    taken = shelf.putting(engine, "taken")
    barrier.wait_until_reached()
    queued = shelf.putting(engine, "queued")
    gevent.joinall([taken, queued])
    assert isinstance(taken.exception, Unavailable)
    assert taken.exception.committed == "unknown"
    assert isinstance(queued.exception, Unavailable)
    assert queued.exception.committed == "no"
    barrier.open()
    _settle(engine)
    assert shelf.names(engine) == ["taken"]


def test_a_loop_that_has_not_turned_for_long_shortens_no_deadline(open_engine: Open) -> None:
    engine = open_engine(write_deadline_seconds=0.5, read_deadline_seconds=0.5)
    gevent.sleep(0.01)  # a timer's turn, in which gevent does not look at the clock again
    get_original("time", "sleep")(1.0)
    engine.run(lambda tx: shelf.put(tx, "first"))
    gevent.sleep(0.01)
    get_original("time", "sleep")(1.0)
    assert shelf.look(engine, "first") == 0


def test_while_the_writer_is_stuck_new_calls_are_refused_at_once(open_engine: Open, tmp_path: Path) -> None:
    barrier = Barrier(tmp_path, "before-commit")
    engine = open_engine(failpoints=barrier.failpoints, write_deadline_seconds=0.3)
    taken = shelf.putting(engine, "taken")
    taken.join()
    gevent.sleep(0.1)
    asked_at = monotonic()
    with pytest.raises(Unavailable) as refused:
        engine.run(lambda tx: shelf.put(tx, "late"))
    assert refused.value.committed == "no"
    assert monotonic() - asked_at < 0.3
    assert engine.report()["problems"] == ["writer stuck"]
    barrier.open()
    _settle(engine)
    assert engine.report()["problems"] == []


def test_a_stuck_commit_blocks_neither_the_event_loop_nor_a_reader(open_engine: Open, tmp_path: Path) -> None:
    barrier = Barrier(tmp_path, "before-commit")
    engine = open_engine(failpoints=barrier.failpoints)
    write = shelf.putting(engine, "slow")
    barrier.wait_until_reached()
    turns = 0
    for _ in range(20):
        gevent.sleep(0.001)
        turns += 1
    assert shelf.look(engine, "slow") is None
    assert turns == 20
    assert not write.ready()
    barrier.open()
    write.get()
    assert shelf.look(engine, "slow") == 0


def test_a_caller_that_is_killed_while_queued_takes_its_call_back(open_engine: Open, tmp_path: Path) -> None:
    barrier = Barrier(tmp_path, "before-commit")
    engine = open_engine(failpoints=barrier.failpoints)
    taken = shelf.putting(engine, "taken")
    barrier.wait_until_reached()
    hung_up = shelf.putting(engine, "hung up")
    patient = shelf.putting(engine, "patient")
    shelf.wait_until_queued(engine, 2)
    hung_up.kill()
    barrier.open()
    gevent.joinall([taken, patient], raise_error=True)
    assert shelf.names(engine) == ["patient", "taken"]


def test_urgent_operations_go_before_those_that_are_still_queued(open_engine: Open, tmp_path: Path) -> None:
    barrier = Barrier(tmp_path, "before-commit")
    engine = open_engine(failpoints=barrier.failpoints)
    order: list[str] = []

    def note(name: str) -> Callable[[Transaction], None]:
        return lambda tx: order.append(name)

    calls = [shelf.calling(engine, note("first"))]
    barrier.wait_until_reached()
    calls += [shelf.calling(engine, note(f"patient {n}")) for n in range(2)]
    calls += [shelf.calling(engine, note(f"urgent {n}"), urgent=True) for n in range(2)]
    shelf.wait_until_queued(engine, 4)
    barrier.open()
    gevent.joinall(calls, raise_error=True)
    assert order == ["first", "urgent 0", "urgent 1", "patient 0", "patient 1"]


def test_a_closed_engine_refuses(open_engine: Open) -> None:
    engine = open_engine()
    engine.close()
    with pytest.raises(Unavailable, match="closing") as refused:
        engine.run(lambda tx: shelf.put(tx, "late"))
    assert refused.value.committed == "no"


def test_closing_finishes_what_is_queued(open_engine: Open, tmp_path: Path) -> None:
    barrier = Barrier(tmp_path, "before-commit")
    engine = open_engine(failpoints=barrier.failpoints)
    calls = [shelf.putting(engine, "taken")]
    barrier.wait_until_reached()
    calls += [shelf.putting(engine, f"queued {n}") for n in range(20)]
    shelf.wait_until_queued(engine, 20)
    closing = gevent.spawn(engine.close)
    gevent.sleep(0)
    barrier.open()
    gevent.joinall(calls, raise_error=True)
    closing.get(timeout=10)
    assert len(shelf.names(open_engine())) == 21


def _settle(engine: SqliteEngine) -> None:
    """Wait until the writer took something again."""
    with gevent.Timeout(10):
        while engine.report()["problems"] or engine.report()["queued"]:
            gevent.sleep(0.005)
    engine.run(lambda tx: None)
