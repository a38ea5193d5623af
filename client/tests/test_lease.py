"""Leases in both worlds: outcomes, the block, its end, and what is never masked. Case numbers are those of the docs."""

import threading
import time
from typing import Any

import pytest
from client.tests.waiting import until
from client.tests.worlds import World
from tests.real.server import RunningServer

import fencepost
from fencepost import Completed, Conflict, Granted, Held, LeaseLost, Lost, NotGranted, keys, refusals


@pytest.fixture
def fp(world: World, url: str) -> Any:
    """A client of the shared server."""
    return world.client(url)


def test_acquire_says_what_stood_in_the_way(fp: Any, ns: str) -> None:
    granted = fp.leases.acquire("k", namespace=ns, ttl=30, holder="ada", fingerprint="f")
    assert isinstance(granted, Granted)
    assert granted.attempt == 1
    assert granted.ttl_seconds == 30
    held = fp.leases.acquire("k", namespace=ns, fingerprint="f")
    assert isinstance(held, Held)
    assert held.holder == "ada"
    assert 1 <= held.retry_after_seconds <= 30
    assert held.fencing_token == granted.fencing_token
    assert isinstance(fp.leases.acquire("k", namespace=ns, fingerprint="other"), Conflict)
    assert fp.leases.complete("k", granted.owner_token, {"n": 1}, namespace=ns) == {"n": 1}
    done = fp.leases.acquire("k", namespace=ns, fingerprint="f")
    assert isinstance(done, Completed)
    assert done.result == {"n": 1}


def test_the_same_owner_token_is_the_same_ownership(fp: Any, ns: str) -> None:
    token = keys.mint_owner_token()
    first = fp.leases.acquire("k", namespace=ns, owner_token=token)
    again = fp.leases.acquire("k", namespace=ns, owner_token=token)
    assert again.repeated
    assert again.fencing_token == first.fencing_token
    assert fp.leases.release("k", token, namespace=ns)
    assert isinstance(fp.leases.acquire("k", namespace=ns, owner_token=token), Lost)


def test_renew_release_status_and_verify(fp: Any, ns: str) -> None:
    granted = fp.leases.acquire("k", namespace=ns)
    assert fp.leases.verify("k", granted.fencing_token, namespace=ns)
    assert fp.leases.renew("k", granted.owner_token, namespace=ns, ttl=9)
    assert fp.leases.status("k", namespace=ns)["status"] == "held"
    assert fp.leases.release("k", granted.owner_token, namespace=ns)
    assert fp.leases.release("k", granted.owner_token, namespace=ns)
    assert not fp.leases.verify("k", granted.fencing_token, namespace=ns)
    assert not fp.leases.renew("k", granted.owner_token, namespace=ns)
    fp.leases.acquire("k", namespace=ns)
    assert not fp.leases.release("k", granted.owner_token, namespace=ns)


def test_a_refusal_has_its_class_and_code(fp: Any, ns: str) -> None:
    with pytest.raises(refusals.InvalidRequest) as told:
        fp.leases.acquire("k", namespace=ns, ttl=0)
    assert told.value.code == "invalid_request"
    assert told.value.details["field"] == "ttl_seconds"
    granted = fp.leases.acquire("k", namespace=ns)
    with pytest.raises(refusals.ResultTooLarge):
        fp.leases.complete("k", granted.owner_token, "x" * 40_000, namespace=ns)
    assert fp.leases.verify("k", granted.fencing_token, namespace=ns)
    fp.leases.complete("k", granted.owner_token, None, namespace=ns)
    with pytest.raises(refusals.AlreadyCompleted):
        fp.leases.complete("k", granted.owner_token, 1, namespace=ns)


def test_a_result_that_json_cannot_say_is_refused_before_it_is_sent(fp: Any, ns: str) -> None:
    granted = fp.leases.acquire("k", namespace=ns)
    for unsayable in (float("nan"), {1, 2}, "\ud800"):
        with pytest.raises((ValueError, TypeError)):
            fp.leases.complete("k", granted.owner_token, unsayable, namespace=ns)
    assert fp.leases.verify("k", granted.fencing_token, namespace=ns)


def test_numbers_of_any_size_come_back(fp: Any, ns: str) -> None:
    granted = fp.leases.acquire("k", namespace=ns)
    text = '{"big":1e400,"long":' + "7" * 5000 + ',"plain":1.5}'
    result = fp.leases.complete("k", granted.owner_token, fencepost.RawJson(text), namespace=ns)
    assert str(result["big"]) == "1E+400"
    assert str(result["long"]) == "7" * 5000
    assert result["plain"] == 1.5


def test_a_block_holds_renews_and_releases(fp: Any, ns: str) -> None:
    with fp.lease("k", namespace=ns, ttl=2) as lease:
        time.sleep(3)
        lease.check()
        assert isinstance(fp.leases.acquire("k", namespace=ns), Held)
        assert not lease.lost.is_set()
    with pytest.raises(LeaseLost) as told:
        lease.check()
    assert told.value.reason == "released"
    assert isinstance(fp.leases.acquire("k", namespace=ns), Granted)


def test_a_completed_block_releases_nothing_and_the_next_caller_gets_the_result(fp: Any, ns: str) -> None:
    with fp.lease("k", namespace=ns) as lease:
        assert lease.complete({"receipt_id": 4817, "password": "p"}) == {"receipt_id": 4817, "password": "[redacted]"}
        with pytest.raises(LeaseLost):
            lease.check()
    with pytest.raises(NotGranted) as told, fp.lease("k", namespace=ns):
        raise AssertionError("the block must not run")
    assert isinstance(told.value.outcome, Completed)
    assert told.value.outcome.result["receipt_id"] == 4817


def test_a_block_goes_on_holding_after_a_completion_that_was_refused(fp: Any, ns: str) -> None:
    with fp.lease("k", namespace=ns, ttl=2) as lease:
        with pytest.raises(refusals.ResultTooLarge):
            lease.complete("x" * 40_000)
        time.sleep(2.5)
        lease.check()
        lease.complete("small")


def test_the_bodys_own_exception_passes(fp: Any, ns: str) -> None:
    with pytest.raises(KeyError), fp.lease("k", namespace=ns):
        raise KeyError("mine")
    assert isinstance(fp.leases.acquire("k", namespace=ns), Granted)


def test_a_lost_lease_is_told_at_once_and_nothing_is_released(fp: Any, ns: str) -> None:
    """L-C4, L-C6, L-C10: body fine and lost means LeaseLost; the rival is unharmed."""
    with pytest.raises(LeaseLost) as told:
        _hold_and_lose(fp, ns)
    assert told.value.reason == "lost"
    assert fp.leases.status("k", namespace=ns)["status"] == "held"


def test_the_bodys_own_exception_passes_even_when_the_lease_was_lost(fp: Any, ns: str) -> None:
    with pytest.raises(KeyError) as told:
        _hold_and_lose(fp, ns, KeyError("mine"))
    assert any("lease" in note for note in told.value.__notes__)


def test_a_loss_can_be_a_warning(fp: Any, ns: str, caplog: pytest.LogCaptureFixture) -> None:
    _hold_and_lose(fp, ns, raise_if_lost=False)
    assert "a lease was lost while its block ran" in caplog.text


def test_waiting_takes_its_turn_and_counts_the_ttl_from_the_grant(fp: Any, ns: str, world: World, url: str) -> None:
    """L-W3."""
    entered = threading.Event()
    other = world.client(url)

    def second() -> None:
        with other.lease("k", namespace=ns, ttl=5, wait=30) as lease:
            assert lease.seconds_certain > 3
            entered.set()

    with fp.lease("k", namespace=ns, ttl=30):
        waiter = threading.Thread(target=second)
        waiter.start()
        time.sleep(1)
        assert not entered.is_set()
    waiter.join(20)
    assert entered.is_set()


@pytest.mark.parametrize("wait", [0, 0.4, 1.5])
def test_a_wait_ends_in_time(fp: Any, ns: str, wait: float) -> None:
    """L-W1."""
    fp.leases.acquire("k", namespace=ns)
    began = time.monotonic()
    with pytest.raises(NotGranted), fp.lease("k", namespace=ns, wait=wait):
        raise AssertionError("the block must not run")
    assert wait <= time.monotonic() - began < wait + 5


def test_a_lease_is_entered_once(fp: Any, ns: str) -> None:
    lease = fp.lease("k", namespace=ns)
    with pytest.raises(RuntimeError):
        _ = lease.fencing_token
    with lease:
        pass
    with pytest.raises(RuntimeError), lease:
        raise AssertionError("the block must not run")


def test_a_dropped_block_is_not_renewed_for_ever(url: str, ns: str) -> None:
    with fencepost.Client(url) as fp:
        fp.lease("k", namespace=ns, ttl=1).__enter__()
        until(lambda: isinstance(fp.leases.acquire("k", namespace=ns), Granted))


def test_a_restart_is_waited_out(own_server: RunningServer, world: World, ns: str) -> None:
    """L-W6, L-R6: the lease outlives the restart, and so does the wait for it."""
    fp = world.client(own_server.url)
    other = world.client(own_server.url)
    entered = threading.Event()

    def second() -> None:
        with other.lease("k", namespace=ns, ttl=30, wait=60):
            entered.set()

    with fp.lease("k", namespace=ns, ttl=20) as lease:
        waiter = threading.Thread(target=second)
        waiter.start()
        own_server.restart()
        lease.check()
        assert not entered.is_set()
    waiter.join(40)
    assert entered.is_set()


def _hold_and_lose(fp: Any, ns: str, fault: Exception | None = None, **given: Any) -> None:
    """A block that loses its lease, cannot complete any more, and then ends, with this fault or with none."""
    with fp.lease("k", namespace=ns, ttl=3, **given) as lease:
        _take_away(fp, lease, ns)
        assert lease.lost.wait(10)
        with pytest.raises(LeaseLost):
            lease.complete("late")
        if fault is not None:
            raise fault


def _take_away(fp: Any, lease: Any, ns: str) -> None:
    """As if the lease had lapsed: its own token, spent behind the back of the block."""
    assert fp.leases.release("k", lease._owner_token, namespace=ns)
    assert isinstance(fp.leases.acquire("k", namespace=ns, ttl=60), Granted)
