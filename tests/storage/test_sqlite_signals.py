"""Topics ring after the commit and before anyone is answered; failpoints reach the right caller."""

from pathlib import Path

import gevent
import pytest

from app.clock import ManualClock
from app.storage.engine import Transaction, Unavailable
from app.testmode import Dropped, FailpointError, Failpoints
from tests.storage import shelf
from tests.storage.shelf import Barrier, Open


def _put_and_ring(tx: Transaction, name: str) -> None:
    shelf.put(tx, name)
    tx.ring(f"topic {name}")


def test_topics_ring_after_the_commit_and_before_their_caller_goes_on(open_engine: Open) -> None:
    seen: list[object] = []
    engine = open_engine(on_commit=seen.append)

    def caller(name: str) -> None:
        engine.run(lambda tx: _put_and_ring(tx, name))
        seen.append(f"answered {name}")

    gevent.joinall([gevent.spawn(caller, name) for name in "ab"], raise_error=True)
    for name in "ab":
        rung_at = next(n for n, event in enumerate(seen) if isinstance(event, list) and f"topic {name}" in event)
        assert rung_at < seen.index(f"answered {name}")


def test_what_is_rolled_back_rings_nothing(open_engine: Open) -> None:
    rung: list[list[str]] = []
    engine = open_engine(on_commit=rung.append)

    def fail(tx: Transaction) -> None:
        _put_and_ring(tx, "lost")
        raise KeyError("lost")

    calls = [shelf.calling(engine, fail), shelf.calling(engine, lambda tx: _put_and_ring(tx, "kept"))]
    gevent.joinall(calls)
    assert rung == [["topic kept"]]


def test_a_commit_rings_even_when_its_caller_gave_up(open_engine: Open, tmp_path: Path) -> None:
    rung: list[list[str]] = []
    barrier = Barrier(tmp_path, "before-commit")
    engine = open_engine(failpoints=barrier.failpoints, on_commit=rung.append, write_deadline_seconds=0.2)
    with pytest.raises(Unavailable):
        engine.run(lambda tx: _put_and_ring(tx, "late"))
    assert rung == []
    barrier.open()
    with gevent.Timeout(10):
        while not rung:
            gevent.sleep(0.005)
    assert rung == [["topic late"]]


def test_a_listener_that_fails_does_not_keep_the_callers_asleep(open_engine: Open) -> None:
    def fail(topics: list[str]) -> None:
        raise KeyError("listener")

    engine = open_engine(on_commit=fail)
    call = shelf.calling(engine, lambda tx: _put_and_ring(tx, "a"))
    assert call.get(timeout=10) is None


@pytest.mark.parametrize(("action", "fault"), [("error", FailpointError), ("drop-answer", Dropped)])
@pytest.mark.parametrize(("point", "kept"), [("before-commit", []), ("after-commit", ["a"])])
def test_a_failpoint_at_the_commit_reaches_the_caller(
    open_engine: Open, tmp_path: Path, point: str, kept: list[str], action: str, fault: type[BaseException]
) -> None:
    file = tmp_path / "failpoints"
    file.write_text(f"{point} {action}\n", encoding="utf-8")
    engine = open_engine(failpoints=Failpoints(file))
    with pytest.raises(fault):
        engine.run(lambda tx: shelf.put(tx, "a"))
    file.unlink()
    assert shelf.names(engine) == kept


def test_a_failpoint_inside_an_operation_takes_only_that_operation_down(open_engine: Open, tmp_path: Path) -> None:
    file = tmp_path / "failpoints"
    file.write_text("after-lock error\n", encoding="utf-8")
    engine = open_engine(failpoints=Failpoints(file))

    def stops(tx: Transaction) -> None:
        shelf.put(tx, "stopped")
        tx.failpoint("after-lock")

    calls = [shelf.calling(engine, stops), shelf.putting(engine, "went on")]
    gevent.joinall(calls)
    assert isinstance(calls[0].exception, FailpointError)
    assert shelf.names(engine) == ["went on"]


def test_an_operation_sees_the_instant_of_the_engine_clock(open_engine: Open) -> None:
    clock = ManualClock()
    engine = open_engine(clock=clock)
    before = clock.now()
    assert engine.run(lambda tx: tx.now()) == before
    clock.advance(60)
    assert engine.read(lambda reader: reader.now()) == before + 60_000_000
