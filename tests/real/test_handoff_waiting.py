"""Waiting on a real server: no move is missed, nobody is kept, and a place is given back however its caller leaves."""

import os
import random
import socket
import statistics
import struct
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from tests.real.api import Answer, Api
from tests.real.handoffs import Made, at_once, bearer, look, make, move, wait, waiting
from tests.real.server import ENGINES, RunningServer

QUICK_ROUNDS = 400
ALL_ROUNDS = 5_000
PAIRS = 8


@pytest.fixture(scope="module", params=ENGINES)
def server(request):
    with RunningServer(engine=request.param, environment={"FENCEPOST_LIMIT_LIVE_HANDOFFS": "100000"}) as running:
        yield running


@pytest.fixture
def api(server):
    with Api(server.port) as caller:
        yield caller


def until(true: Callable[[], bool], seconds: float = 15.0) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not become true in time"
        time.sleep(0.02)


def finish(made: Made, own: Api) -> Answer:
    return move(own, made, "done", "offered")


def open_wait(server: RunningServer, made: Made, seconds: int = 25) -> socket.socket:
    """A wait on a raw socket whose answer nobody has read yet."""
    raw = socket.create_connection(("127.0.0.1", server.port), timeout=30)
    head = f"GET {made.path}/wait/{seconds} HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer {made.owner}\r\n\r\n"
    raw.sendall(head.encode())
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


def parked(server: RunningServer, made: Made) -> socket.socket:
    """An open wait, returned once the server must have parked it."""
    raw = open_wait(server, made)
    raw.settimeout(0.3)
    with pytest.raises(TimeoutError):
        raw.recv(1)
    raw.settimeout(30)
    return raw


def reset(raw: socket.socket) -> None:
    """Hang up with a reset, as a process that is killed does."""
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    raw.close()


# -------------------------------------------------------------------------------------------------- none is missed


def round_with_baseline(waiter: Api, mover: Api, beside: ThreadPoolExecutor, moment: float) -> bool:
    """The move comes so many seconds after the call, or before it where that is negative: it is told in any case."""
    made = make(mover)
    if moment < 0:
        moving = beside.submit(move, mover, made, "accepted", "offered")
        time.sleep(-moment)
        answer = wait(waiter, made, 20, known=1)
        assert moving.result().status == 200
    else:
        pending = beside.submit(wait, waiter, made, 20, known=1)
        time.sleep(moment)
        assert move(mover, made, "accepted", "offered").status == 200
        answer = pending.result()
    assert (answer["changed"], answer["version"], answer["wait_reason"]) == (True, 2, "changed")
    return True


def round_without_baseline(waiter: Api, mover: Api, beside: ThreadPoolExecutor, moment: float) -> bool:
    """A wait that listened before the move was committed is told of it, and one that began later is not."""
    made = make(mover)
    if moment < 0:
        moving = beside.submit(move, mover, made, "accepted", "offered")
        time.sleep(-moment)
        answer = wait(waiter, made, 1)
        moving.result()
    else:
        pending = beside.submit(wait, waiter, made, 1)
        time.sleep(moment)
        move(mover, made, "accepted", "offered")
        answer = pending.result()
    order = waiter.get(f"/test/order/{made.name}")
    began_in_time = order["listened"] < order["committed"]
    told = (answer["changed"], answer["version"], answer["wait_reason"])
    assert told == ((True, 2, "changed") if began_in_time else (False, 2, "timeout"))
    return began_in_time


def usual_seconds(api: Api) -> float:
    """How long a move takes, most often."""
    took = []
    for _ in range(9):
        made = make(api)
        began = time.monotonic()
        move(api, made, "accepted", "offered")
        took.append(time.monotonic() - began)
    return statistics.median(took)


def rounds(
    server: RunningServer,
    count: int,
    one_round: Callable[[Api, Api, ThreadPoolExecutor, float], bool],
    earliest: float,
    latest: float,
    *,
    step: float = 0.0,
) -> int:
    """Run many rounds at random moments, several at once; in how many of them the wait began before the move.

    A moment is how much later than the wait the move is called, in the times that a move takes here. All moments go
    `step` back after a round in which the wait was first, and forward after the others: towards where the two meet,
    which depends on what else the machine does.
    """
    with Api(server.port) as api:
        usual = usual_seconds(api)

    def share(offset: int) -> int:
        draw = random.Random(offset)
        meeting, in_time = 0.0, 0
        with Api(server.port) as waiter, Api(server.port) as mover, ThreadPoolExecutor(1) as beside:
            for _ in range(offset, count, PAIRS):
                was_first = one_round(waiter, mover, beside, usual * (meeting + draw.uniform(earliest, latest)))
                meeting += -step if was_first else step
                in_time += was_first
        return in_time

    with ThreadPoolExecutor(PAIRS) as pool:
        return sum(pool.map(share, range(PAIRS)))


@pytest.fixture(scope="module", params=ENGINES)
def numbering(request):
    """A server that numbers what listens and what is committed."""
    with RunningServer(
        engine=request.param,
        environment={"FENCEPOST_LIMIT_LIVE_HANDOFFS": "100000"},
        application="tests.real.order_app:application",
    ) as running:
        yield running


def test_with_a_baseline_a_move_at_any_moment_is_told(server) -> None:
    assert rounds(server, QUICK_ROUNDS, round_with_baseline, -1.5, 4) == QUICK_ROUNDS


def test_without_a_baseline_a_move_is_told_to_all_who_listened_before_it(numbering) -> None:
    in_time = rounds(numbering, QUICK_ROUNDS, round_without_baseline, -1, 1, step=0.25)
    assert QUICK_ROUNDS // 10 < in_time < QUICK_ROUNDS  # both sides of the moment were tried


@pytest.mark.long
def test_with_a_baseline_a_move_at_any_of_5000_moments_is_told(server) -> None:
    assert rounds(server, ALL_ROUNDS, round_with_baseline, -1.5, 4) == ALL_ROUNDS


@pytest.mark.long
@pytest.mark.timeout(600)
def test_without_a_baseline_a_move_at_any_of_5000_moments_is_told_to_all_who_listened(numbering) -> None:
    in_time = rounds(numbering, ALL_ROUNDS, round_without_baseline, -1, 1, step=0.25)
    assert ALL_ROUNDS // 10 < in_time < ALL_ROUNDS


def test_with_a_baseline_a_move_on_any_process_is_told() -> None:
    with RunningServer(engine="postgresql", environment={"FENCEPOST_WORKERS": "2"}) as many:
        assert rounds(many, QUICK_ROUNDS // 4, round_with_baseline, -1.5, 4) == QUICK_ROUNDS // 4


@pytest.mark.parametrize("known", [None, 1])
def test_a_move_between_listening_and_looking_is_told_every_time(known) -> None:
    with RunningServer() as server, Api(server.port) as api:
        server.failpoint("after-listen pause 400")
        for _ in range(8):
            made = make(api)
            with waiting(server, made, 20, known=known) as answers:
                time.sleep(0.2)
                began = time.monotonic()
                move(api, made, "accepted", "offered")
            assert (answers[0]["changed"], answers[0]["version"]) == (True, 2)
            assert time.monotonic() - began < 5


def test_a_receiver_that_acts_before_the_owner_first_waits_is_not_missed(api) -> None:
    made = make(api)
    move(api, made, "done", "offered")
    answer = wait(api, made, 25, known=1)
    assert (answer["changed"], answer["wait_reason"]) == (True, "ended")


def test_two_hundred_waiters_on_one_handoff_are_all_told_of_one_move(server, api) -> None:
    made = make(api)
    line = [open_wait(server, made) for _ in range(200)]
    time.sleep(1.5)
    move(api, made, "accepted", "offered")
    began = time.monotonic()
    answers = [answer_of(raw) for raw in line]
    assert time.monotonic() - began < 10
    assert {(answer.status, answer["version"], answer["changed"]) for answer in answers} == {(200, 2, True)}
    for raw in line:
        raw.close()


def test_versions_never_go_back_for_one_who_waits_and_reads_in_turn(server, api) -> None:
    made = make(api, states=[f"s{n}" for n in range(12)])
    seen: list[int] = []

    def follow() -> None:
        with Api(server.port) as own:
            while not seen or seen[-1] < 12:
                seen.append(wait(own, made, 20, known=seen[-1] if seen else 0)["version"])
                seen.append(look(own, made)["version"])

    follower = threading.Thread(target=follow)
    follower.start()
    for n in range(11):
        move(api, made, f"s{n + 1}", f"s{n}")
    follower.join(60)
    assert seen == sorted(seen)
    assert seen[-1] == 12


# ------------------------------------------------------------------------------------------------------ nobody is kept


def test_expiry_ends_a_wait_with_410() -> None:
    with RunningServer() as own, Api(own.port) as api:
        made = make(api, ttl_seconds=60)
        with waiting(own, made, 25) as answers:
            time.sleep(0.3)
            began = time.monotonic()
            own.set_clock(61)
        assert (answers[0].status, answers[0]["code"]) == (410, "expired")
        assert time.monotonic() - began < 10


def test_500_waits_are_all_answered_when_the_server_stops(start_server) -> None:
    """Under two seconds; a machine that is busy with other things gets three tries at that."""
    took: list[float] = []
    while not took or (took[-1] >= 2.0 and len(took) < 3):
        server = start_server()
        with Api(server.port) as api:
            made = [make(api) for _ in range(50)]
        line = [open_wait(server, made[index % 50]) for index in range(500)]
        time.sleep(3)
        began = time.monotonic()
        assert server.terminate() == 0
        took.append(time.monotonic() - began)
        answers = [answer_of(raw) for raw in line]
        told = {(answer.status, answer["wait_reason"], answer["changed"]) for answer in answers}
        assert told == {(200, "shutdown", False)}
    assert min(took) < 2.0, took


@pytest.mark.parametrize("hang_up", [reset, socket.socket.close, lambda raw: raw.shutdown(socket.SHUT_RDWR)])
def test_a_waiter_that_hangs_up_gives_its_seat_back(start_server, hang_up) -> None:
    server = start_server(environment={"FENCEPOST_LIMIT_WAITERS": "5"})
    with Api(server.port) as api:
        made = make(api)
        for _ in range(2):
            line = [parked(server, made) for _ in range(5)]
            refused = wait(api, made, 1)
            assert (refused.status, refused["code"], int(refused.headers["retry-after"]) >= 1) == (
                503,
                "too_many_waiters",
                True,
            )
            assert wait(api, made, 0)["wait_reason"] == "timeout"
            assert look(api, made).status == 200
            for raw in line:
                hang_up(raw)
            until(lambda: wait(api, made, 1).status == 200)


def test_500_waiters_that_are_cut_leave_nothing_behind(server, api) -> None:
    made = make(api)
    pid = server.worker_pids[0]

    def descriptors() -> int:
        return len(os.listdir(f"/proc/{pid}/fd"))

    before = descriptors()
    for _ in range(5):
        line = [open_wait(server, made) for _ in range(100)]
        time.sleep(0.3)
        for raw in line:
            reset(raw)
    until(lambda: descriptors() <= before + 3)
    assert "Traceback" not in server.stderr


def test_waiters_hold_no_database_connection(server, api) -> None:
    """The store has two readers and one writer: if a wait held any of them, the third wait would stop everything."""
    all_made = [make(api) for _ in range(100)]
    line = [open_wait(server, made) for made in all_made]
    time.sleep(1)
    fresh = make(api)
    for to, expected in (("accepted", "offered"), ("working", "accepted"), ("done", "working")):
        began = time.monotonic()
        assert move(api, fresh, to, expected).status == 200
        assert look(api, fresh)["state"] == to
        assert time.monotonic() - began < 2
    answers = at_once(server, [partial(finish, made) for made in all_made[:20]])
    assert {answer.status for answer in answers} == {200}
    assert {answer_of(raw)["wait_reason"] for raw in line[:20]} == {"ended"}
    for raw in line:
        raw.close()


@pytest.mark.long
def test_a_wait_of_more_than_25_seconds_is_one_of_25(api) -> None:
    made = make(api)
    began = time.monotonic()
    answer = api.get(f"{made.path}/wait/3600", bearer(made.owner))
    waited = time.monotonic() - began
    assert (answer["wait_reason"], answer["changed"]) == ("timeout", False)
    assert 25.0 <= answer["waited_seconds"] <= 30
    assert 24.9 < waited < 32
