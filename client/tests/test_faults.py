"""The client's nightmare: answers lost after the commit, delays, resets, requests that arrive twice or late.

Whatever the network does, the end state is as if each call had happened once, no caller locks itself out, and no work
is done twice. A quick share runs by default, 10,000 operations behind the marker `long`.
"""

import threading
from collections import Counter
from typing import Any

import pytest
from client.tests.proxy import FaultyProxy
from client.tests.worlds import World
from tests.real.server import RunningServer

import fencepost
from fencepost import Completed, Granted, Held, NotGranted, keys

QUICK, ALL = 60, 10_000
WORKERS = 4


@pytest.mark.parametrize("operations", [QUICK, pytest.param(ALL, marks=[pytest.mark.long, pytest.mark.timeout(3600)])])
def test_through_a_faulty_network_each_call_happens_once(
    server: RunningServer, world: World, ns: str, operations: int
) -> None:
    """L-R2, L-R3."""
    app, seed = f"app-{keys.mint_nonce()}", operations
    tally = Tally()
    with FaultyProxy(server.port, seed) as proxy:
        clients = [world.client(proxy.url, **PATIENT) for _ in range(WORKERS)]
        turns = operations // WORKERS // 4
        threads = [threading.Thread(target=_work, args=(fp, ns, app, turns, tally)) for fp in clients]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert set(proxy.done) == {*FaultyProxy.FAULTS, "pass"}
    assert tally.faults == []
    with fencepost.Client(server.url, once_secret=SECRET) as straight:
        _judge(straight, ns, app, tally)


SECRET = "a-secret-of-the-tests-0123456789"
PATIENT: dict[str, Any] = {"retry_seconds": 60, "once_secret": SECRET}


class Tally:
    """What the workers did and were told."""

    def __init__(self) -> None:
        self.charged: Counter[str] = Counter()
        self.fences: dict[str, list[int]] = {}
        self.completed: set[str] = set()
        self.handoffs: list[tuple[str, str, int]] = []
        self.faults: list[str] = []
        self.lock = threading.Lock()


def _work(fp: Any, ns: str, app: str, turns: int, tally: Tally) -> None:
    try:
        for turn in range(turns):
            _lease(fp, ns, f"shared-{turn % 7}", tally)
            _complete(fp, ns, f"done-{turn}", tally)
            _once(fp, app, f"charge-{turn}", tally)
            _handoff(fp, tally)
    except Exception as fault:  # noqa: BLE001 - told by the test
        with tally.lock:
            tally.faults.append(repr(fault))


def _lease(fp: Any, ns: str, key: str, tally: Tally) -> None:
    """Take, and give back: nobody is locked out by an own lost answer, and fences only grow."""
    with fp.lease(key, namespace=ns, ttl=30, wait=120) as lease, tally.lock:
        tally.fences.setdefault(key, []).append(lease.fencing_token)


def _complete(fp: Any, ns: str, key: str, tally: Tally) -> None:
    """The first does the work, everybody else is told its result."""
    try:
        with fp.lease(key, namespace=ns, ttl=30, wait=120) as lease:
            with tally.lock:
                tally.charged[key] += 1
            lease.complete({"key": key})
    except NotGranted as refusal:
        outcome = refusal.outcome
    else:
        outcome = fp.leases.acquire(key, namespace=ns)
    assert isinstance(outcome, Completed), outcome
    assert outcome.result == {"key": key}
    with tally.lock:
        tally.completed.add(key)


def _once(fp: Any, app: str, key: str, tally: Tally) -> None:
    def charge(_: Any = None) -> str:
        with tally.lock:
            tally.charged[key] += 1
        return f"receipt of {key}"

    async def charge_async(_: Any = None) -> str:
        return charge()

    action = charge if isinstance(fp, fencepost.Client) else charge_async
    assert fp.once(app, key, action, payload={"key": key}, wait=120) == f"receipt of {key}"


def _handoff(fp: Any, tally: Tally) -> None:
    made = fp.handoffs.create({"n": 1}, states=["a", "b", "c"])
    for state in ("b", "c"):
        assert made.move(state)["current_version"] == made.version
    with tally.lock:
        tally.handoffs.append((made.handoff_id, made.token, made.version))


def _judge(fp: fencepost.Client, ns: str, app: str, tally: Tally) -> None:
    """The end state, seen over a good network."""
    assert {key: count for key, count in tally.charged.items() if count != 1} == {}
    for key, fences in tally.fences.items():
        assert len(set(fences)) == len(fences)
        assert fences == sorted(fences)
        assert isinstance(fp.leases.acquire(key, namespace=ns), Granted)
    for key in tally.completed:
        assert isinstance(fp.leases.acquire(key, namespace=ns), Completed)
    for handoff_id, token, version in tally.handoffs:
        view = fp.handoffs.open(handoff_id, token).read()
        assert (view["version"], version, view["ended"]) == (3, 3, True)
        assert [entry["state"] for entry in view["history"]] == ["a", "b", "c"]


def test_a_lost_answer_does_not_lock_the_caller_out(server: RunningServer, world: World, ns: str) -> None:
    for fault in ("drop", "reset", "half", "later"):
        with FaultyProxy(server.port, 1, rate=0.7, faults=(fault,)) as proxy:
            fp = world.client(proxy.url, **PATIENT)
            for turn in range(5):
                with fp.lease(f"{fault}-{turn}", namespace=ns):
                    pass
    with fencepost.Client(server.url) as straight:
        for fault in ("drop", "reset", "half", "later"):
            assert not isinstance(straight.leases.acquire(f"{fault}-4", namespace=ns), Held)
