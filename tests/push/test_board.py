"""One look per signal, however many follow; no signal is lost; nobody who left is rung."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import gevent
import pytest

from app.clock import ManualClock
from app.push.board import Board
from app.push.deadlines import Deadlines
from app.push.hub import Hub
from app.storage.engine import Unavailable


@dataclass(frozen=True)
class Seen:
    """A number."""

    number: int
    ends_at: int | None = None

    @property
    def mark(self) -> tuple[object, ...]:
        return (self.number,)

    def is_older_than(self, other: "Seen", /) -> bool:
        return self.number < other.number


class Shelf:
    """What is looked at."""

    def __init__(self) -> None:
        self.things: dict[str, Seen] = {}
        self.looks: list[list[str]] = []
        self.faults: list[Exception] = []
        self.hub = Hub()
        self.clock = ManualClock()
        self.deadlines = Deadlines(self.clock, self.hub, longest_nap_seconds=0.01)
        self.board: Board[Seen] = Board("thing:", self.hub, self.deadlines, self.look)

    def look(self, keys: Sequence[str]) -> Mapping[str, Seen]:
        gevent.sleep(0)
        self.looks.append(sorted(keys))
        if self.faults:
            raise self.faults.pop()
        return {key: self.things[key] for key in keys if key in self.things}

    def put(self, key: str, seen: Seen) -> None:
        self.things[key] = seen
        self.hub.ring([f"thing:{key}"])


class Follower:
    """Notes what it finds when it is rung."""

    def __init__(self, shelf: Shelf, key: str) -> None:
        self.shelf = shelf
        self.found: list[int | None] = []
        with shelf.board.listening(key) as self.watch:
            self.watch.rings.add(self.ring)
            shelf.board.look(self.watch, self.ring)

    def ring(self) -> None:
        self.found.append(None if self.watch.seen is None else self.watch.seen.number)

    def leave(self) -> None:
        self.shelf.board.leave(self.watch, self.ring)


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


def turn() -> None:
    gevent.sleep(0.02)


def test_a_thousand_followers_cost_one_look(shelf: Shelf) -> None:
    followers = [Follower(shelf, "a") for _ in range(1000)]
    turn()
    shelf.looks.clear()
    shelf.put("a", Seen(1))
    turn()
    assert shelf.looks == [["a"]]
    assert all(follower.found[-1] == 1 for follower in followers)


def test_a_burst_of_signals_is_looked_at_together(shelf: Shelf) -> None:
    followers = [Follower(shelf, str(number)) for number in range(50)]
    turn()
    shelf.looks.clear()
    for number in range(50):
        shelf.put(str(number), Seen(7))
    turn()
    assert len(shelf.looks) <= 2
    assert all(follower.found[-1] == 7 for follower in followers)


def test_a_signal_during_a_look_causes_another_one(shelf: Shelf) -> None:
    shelf.put("a", Seen(1))
    follower = Follower(shelf, "a")
    gevent.sleep(0)
    shelf.put("a", Seen(2))
    turn()
    assert follower.found[-1] == 2


def test_a_newcomer_is_rung_though_nothing_happened_and_the_others_are_not(shelf: Shelf) -> None:
    shelf.put("a", Seen(1))
    first = Follower(shelf, "a")
    turn()
    first.found.clear()
    second = Follower(shelf, "a")
    turn()
    assert (first.found, second.found) == ([], [1])


def test_a_look_that_was_overtaken_changes_nothing(shelf: Shelf) -> None:
    shelf.put("a", Seen(1))
    follower = Follower(shelf, "a")
    turn()
    shelf.board.show(follower.watch, Seen(5))
    shelf.board.show(follower.watch, Seen(3))
    assert follower.watch.seen == Seen(5)
    assert follower.found == [1, 5]


def test_what_vanished_is_told_as_nothing(shelf: Shelf) -> None:
    shelf.put("a", Seen(1))
    follower = Follower(shelf, "a")
    turn()
    del shelf.things["a"]
    shelf.hub.ring(["thing:a"])
    turn()
    assert follower.found == [1, None]


def test_nobody_who_left_is_rung_and_nothing_is_left_behind(shelf: Shelf) -> None:
    followers = [Follower(shelf, "a") for _ in range(3)]
    turn()
    for follower in followers:
        follower.found.clear()
        follower.leave()
        follower.leave()
    assert len(shelf.board) == 0
    assert shelf.hub.listened() == []
    shelf.put("a", Seen(9))
    turn()
    assert [follower.found for follower in followers] == [[], [], []]


def test_who_listens_without_staying_leaves_nothing(shelf: Shelf) -> None:
    with shelf.board.listening("a"):
        assert shelf.hub.listened() == ["thing:a"]
    assert shelf.hub.listened() == []


def test_an_end_that_nobody_writes_is_looked_at(shelf: Shelf) -> None:
    shelf.put("a", Seen(1, ends_at=shelf.clock.now() + 5_000_000))
    Follower(shelf, "a")
    turn()
    shelf.looks.clear()
    shelf.clock.advance(5)
    turn()
    assert shelf.looks == [["a"]]


@pytest.mark.parametrize("fault", [Unavailable("away", committed="no"), ValueError("broken")])
def test_a_failed_look_is_repeated(shelf: Shelf, fault: Exception, caplog: pytest.LogCaptureFixture) -> None:
    shelf.put("a", Seen(1))
    shelf.faults = [fault]
    follower = Follower(shelf, "a")
    gevent.sleep(1.2)
    assert follower.found == [1]
    assert len(shelf.looks) == 2
    assert ("failed" in caplog.text) is isinstance(fault, ValueError)
