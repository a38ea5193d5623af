"""A look is shared by those who ask before it begins, and by nobody else."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import gevent
import pytest
from gevent.event import AsyncResult

from app.clock import ManualClock
from app.services.looks import SharedLooks
from app.storage.engine import Reader, Unavailable
from app.storage.sqlite import SqliteEngine
from tests.storage.shelf import PATIENT

Query = Callable[[Reader, str], int]


class Counter:
    """A query that counts how often it ran, and may be told to fail."""

    def __init__(self) -> None:
        self.runs = 0
        self.fault: Exception | None = None

    def __call__(self, reader: Reader, name: str) -> int:
        self.runs += 1
        if self.fault is not None:
            raise self.fault
        return self.runs


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[SqliteEngine]:
    opened = SqliteEngine(tmp_path / "fencepost.db", clock=ManualClock(), readers=1, **PATIENT)
    yield opened
    opened.close()


@pytest.fixture
def busy(engine: SqliteEngine) -> Iterator[Callable[[], None]]:
    """The only reader is at work until the returned function is called."""
    leave = threading.Event()
    reading = gevent.spawn(engine.read, lambda reader: leave.wait(20))
    gevent.sleep(0.05)
    yield leave.set
    leave.set()
    reading.join()


def ask(looks: SharedLooks[int], name: str, answers: list[int]) -> "gevent.Greenlet[[], None]":
    return gevent.spawn(lambda: answers.append(looks.look(name)))


def test_those_who_ask_before_it_begins_share_one_look(engine, busy) -> None:
    count = Counter()
    looks = SharedLooks(engine, count)
    answers: list[int] = []
    asking = [ask(looks, "a", answers) for _ in range(50)] + [ask(looks, "b", answers)]
    gevent.sleep(0.05)
    busy()
    gevent.joinall(asking, raise_error=True)
    assert sorted(answers) == [1] * 50 + [2]
    assert count.runs == 2


def test_one_who_asks_after_it_began_gets_a_look_of_its_own(engine) -> None:
    begun: AsyncResult[None] = AsyncResult()
    loop = gevent.get_hub().loop
    go_on = threading.Event()
    runs: list[str] = []

    def slow(reader: Reader, name: str) -> int:
        runs.append(name)
        loop.run_callback_threadsafe(begun.set, None)
        go_on.wait(20)
        return len(runs)

    looks = SharedLooks(engine, slow)
    answers: list[int] = []
    first = ask(looks, "a", answers)
    begun.get(timeout=10)
    second = ask(looks, "a", answers)
    gevent.sleep(0.05)
    go_on.set()
    gevent.joinall([first, second], raise_error=True)
    assert len(runs) == len(answers) == 2


def test_nothing_is_kept_from_one_look_to_the_next(engine) -> None:
    looks = SharedLooks(engine, Counter())
    assert [looks.look("a"), looks.look("a"), looks.look("a")] == [1, 2, 3]


def test_a_look_that_fails_fails_for_all_who_share_it_and_the_next_is_fresh(engine, busy) -> None:
    count = Counter()
    count.fault = Unavailable("away", committed="no")
    looks = SharedLooks(engine, count)

    def fails() -> bool:
        with pytest.raises(Unavailable):
            looks.look("a")
        return True

    asking = [gevent.spawn(fails) for _ in range(5)]
    gevent.sleep(0.05)
    busy()
    gevent.joinall(asking, raise_error=True)
    assert all(one.value for one in asking)
    assert count.runs == 1
    count.fault = None
    assert looks.look("a") == 2


def test_those_who_share_a_look_look_for_themselves_when_its_leader_is_stopped(engine, busy) -> None:
    looks = SharedLooks(engine, Counter())
    answers: list[int] = []
    leader, follower = ask(looks, "a", answers), ask(looks, "a", answers)
    gevent.sleep(0.05)
    leader.kill()
    busy()
    follower.join(20)
    assert len(answers) == 1
