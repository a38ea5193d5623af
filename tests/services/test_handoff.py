"""The use cases of the handoff on a real file: what is stored comes back, what is refused leaves no trace."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, TypeVar

import gevent
import pytest

from app import tokens
from app.clock import ManualClock, monotonic
from app.core import handoff as core
from app.core.instants import DAY_SECONDS, SECOND
from app.core.limits import Exhausted
from app.core.machine import Machine, declare
from app.push.deadlines import Deadlines
from app.push.hub import Hub
from app.push.seats import Full, Seats
from app.services.handoff import Creation, Handoffs
from app.services.limits import DailyLimit
from app.services.ports import HungUp
from app.services.sweep import HANDOFFS, Sweep
from app.storage.engine import Reader
from app.storage.sqlite import SqliteEngine
from app.testmode import Failpoints
from app.tokens import Kind

UNKNOWN = "0" * 32
T = TypeVar("T")


class Line:
    """A caller's connection that hangs up when told to."""

    def __init__(self) -> None:
        self.is_up = True
        self._wake: Callable[[], None] = lambda: None

    def is_open(self) -> bool:
        return self.is_up

    def on_hang_up(self, wake: Callable[[], None]) -> AbstractContextManager[object]:
        self._wake = wake
        return nullcontext()

    def hang_up(self) -> None:
        self.is_up = False
        self._wake()


class CountedEngine(SqliteEngine):
    """The real one, which also counts how often somebody looked."""

    looks = 0
    before_a_look: Callable[[], object] | None = None
    after_a_look: Callable[[], object] | None = None

    def read(self, query: Callable[[Reader], T]) -> T:
        self.looks += 1
        act, self.before_a_look = self.before_a_look, None
        if act is not None:
            act()
        found = super().read(query)
        act, self.after_a_look = self.after_a_look, None
        if act is not None:
            act()
        return found


class House:
    """The service with everything it stands on, on one file."""

    def __init__(self, path: Path, most_live: int = 4096, creations_per_day: int = 100, seats: int = 100) -> None:
        self.clock = ManualClock()
        self.hub = Hub()
        self.engine = CountedEngine(path, clock=self.clock, on_commit=self.hub.committed)
        self.deadlines = Deadlines(self.clock, self.hub, longest_nap_seconds=0.01)
        self.seats = Seats(seats)
        self.listened: list[str] = []
        self.after_listen: Callable[[], object] = lambda: None
        creations = DailyLimit(self.engine, self.clock, "handoffs", creations_per_day)
        self.handoffs = Handoffs(
            self.engine,
            self.hub,
            self.deadlines,
            self.seats,
            creations,
            most_live=most_live,
            result_url="http://fence.example/{}".format,
            failpoint=self.at,
        )

    def at(self, name: str) -> None:
        assert name == "after-listen"
        self.after_listen()

    def create(self, **changes: Any) -> Creation:
        machine = declare()
        assert isinstance(machine, Machine)
        members: dict[str, Any] = {"payload": '{"a": 1.50}', "note": None, "machine": machine, "ttl_seconds": 86_400}
        members |= {"title": None, "audience": "agent", "notify_url": None, "address": None}
        members |= {"nonce": None, "owner_token": None, "receiver_token": None}
        return self.handoffs.create(**(members | changes))

    def made(self, **changes: Any) -> tuple[str, str, str]:
        """The name, the owner's and the receiver's token of a new handoff."""
        creation = self.create(**changes)
        assert isinstance(creation.outcome, core.Created)
        return creation.outcome.record.handoff_id, creation.owner_token, creation.receiver_token

    def move(self, handoff_id: str, token: str, **changes: Any) -> Any:
        members: dict[str, Any] = {"to": "accepted", "expected": "offered", "nonce": None, "note": None}
        return self.handoffs.move(handoff_id=handoff_id, token=token, **(members | changes))

    def wait(self, handoff_id: str, token: str, seconds: int = 20, caller: Line | None = None, **changes: Any) -> Any:
        members: dict[str, Any] = {"known": None, "wait_seconds": seconds, "caller": caller or Line()}
        return self.handoffs.wait(handoff_id=handoff_id, token=token, **(members | changes))

    def close(self) -> None:
        self.deadlines.stop()
        self.engine.close()


@pytest.fixture
def open_house(tmp_path: Path) -> Iterator[Callable[..., House]]:
    houses: list[House] = []

    def open_(**settings: int) -> House:
        for earlier in houses:
            earlier.close()
        houses.clear()
        houses.append(House(tmp_path / "fencepost.db", **settings))
        return houses[0]

    yield open_
    for house in houses:
        house.close()


@pytest.fixture
def house(open_house: Callable[..., House]) -> House:
    return open_house()


def caller_tokens() -> dict[str, str]:
    return {
        "nonce": "n1",
        "owner_token": tokens.mint(Kind.HANDOFF_OWNER),
        "receiver_token": tokens.mint(Kind.HANDOFF_RECEIVER),
    }


# ------------------------------------------------------------------------------------------------- what is stored


def test_everything_that_was_offered_is_read_back(house):
    machine = declare(["a", "b", "c"], ["b", "c"], {"a": ["c", "b"]}, {"c": "owner"})
    text = '{ "b":1e400,\t"a":[1.10, "\\u0000\\ud83d\\ude00"]}'
    name, owner, receiver = house.made(
        machine=machine, payload=text, note="\x00né", title="ti\x00tle", audience="person", notify_url="https://e.com/"
    )
    seen = house.handoffs.read(handoff_id=name, token=owner)
    assert isinstance(seen, core.Seen)
    offer = seen.record.offer
    assert (offer.payload.decode(), offer.note, offer.title) == (text, "\x00né", "ti\x00tle")
    assert (offer.audience, offer.notify_url, offer.machine) == ("person", "https://e.com/", machine)
    assert (seen.role, seen.left) == ("owner", DAY_SECONDS * SECOND)
    assert house.handoffs.read(handoff_id=name, token=receiver) == core.Seen(seen.record, "receiver", seen.left)
    assert house.handoffs.read_as("operator", handoff_id=name) == core.Seen(seen.record, "operator", seen.left)


def test_a_move_and_its_nonce_survive_a_restart(open_house):
    house = open_house()
    name, owner, receiver = house.made()
    first = house.move(name, receiver, nonce="n", note="mine")
    house.move(name, owner, expected="accepted", to="done")
    house = open_house()
    again = house.move(name, receiver, nonce="n", note="mine")
    assert isinstance(again, core.Moved)
    assert (again.repeated, again.version, again.entry) == (True, 2, first.entry)
    assert [line.state for line in again.record.history] == ["offered", "accepted", "done"]
    assert isinstance(house.move(name, receiver, nonce="n"), core.NonceConflict)


def test_an_operator_is_in_the_history_by_name(house):
    name, owner, _ = house.made()
    moved = house.handoffs.move_as_operator(
        handoff_id=name, actor="ann", to="accepted", expected="offered", nonce="n", note=None
    )
    assert isinstance(moved, core.Moved)
    seen = house.handoffs.read(handoff_id=name, token=owner)
    assert (seen.record.history[-1].by, seen.record.history[-1].actor) == ("operator", "ann")


def test_a_refused_move_writes_nothing(house):
    name, _, receiver = house.made()
    before = house.handoffs.read(handoff_id=name, token=receiver)
    for wish in ({"to": "zz"}, {"expected": "working"}, {"to": "offered"}):
        house.move(name, receiver, nonce="n", **wish)
    assert house.handoffs.read(handoff_id=name, token=receiver) == before


# ----------------------------------------------------------------------------------------------------- who may ask


def test_an_unknown_handoff_and_a_wrong_token_are_the_same_outcome(house):
    name, owner, receiver = house.made()
    other, other_owner, _ = house.made()
    tries = [(UNKNOWN, owner), (name, "wrong"), (name, other_owner), (other, receiver), (name, owner + "x")]
    tries.append((name, "hrecv_" + owner.removeprefix("howner_")))
    for handoff_id, token in tries:
        assert house.handoffs.read(handoff_id=handoff_id, token=token) == core.NotFound()
        assert house.move(handoff_id, token) == core.NotFound()
        assert house.wait(handoff_id, token) == core.NotFound()
    assert house.handoffs.read_as("operator", handoff_id=UNKNOWN) == core.NotFound()
    assert house.handoffs.move_as_operator(
        handoff_id=UNKNOWN, actor="ann", to="accepted", expected="offered", nonce=None, note=None
    ) == core.NotFound()  # fmt: skip


# ----------------------------------------------------------------------------------------------- creation, repeated


def test_a_creation_sent_again_is_the_same_handoff_as_it_is_now(house):
    mine = caller_tokens()
    name, owner, receiver = house.made(**mine)
    house.move(name, receiver)
    again = house.create(**mine)
    assert isinstance(again.outcome, core.Created)
    assert (again.outcome.repeated, again.outcome.record.handoff_id) == (True, name)
    assert again.outcome.record.version == 2
    assert (again.owner_token, again.receiver_token) == (owner, receiver)


def test_other_content_under_the_nonce_is_a_conflict_and_another_owner_is_not(house):
    mine = caller_tokens()
    house.made(**mine)
    assert house.create(**mine, title="other").outcome == core.OfferConflict()
    theirs = mine | {"owner_token": tokens.mint(Kind.HANDOFF_OWNER)}
    assert isinstance(house.create(**theirs).outcome, core.Created)


def test_a_nonce_outlives_the_handoff_for_a_day_and_is_then_free_before_any_sweep(house):
    mine = caller_tokens()
    name, owner, _ = house.made(**mine, ttl_seconds=60)
    sweep = Sweep(house.engine, [HANDOFFS], Failpoints())
    house.clock.advance(86_399)
    assert sweep.run()["handoffs"] == 0
    again = house.create(**mine, ttl_seconds=60).outcome
    assert isinstance(again, core.Created)
    assert (again.repeated, again.record.handoff_id, again.left) == (True, name, 0)
    assert isinstance(house.handoffs.read(handoff_id=name, token=owner), core.Expired)
    house.clock.advance(1)
    fresh = house.create(**mine, ttl_seconds=60).outcome
    assert isinstance(fresh, core.Created)
    assert (fresh.repeated, fresh.record.handoff_id == name) == (False, False)


def test_twenty_equal_creations_at_once_make_one_handoff(house):
    mine = caller_tokens()
    outcomes: list[Any] = []
    calls = [gevent.spawn(lambda: outcomes.append(house.create(**mine).outcome)) for _ in range(20)]
    gevent.joinall(calls, raise_error=True)
    assert len({outcome.record.handoff_id for outcome in outcomes}) == 1
    assert [outcome.repeated for outcome in outcomes].count(False) == 1


# ---------------------------------------------------------------------------------------------------------- limits


def test_the_live_limit_counts_what_has_not_expired(open_house):
    house = open_house(most_live=2)
    house.made(ttl_seconds=60)
    house.clock.advance(0.5)
    house.made(ttl_seconds=120)
    assert house.create().outcome == core.NoRoom(60)
    house.clock.advance(59)
    assert house.create().outcome == core.NoRoom(1)
    house.clock.advance(0.5)
    assert isinstance(house.create().outcome, core.Created)
    assert isinstance(house.create().outcome, core.NoRoom)


def test_each_address_has_its_own_creations_a_day(open_house):
    house = open_house(creations_per_day=2)
    mine = caller_tokens()
    assert isinstance(house.create(address="a", **mine).outcome, core.Created)
    assert house.create(address="a", **mine).outcome.repeated
    assert house.create(address="a", **(mine | {"receiver_token": tokens.mint(Kind.HANDOFF_RECEIVER)})).outcome == (
        core.OfferConflict()
    )
    assert isinstance(house.create(address="a").outcome, core.Created)
    assert isinstance(house.create(address="a").outcome, Exhausted)
    assert house.create(address="a", **mine).outcome.repeated
    assert isinstance(house.create(address="b").outcome, core.Created)
    assert isinstance(house.create(address=None).outcome, core.Created)
    house.clock.advance(86_400)
    assert isinstance(house.create(address="a").outcome, core.Created)


# ------------------------------------------------------------------------------------------------- expiry and sweep


def test_expired_then_swept_then_unknown(house):
    name, owner, receiver = house.made(ttl_seconds=60)
    house.move(name, receiver, nonce="n")
    sweep = Sweep(house.engine, [HANDOFFS], Failpoints())
    house.clock.advance(60, microseconds=-1)
    assert sweep.run()["handoffs"] == 0
    assert isinstance(house.handoffs.read(handoff_id=name, token=owner), core.Seen)
    house.clock.advance(microseconds=1)
    assert isinstance(house.handoffs.read(handoff_id=name, token=owner), core.Expired)
    assert isinstance(house.move(name, receiver, nonce="n"), core.Expired)
    assert isinstance(house.wait(name, receiver), core.Expired)
    assert house.handoffs.read(handoff_id=name, token="wrong") == core.NotFound()
    assert sweep.run()["handoffs"] == 1
    assert house.handoffs.read(handoff_id=name, token=owner) == core.NotFound()
    assert house.move(name, receiver, nonce="n") == core.NotFound()


# ----------------------------------------------------------------------------------------------------------- waiting


def later(act: Callable[..., object], *arguments: Any, seconds: float = 0.05, **named: Any) -> None:
    gevent.spawn_later(seconds, act, *arguments, **named)


def test_a_move_wakes_whoever_waits(house):
    name, owner, receiver = house.made()
    later(house.move, name, receiver)
    waited = house.wait(name, owner)
    assert isinstance(waited, core.Waited)
    assert (waited.reason, waited.has_changed, waited.seen.record.version) == ("changed", True, 2)
    assert waited.waited_seconds < 10


def test_a_move_into_a_final_state_ends_the_wait(house):
    name, owner, receiver = house.made()
    later(house.move, name, receiver, to="done")
    waited = house.wait(name, owner)
    assert (waited.reason, waited.has_changed) == ("ended", True)
    again = house.wait(name, owner)
    assert (again.reason, again.has_changed) == ("ended", False)


def test_without_news_the_wait_times_out(house):
    name, owner, _ = house.made()
    for seconds in (0, 1):
        waited = house.wait(name, owner, seconds)
        assert (waited.reason, waited.has_changed) == ("timeout", False)
        assert waited.waited_seconds >= seconds


@pytest.mark.parametrize(("known", "told"), [({1}, True), ({2}, False), ({3}, True), (set(), True), ({1, 2}, False)])
def test_a_baseline_that_differs_is_told_at_once(house, known, told):
    name, owner, receiver = house.made()
    house.move(name, receiver)
    waited = house.wait(name, owner, 0, known=frozenset(known))
    assert waited.has_changed == told
    assert waited.reason == ("changed" if told else "timeout")


@pytest.mark.parametrize("known", [None, frozenset([1])])
def test_a_move_between_listening_and_looking_is_not_missed(house, known):
    name, owner, receiver = house.made()
    house.after_listen = lambda: house.move(name, receiver)
    waited = house.wait(name, owner, known=known)
    assert (waited.reason, waited.has_changed, waited.seen.record.version) == ("changed", True, 2)


def test_a_move_after_the_arrival_is_news_even_to_a_first_reading_that_came_later(house):
    name, owner, receiver = house.made()
    house.engine.before_a_look = lambda: house.move(name, receiver)
    waited = house.wait(name, owner)
    assert (waited.reason, waited.has_changed, waited.seen.record.version) == ("changed", True, 2)


def test_a_move_between_the_look_and_its_answer_is_told_with_its_own_version(house):
    name, owner, receiver = house.made()
    house.after_listen = lambda: setattr(house.engine, "after_a_look", lambda: house.move(name, receiver))
    waited = house.wait(name, owner)
    assert (waited.reason, waited.has_changed, waited.seen.record.version) == ("changed", True, 2)


def test_a_move_during_a_look_that_a_hint_asked_for_is_told_with_its_own_version(house):
    name, owner, receiver = house.made()

    def hint() -> None:
        house.engine.after_a_look = lambda: house.move(name, receiver)
        house.hub.ring([f"handoff:{name}"])

    later(hint)
    waited = house.wait(name, owner)
    assert (waited.reason, waited.has_changed, waited.seen.record.version) == ("changed", True, 2)


def test_a_late_hint_of_an_old_move_is_no_news(house):
    name, owner, receiver = house.made()
    house.move(name, receiver)
    later(house.hub.ring, [f"handoff:{name}"])
    waited = house.wait(name, owner, 1)
    assert (waited.reason, waited.has_changed) == ("timeout", False)


def test_a_handoff_that_expires_wakes_its_waiters(house):
    name, owner, _ = house.made(ttl_seconds=60)
    later(house.clock.advance, 60)
    began = monotonic()
    assert isinstance(house.wait(name, owner), core.Expired)
    assert monotonic() - began < 15, "only its own end woke it"


def test_a_server_that_stops_tells_every_waiter(house):
    name, owner, _ = house.made()
    later(house.hub.stop)
    waited = house.wait(name, owner)
    assert (waited.reason, waited.has_changed) == ("shutdown", False)
    assert house.wait(name, owner).reason == "shutdown"


def test_a_caller_that_hangs_up_frees_its_place(house):
    name, owner, _ = house.made()
    caller = Line()
    later(caller.hang_up)
    began = monotonic()
    with pytest.raises(HungUp):
        house.wait(name, owner, caller=caller)
    assert monotonic() - began < 15, "only its own end woke it"
    assert house.seats.taken == 0
    assert house.hub.listened() == []


def test_who_waits_is_known_while_they_wait(house):
    name, owner, receiver = house.made()
    calls = [gevent.spawn(house.wait, name, token) for token in (owner, receiver, owner)]
    gevent.sleep(0.1)
    assert sorted(waiter.role for waiter in house.handoffs.waiters(name)) == ["owner", "owner", "receiver"]
    house.move(name, receiver)
    gevent.joinall(calls, raise_error=True)
    assert house.handoffs.waiters(name) == []


def test_with_no_seat_left_only_what_needs_no_waiting_is_answered(open_house):
    house = open_house(seats=0)
    name, owner, _ = house.made()
    assert house.wait(name, owner, 0).reason == "timeout"
    assert house.wait(name, owner, known=frozenset([9])).reason == "changed"
    with pytest.raises(Full):
        house.wait(name, owner, 1)
    assert house.hub.listened() == []


def test_traffic_of_other_handoffs_wakes_nobody(house):
    name, owner, _ = house.made()
    other, _, other_receiver = house.made()
    later(house.move, other, other_receiver)
    before = house.engine.looks
    assert house.wait(name, owner, 1).reason == "timeout"
    assert house.engine.looks == before + 3  # what it knows, after listening, at the end
