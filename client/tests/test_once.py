"""Once-keys in both worlds: done once, recorded once, told to everybody else."""

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from client.tests.proxy import Relay
from client.tests.worlds import World
from tests.real.server import RunningServer

import fencepost
from fencepost import Claimed, Duplicate, InProgress, InProgressElsewhere, PayloadMismatch, keys, refusals
from fencepost._once import OnceTokens

_SECRET = "a-secret-of-the-tests-0123456789"


@pytest.fixture
def fp(world: World, url: str) -> Any:
    """A client with a secret from which its tokens come."""
    return world.client(url, once_secret=_SECRET)


@pytest.fixture
def app() -> str:
    """A once namespace of this test alone."""
    return f"app-{keys.mint_nonce()}"


def test_an_action_is_done_once_and_later_callers_get_its_result(fp: Any, app: str, world: World) -> None:
    done: list[Any] = []

    def charge(order: Any) -> Any:
        done.append(order)
        return {"receipt": order["id"]}

    for _ in range(3):
        assert fp.once(app, "charge-1042", world.action(charge), payload={"id": 1042}) == {"receipt": 1042}
    assert done == [{"id": 1042}]
    with pytest.raises(PayloadMismatch):
        fp.once(app, "charge-1042", world.action(charge), payload={"id": 7})


def test_a_result_of_none_is_a_result(fp: Any, app: str, world: World) -> None:
    done: list[int] = []
    for _ in range(2):
        assert fp.once(app, "k", world.action(lambda: done.append(1))) is None
    assert done == [1]


def test_callers_at_once_act_once(fp: Any, app: str, url: str, world: World) -> None:
    """The first claims of a namespace come from several threads and processes with one secret."""
    done: list[int] = []
    results: list[Any] = []

    def act() -> str:
        done.append(1)
        time.sleep(0.3)
        return "the only"

    barrier = threading.Barrier(6)

    def call(client: Any) -> None:
        barrier.wait()
        results.append(client.once(app, "k", world.action(act)))

    clients = [fp, fp, fp, *(world.client(url, once_secret=_SECRET) for _ in range(3))]
    threads = [threading.Thread(target=call, args=(client,)) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert done == [1]
    assert results == ["the only"] * 6


def test_an_action_that_raises_is_given_back(fp: Any, app: str, world: World) -> None:
    def fail() -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError):
        fp.once(app, "k", world.action(fail))
    assert fp.once(app, "k", world.action(lambda: 5)) == 5


def test_the_decorator_makes_the_key_of_the_arguments(fp: Any, app: str, world: World) -> None:
    done: list[Any] = []

    def charge(order: int, *, cents: int) -> int:
        done.append(order)
        return cents

    once_each = fp.exactly_once(namespace=app, key=lambda order, **_: f"charge-{order}")(world.action(charge))
    if world.is_async:
        charge_async: Any = _async(charge)
        once_each = fp.exactly_once(namespace=app, key=lambda order, **_: f"charge-{order}")(charge_async)
    assert [once_each(1, cents=5), once_each(1, cents=5), once_each(2, cents=6)] == [5, 5, 6]
    assert done == [1, 2]


def _async(function: Any) -> Any:
    async def act(*arguments: Any, **named: Any) -> Any:
        return function(*arguments, **named)

    return act


def test_a_sync_client_refuses_a_coroutine_before_it_claims(url: str, app: str) -> None:
    async def act() -> int:
        return 1

    with fencepost.Client(url, once_secret=_SECRET) as fp:
        with pytest.raises(TypeError, match="AsyncClient"):
            fp.once(app, "k", act)
        with pytest.raises(TypeError, match="AsyncClient"):
            fp.exactly_once(namespace=app)(act)
        with pytest.raises(TypeError, match="AsyncClient"):
            fp.once(app, "k", lambda: act())
        assert fp.once(app, "k", lambda: 3) == 3


def test_a_done_action_whose_result_cannot_be_kept_is_not_done_again(fp: Any, app: str, world: World) -> None:
    done: list[int] = []

    def act(result: Any) -> Any:
        done.append(1)
        return result

    with pytest.raises(refusals.ResultTooLarge):
        fp.once(app, "big", world.action(lambda: act("x" * 20_000)))
    with pytest.raises(TypeError):
        fp.once(app, "odd", world.action(lambda: act({1, 2})))
    assert fp.once(app, "big", world.action(lambda: act(1))) is None
    assert fp.once(app, "odd", world.action(lambda: act(1))) is None
    assert done == [1, 1]


def test_a_leased_claim_is_renewed_while_the_action_runs(fp: Any, app: str, world: World, url: str) -> None:
    other = world.client(url, once_secret=_SECRET)

    def act() -> str:
        time.sleep(3)
        assert isinstance(other.onces.claim(app, "k", lease_ttl=1), InProgress)
        return "done"

    assert fp.once(app, "k", world.action(act), lease_ttl=1) == "done"


def test_a_claim_that_was_taken_over_is_told_and_never_recorded_over(fp: Any, app: str, world: World) -> None:
    with _takeover(fp, app) as act, pytest.raises(refusals.ClaimLost):
        fp.once(app, "k", world.action(act), lease_ttl=60)
    outcome = fp.onces.claim(app, "k")
    assert isinstance(outcome, Duplicate)
    assert outcome.result == "of the other"


def test_a_claim_that_lapsed_unheard_is_taken_over_and_never_recorded_over(
    server: RunningServer, world: World, app: str, url: str
) -> None:
    """The network is gone while the action runs: nobody releases anything, the lease simply runs out."""
    came_back = threading.Event()
    with Relay(server.port) as relay, fencepost.Client(url, once_secret=_SECRET) as other:

        def act() -> str:
            relay.is_silent.set()
            try:
                claim = other.onces.claim(app, "k", wait=30, lease_ttl=60)
                assert isinstance(claim, Claimed)
                assert claim.recovered
                other.onces.complete(app, "k", "of the other", claim_token=claim.claim_token)
            finally:
                relay.is_silent.clear()
                came_back.set()
            return "mine"

        fp = world.client(relay.url, once_secret=_SECRET)
        with pytest.raises(refusals.ClaimLost):
            fp.once(app, "k", world.action(act), lease_ttl=2)
        assert came_back.wait(30)
        outcome = other.onces.claim(app, "k")
        assert isinstance(outcome, Duplicate)
        assert outcome.result == "of the other"
        assert other.once(app, "k", lambda: "again") == "of the other"


def test_no_renewal_makes_a_claim_certain_beyond_its_own_end(url: str, app: str) -> None:
    async def long() -> None:
        await asyncio.sleep(60)

    async def act() -> None:
        async with fencepost.AsyncClient(url, once_secret=_SECRET) as fp:
            await fp.once(app, "k", long, ttl=2, lease_ttl=120)

    began = time.monotonic()
    with pytest.raises(refusals.ClaimLost):
        asyncio.run(act())
    assert time.monotonic() - began < 50  # not the two minutes of the lease


@contextmanager
def _takeover(fp: Any, app: str) -> Iterator[Any]:
    """An action during which its claim is released behind its back, and another claims and completes."""

    def act() -> str:
        fp.onces.release(app, "k")
        other = fp.onces.claim(app, "k")
        assert isinstance(other, Claimed)
        fp.onces.complete(app, "k", "of the other", claim_token=other.claim_token)
        return "mine"

    yield act


def test_who_waits_in_vain_is_told(fp: Any, app: str, world: World) -> None:
    assert isinstance(fp.onces.claim(app, "k"), Claimed)
    with pytest.raises(InProgressElsewhere):
        fp.once(app, "k", world.action(lambda: 1), wait=0)
    assert fp.onces.status(app, "k")["state" if "state" in fp.onces.status(app, "k") else "status"] == "held"


def test_a_stranger_is_refused_and_a_rotated_token_goes_on(fp: Any, app: str, world: World, url: str) -> None:
    fp.once(app, "k", world.action(lambda: 1))
    stranger = world.client(url)
    with pytest.raises(refusals.Forbidden):
        stranger.once(app, "k", world.action(lambda: 2))
    token = fp.onces.rotate_token(app)
    assert fp.once(app, "k", world.action(lambda: 2)) == 1
    with pytest.raises(refusals.Forbidden):
        world.client(url, once_secret=_SECRET).once(app, "k", world.action(lambda: 2))
    assert world.client(url, once_tokens={app: token}).once(app, "k", world.action(lambda: 2)) == 1


def test_a_minted_token_is_known_after_the_first_claim(world: World, url: str, app: str) -> None:
    fp = world.client(url)
    fp.once(app, "k", world.action(lambda: 1))
    assert fp.onces.tokens[app].startswith("nst_")
    assert world.client(url, once_tokens=dict(fp.onces.tokens)).once(app, "k", world.action(lambda: 2)) == 1


def test_derived_tokens_are_stable_distinct_and_not_shown() -> None:
    tokens = OnceTokens(None, _SECRET)
    assert tokens.of("a") == OnceTokens(None, _SECRET).of("a")
    assert len({tokens.of("a"), tokens.of("b"), OnceTokens(None, _SECRET + "!").of("a")}) == 3
    assert str(tokens.of("a")) not in repr(tokens)
    with pytest.raises(ValueError, match="16"):
        OnceTokens(None, "short")
