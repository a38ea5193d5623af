"""Groups: many operations, one commit; a failing one takes only itself down."""

from pathlib import Path

import gevent
import pytest

from app.storage.engine import Transaction
from tests.storage import shelf
from tests.storage.shelf import Barrier, Open


def test_a_write_is_read_back_after_it_was_answered(open_engine: Open) -> None:
    engine = open_engine()
    assert engine.run(lambda tx: shelf.put(tx, "a", 7)) == 1
    assert shelf.look(engine, "a") == 7


def test_calls_that_wait_for_one_commit_share_the_next(open_engine: Open, tmp_path: Path) -> None:
    barrier = Barrier(tmp_path, "before-commit")
    engine = open_engine(failpoints=barrier.failpoints)
    calls = [shelf.putting(engine, "first")]
    barrier.wait_until_reached()
    calls += [shelf.putting(engine, str(n)) for n in range(50)]
    shelf.wait_until_queued(engine, 50)
    barrier.open()
    gevent.joinall(calls, raise_error=True)
    assert len(shelf.names(engine)) == 51
    engine.close()
    assert engine.report()["groups"] == 2
    assert engine.report()["largest_group"] == 50


def test_a_failing_operation_takes_only_itself_down_and_its_neighbours_commit_once(open_engine: Open) -> None:
    engine = open_engine()
    engine.run(lambda tx: shelf.put(tx, "count"))

    def operation(n: int) -> int:
        def run(tx: Transaction) -> int:
            shelf.add(tx, "count")
            if n % 10 == 3:
                raise KeyError(n)
            shelf.put(tx, str(n))
            return n

        return engine.run(run)

    calls = [gevent.spawn(operation, n) for n in range(30)]
    gevent.joinall(calls)
    assert [n for n, call in enumerate(calls) if call.exception is not None] == [3, 13, 23]
    assert [call.value for n, call in enumerate(calls) if n % 10 != 3] == [n for n in range(30) if n % 10 != 3]
    assert shelf.look(engine, "count") == 27


def test_a_failing_statement_cannot_be_swallowed_by_its_operation(open_engine: Open) -> None:
    engine = open_engine()

    def careless(tx: Transaction) -> str:
        shelf.put(tx, "half")
        with pytest.raises(Exception, match="no such table"):
            shelf.break_(tx)
        return "fine"

    with pytest.raises(Exception, match="no such table"):
        engine.run(careless)
    assert shelf.names(engine) == []
