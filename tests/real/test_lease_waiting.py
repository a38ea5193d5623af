"""Callers in line for a key on a real server: order, hang-ups, wake-ups, the stop."""

import json
import socket
import struct
import time
from collections.abc import Callable

import pytest

from tests.real.api import V1, Answer, Api, Crowd, open_request
from tests.real.server import ENGINES, RunningServer

OWN = "own_abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG"


@pytest.fixture(scope="module", params=ENGINES)
def server(request):
    with RunningServer(engine=request.param) as running:
        yield running


@pytest.fixture
def api(server):
    with Api(server.port) as caller:
        yield caller


@pytest.fixture
def ns(api):
    return api.lease("namespace")["namespace"]


def until(true: Callable[[], bool], seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not become true in time"
        time.sleep(0.01)


def parked(server: RunningServer, ns: str, key: str, **members: object) -> socket.socket:
    """A waiting acquire on a raw socket; returned once the server must have parked it."""
    body = {"key": key, "namespace": ns, "wait_seconds": 25, **members}
    raw = open_request(server.port, f"{V1}/lease/acquire", json.dumps(body))
    raw.settimeout(0.15)
    with pytest.raises(TimeoutError):
        raw.recv(1)
    raw.settimeout(30)
    return raw


def answer_of(raw: socket.socket) -> Answer:
    """Read one answer."""
    received = b""
    while b"\r\n\r\n" not in received:
        piece = raw.recv(65_536)
        assert piece, "the connection was closed without an answer"
        received += piece
    head, _, body = received.partition(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
    while len(body) < length:
        body += raw.recv(65_536)
    return Answer(int(head.split()[1]), {}, body)


def reset(raw: socket.socket) -> None:
    """Hang up with a reset, as a process that is killed does."""
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    raw.close()


def test_a_waiting_acquire_is_refused_when_its_time_is_up(api, ns) -> None:
    api.lease("acquire", key="t", namespace=ns)
    began = time.monotonic()
    held = api.lease("acquire", key="t", namespace=ns, wait_seconds=1)
    assert (held.status, held["code"]) == (409, "lease_held")
    assert 1.0 <= time.monotonic() - began < 10.0


def test_parked_callers_are_granted_in_order_of_arrival(server, api, ns) -> None:
    owner = api.lease("acquire", key="o", namespace=ns)["owner_token"]
    line = [parked(server, ns, "o") for _ in range(6)]
    fences = []
    for raw in line:
        api.lease("release", key="o", namespace=ns, owner_token=owner)
        granted = answer_of(raw)
        assert granted.status == 201
        owner = granted["owner_token"]
        fences.append(granted["fencing_token"])
    assert fences == sorted(set(fences))


@pytest.mark.parametrize("hang_up", [reset, socket.socket.close, lambda raw: raw.shutdown(socket.SHUT_RDWR)])
def test_a_caller_that_hung_up_is_skipped_and_never_holds(server, api, ns, hang_up) -> None:
    owner = api.lease("acquire", key="g", namespace=ns)["owner_token"]
    ghost, living = parked(server, ns, "g"), parked(server, ns, "g")
    hang_up(ghost)
    first = api.lease("status", key="g", namespace=ns)["fencing_token"]
    api.lease("release", key="g", namespace=ns, owner_token=owner)
    granted = answer_of(living)
    assert granted.status == 201
    assert granted["attempt"] <= 3
    assert granted["fencing_token"] > first
    api.lease("release", key="g", namespace=ns, owner_token=granted["owner_token"])
    assert api.lease("status", key="g", namespace=ns)["status"] == "free"


def test_a_lease_released_when_everybody_in_line_hung_up_is_free(server, api, ns) -> None:
    owner = api.lease("acquire", key="gg", namespace=ns)["owner_token"]
    for raw in [parked(server, ns, "gg") for _ in range(5)]:
        reset(raw)
    api.lease("release", key="gg", namespace=ns, owner_token=owner)
    until(lambda: api.lease("status", key="gg", namespace=ns)["status"] == "free")
    assert api.lease("acquire", key="gg", namespace=ns).status == 201


def test_the_end_of_a_lease_wakes_the_line_and_the_ttl_counts_from_the_grant(server, api, ns) -> None:
    api.lease("acquire", key="e", namespace=ns, ttl_seconds=2)
    waiting = parked(server, ns, "e", ttl_seconds=5)
    began = time.monotonic()
    granted = answer_of(waiting)
    assert (granted.status, granted["ttl_seconds"]) == (201, 5)
    assert time.monotonic() - began < 8
    assert api.lease("acquire", key="e", namespace=ns)["retry_after_seconds"] >= 4


def test_a_clock_that_is_walked_forward_wakes_the_line(server, api, ns) -> None:
    api.lease("acquire", key="wk", namespace=ns, ttl_seconds=3600)
    waiting = parked(server, ns, "wk")
    server.offset = getattr(server, "offset", 0.0) + 3601
    server.set_clock(server.offset)
    began = time.monotonic()
    assert answer_of(waiting).status == 201
    assert time.monotonic() - began < 5


def test_a_completion_is_told_to_everyone_in_line(server, api, ns) -> None:
    owner = api.lease("acquire", key="c", namespace=ns, fingerprint="f")["owner_token"]
    line = [parked(server, ns, "c", fingerprint="f") for _ in range(5)]
    api.lease("complete", key="c", namespace=ns, owner_token=owner, result={"n": 1})
    for raw in line:
        told = answer_of(raw)
        assert (told.status, told["status"], told["result"]) == (200, "completed", {"n": 1})


def test_another_fingerprint_does_not_wait(api, ns) -> None:
    api.lease("acquire", key="cf", namespace=ns, fingerprint="f")
    began = time.monotonic()
    assert api.lease("acquire", key="cf", namespace=ns, fingerprint="g", wait_seconds=25)["status"] == "conflict"
    assert time.monotonic() - began < 10


def test_one_caller_parked_twice_with_its_token_gets_one_grant_and_both_are_told(server, api, ns) -> None:
    owner = api.lease("acquire", key="tw", namespace=ns)["owner_token"]
    one, two, rival = (
        parked(server, ns, "tw", owner_token=OWN),
        parked(server, ns, "tw", owner_token=OWN),
        parked(server, ns, "tw"),
    )
    api.lease("release", key="tw", namespace=ns, owner_token=owner)
    first, second = answer_of(one), answer_of(two)
    assert {first.status, second.status} == {201}
    assert first["fencing_token"] == second["fencing_token"]
    assert [answer.body.get("repeated", False) for answer in (first, second)].count(True) == 1
    api.lease("release", key="tw", namespace=ns, owner_token=OWN)
    assert answer_of(rival)["fencing_token"] > first["fencing_token"]


def test_the_second_connection_gets_the_grant_when_the_first_died(server, api, ns) -> None:
    owner = api.lease("acquire", key="td", namespace=ns)["owner_token"]
    dead, alive = (
        parked(server, ns, "td", owner_token=OWN),
        parked(server, ns, "td", owner_token=OWN),
    )
    reset(dead)
    api.lease("release", key="td", namespace=ns, owner_token=owner)
    assert answer_of(alive).status == 201


def test_a_caller_without_wait_never_stands_in_line_nor_overtakes_it(server, api, ns) -> None:
    owner = api.lease("acquire", key="ov", namespace=ns)["owner_token"]
    line = [parked(server, ns, "ov") for _ in range(3)]
    with Crowd(server.port, 8) as crowd:
        for raw in line:
            hammering = [crowd.lease("acquire", key="ov", namespace=ns) for _ in range(24)]
            api.lease("release", key="ov", namespace=ns, owner_token=owner)
            granted = answer_of(raw)
            assert granted.status == 201
            owner = granted["owner_token"]
            assert {answer.result().status for answer in hammering} == {409}


def test_too_many_waiters_are_refused_and_their_seats_come_back() -> None:
    with RunningServer(environment={"FENCEPOST_LIMIT_WAITERS": "3"}) as server, Api(server.port) as api:
        ns = api.lease("namespace")["namespace"]
        owner = api.lease("acquire", key="k", namespace=ns)["owner_token"]
        line = [parked(server, ns, "k") for _ in range(3)]
        refused = api.lease("acquire", key="k", namespace=ns, wait_seconds=5)
        assert (refused.status, refused["code"]) == (503, "too_many_waiters")
        assert int(refused.headers["retry-after"]) >= 1
        assert api.lease("acquire", key="k", namespace=ns).status == 409
        for raw in line:
            reset(raw)
        time.sleep(1.5)
        assert api.lease("acquire", key="k", namespace=ns, wait_seconds=1)["code"] == "lease_held"
        api.lease("release", key="k", namespace=ns, owner_token=owner)


def test_at_the_stop_everyone_parked_is_answered() -> None:
    with RunningServer() as server, Api(server.port) as api:
        ns = api.lease("namespace")["namespace"]
        api.lease("acquire", key="s", namespace=ns, ttl_seconds=600)
        body = json.dumps({"key": "s", "namespace": ns, "wait_seconds": 25})
        line = [open_request(server.port, f"{V1}/lease/acquire", body) for _ in range(500)]
        time.sleep(2)
        began = time.monotonic()
        assert server.terminate() == 0
        stopped = time.monotonic() - began
        answers = [answer_of(raw) for raw in line]
        assert {(answer.status, answer["code"]) for answer in answers} == {(409, "lease_held")}
        assert stopped < 2.0, f"the stop took {stopped:.2f} s"


@pytest.mark.parametrize("callers", [200, pytest.param(1000, marks=pytest.mark.long)])
def test_a_long_line_is_served_one_by_one_in_order_of_arrival(callers: int) -> None:
    with RunningServer() as server, Api(server.port) as api:
        ns = api.lease("namespace")["namespace"]
        owner = api.lease("acquire", key="long", namespace=ns, ttl_seconds=600)["owner_token"]
        body = json.dumps({"key": "long", "namespace": ns, "ttl_seconds": 600, "wait_seconds": 25})
        line = []
        for _ in range(callers):
            line.append(open_request(server.port, f"{V1}/lease/acquire", body))
            time.sleep(0.002)
        time.sleep(1)
        fences = []
        for raw in line:
            api.lease("release", key="long", namespace=ns, owner_token=owner)
            granted = answer_of(raw)
            if granted.status == 409:
                break  # its 25 s are over: the line was longer than the machine is fast
            owner = granted["owner_token"]
            fences.append(granted["fencing_token"])
        assert fences == sorted(set(fences))
        assert len(fences) >= min(callers, 200)
