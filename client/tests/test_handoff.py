"""Handoffs in both worlds: created once, moved once, every change told once and in order."""

import threading
import time
from typing import Any

import pytest
from client.tests.waiting import until
from client.tests.worlds import World
from tests.real.server import RunningServer

from fencepost import keys, refusals

STATES = ["open", "review", "published", "rejected"]
MANY = [f"s{number}" for number in range(12)]


@pytest.fixture
def fp(world: World, url: str) -> Any:
    """A client of the shared server."""
    return world.client(url)


def offer(fp: Any, states: list[str] | None = None) -> tuple[Any, Any]:
    """Both sides of a new handoff."""
    final = ["published", "rejected"] if states is None else None
    made = fp.handoffs.create({"draft_id": 42}, states=states or STATES, final=final, audience="person", note="look")
    return made, fp.handoffs.open(made.handoff_id, made.receiver_token)


def test_both_sides_see_it_and_each_move_names_what_it_expects(fp: Any) -> None:
    owner, receiver = offer(fp)
    assert owner.review_url.endswith(f"#{owner.handoff_id}.{owner.receiver_token}")
    assert receiver.read()["payload"] == {"draft_id": 42}
    assert receiver.move("review", note="on it")["version"] == 2
    assert receiver.state == "review"
    with pytest.raises(refusals.StateMismatch) as told:
        owner.move("review", expect="open")
    assert told.value.details["current_state"] == "review"
    with pytest.raises(refusals.UnknownState):
        owner.move("nowhere")
    nonce = keys.mint_nonce()
    first = receiver.move("published", nonce=nonce)
    again = fp.handoffs.open(owner.handoff_id, owner.receiver_token).move("published", expect="review", nonce=nonce)
    assert (first["version"], again["version"], again["repeated"]) == (3, 3, True)
    assert receiver.ended


def test_a_review_link_opens_the_receivers_side(fp: Any, url: str) -> None:
    owner, _ = offer(fp)
    link = f"{url}/review#{owner.handoff_id}.{owner.receiver_token}"
    assert fp.handoffs.from_link(link).read()["role"] == "receiver"
    for wrong in (f"https://elsewhere.example/review#{owner.handoff_id}.x", f"{url}/review", f"{url}/review#abc"):
        with pytest.raises(ValueError, match="link"):
            fp.handoffs.from_link(wrong)


def test_a_token_of_nothing_is_not_found(fp: Any) -> None:
    owner, _ = offer(fp)
    wrong = fp.handoffs.open(owner.handoff_id, keys.mint_handoff_tokens()[0])
    with pytest.raises(refusals.NotFound):
        wrong.read()
    with pytest.raises(refusals.NotFound):
        list(wrong.changes())
    with pytest.raises(LookupError):
        _ = wrong.receiver_token


def test_wait_until_sees_a_move_that_came_before_and_one_that_comes_later(fp: Any, world: World, url: str) -> None:
    owner, receiver = offer(fp)
    receiver.move("review")
    assert owner.wait_until("review", timeout=5).state == "review"
    other = world.client(url).handoffs.open(owner.handoff_id, owner.receiver_token)
    mover = threading.Timer(0.5, lambda: other.move("published"))
    mover.start()
    assert owner.wait_until("published", "rejected", timeout=20).state == "published"
    mover.join()
    with pytest.raises(TimeoutError):
        offer(fp)[0].wait_until("published", timeout=0.3)


@pytest.mark.parametrize("stream", [True, False])
def test_changes_come_once_in_order_and_end(fp: Any, world: World, url: str, stream: bool) -> None:
    owner, _ = offer(fp, MANY)
    other = world.client(url).handoffs.open(owner.handoff_id, owner.receiver_token)

    def walk() -> None:
        for state in MANY[1:]:
            other.move(state)
            time.sleep(0.05)

    walker = threading.Thread(target=walk)
    walker.start()
    told = list(owner.changes(stream=stream))
    walker.join()
    assert [change.version for change in told] == list(range(1, 13))
    assert [change.state for change in told] == MANY
    assert [change.ended for change in told] == [False] * 11 + [True]
    assert told[0].note == "look"
    assert [change.version for change in owner.changes(after=10, stream=stream)] == [11, 12]
    assert owner.ended


def test_changes_outlive_restarts_and_kills_of_the_server(own_server: RunningServer, world: World) -> None:
    """C9, C10: versions are the cursor, so that a restart loses and repeats nothing."""
    fp = world.client(own_server.url)
    owner, _ = offer(fp, MANY)
    other = world.client(own_server.url).handoffs.open(owner.handoff_id, owner.receiver_token)
    told: list[int] = []

    def follow() -> None:
        told.extend(change.version for change in owner.changes())

    follower = threading.Thread(target=follow)
    follower.start()
    other.move(MANY[1])
    own_server.restart()
    other.move(MANY[2])
    own_server.kill9()
    own_server.start()
    for state in MANY[3:]:
        other.move(state)
    follower.join(60)
    assert told == list(range(1, 13))


def test_an_expired_handoff_ends_its_changes(own_server: RunningServer, world: World) -> None:
    fp = world.client(own_server.url)
    owner = fp.handoffs.create({"a": 1}, ttl=60)
    seen: list[Any] = []
    ended = threading.Event()

    def follow() -> None:
        try:
            for change in owner.changes():
                seen.append(change)
        except refusals.Expired:
            ended.set()

    follower = threading.Thread(target=follow)
    follower.start()
    until(lambda: seen)
    own_server.set_clock(120)
    follower.join(30)
    assert ended.is_set()
