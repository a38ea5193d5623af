"""Claims through crashes: of the winner, of the server between two steps, and of the server under load."""

import http.client
import random
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from tests.real.api import Answer, Api
from tests.real.oncecalls import YEAR, Once, fresh
from tests.real.server import ENGINES, RunningServer

pytestmark = pytest.mark.real


@pytest.fixture(params=ENGINES)
def server(request: pytest.FixtureRequest) -> Iterator[RunningServer]:
    with RunningServer(engine=request.param) as running:
        yield running


def test_after_a_crash_of_a_winner_without_a_lease_nobody_wins_to_the_end_of_its_ttl(server: RunningServer) -> None:
    with Once(server.port) as once:
        once.claim(ttl=1_000)
        end = once.once("status")["expires_at"]
    server.kill9()
    server.start()
    with Once(server.port, token=once.token) as once:
        for offset in (0, 500, 960):
            server.set_clock(offset)
            for _ in range(20):
                answer = once.claim()
                assert (answer["status"], answer["expires_at"]) == ("held", end)
        server.set_clock(1_001)
        again = once.claim()
        assert (again["status"], again["attempt"]) == ("claimed", 1)


def test_after_a_crash_of_a_winner_with_a_lease_there_is_exactly_one_takeover(server: RunningServer) -> None:
    with Once(server.port) as once:
        first = once.claim(ttl=1_000, lease_ttl=100)
    server.kill9()
    server.start()
    with Once(server.port, token=once.token) as once:
        assert once.claim()["status"] == "in_progress"
        server.set_clock(101)
        taken = [once.claim(lease_ttl=100, claim_token=fresh("clm_")) for _ in range(20)]
    assert [answer["status"] for answer in taken] == ["claimed"] + ["in_progress"] * 19
    assert taken[0]["recovered"] is True
    assert taken[0]["expires_at"] == first["expires_at"]
    assert taken[0]["fencing_token"] > first["fencing_token"]


def test_a_server_killed_before_the_commit_has_told_nobody_and_the_next_claim_wins(server: RunningServer) -> None:
    with Once(server.port) as once:
        once.claim("founding")
    for point in ("after-lock", "after-decide", "before-commit"):
        server.failpoint(f"{point} kill")
        with Once(server.port, token=once.token) as killed, pytest.raises((OSError, http.client.HTTPException)):
            killed.claim(point)
        server.failpoint()
        restart_after_kill(server)
        with Once(server.port, token=once.token) as again:
            assert again.once("status", point)["status"] == "free"
            assert again.claim(point)["attempt"] == 1


def test_a_claim_that_was_committed_and_not_answered_is_repeated_to_its_winner(server: RunningServer) -> None:
    mine, who = fresh("nst_"), fresh("clm_")
    server.failpoint("after-commit kill")
    with Once(server.port, token=mine) as once, pytest.raises((OSError, http.client.HTTPException)):
        once.claim(claim_token=who, lease_ttl=600)
    server.failpoint()
    restart_after_kill(server)
    with Once(server.port, token=mine) as once:
        assert once.claim(lease_ttl=600)["status"] == "in_progress"
        again = once.claim(claim_token=who, lease_ttl=600)
        assert (again["status"], again["repeated"]) == ("claimed", True)
        assert once.once("complete", claim_token=who, result=1)["status"] == "completed"


def restart_after_kill(server: RunningServer) -> None:
    """The worker was killed by its failpoint; the arbiter may have started another one already."""
    server.kill9()
    server.start()


MOST_ACTIONS = 100
PAUSE_SECONDS = 0.05


@dataclass
class Worker:
    """Claims and completes actions of its own until it is told to stop, and keeps what it was told.

    A claim that got no answer is sent again with the same claim token, until it is answered.
    """

    port: int
    token: str
    number: int
    stop: threading.Event
    claimed: dict[str, Answer] = field(default_factory=dict)
    completed: dict[str, str] = field(default_factory=dict)
    unknown: dict[str, str] = field(default_factory=dict)

    def run(self) -> None:
        chance = random.Random(self.number)
        count = 0
        while count < MOST_ACTIONS and not self.stop.wait(PAUSE_SECONDS):
            action = f"{self.number}-{count}"
            who = self.unknown.setdefault(action, fresh("clm_"))
            try:
                with Once(self.port, token=self.token) as once:
                    self.claimed[action] = once.claim(action, claim_token=who, ttl=YEAR)
                    del self.unknown[action]
                    count += 1
                    if chance.random() < 0.7:
                        result = f'{{"n": {count}e0}}'
                        done = once.complete_raw(result, action)
                        if done.status == 200:
                            self.completed[action] = result
            except (OSError, http.client.HTTPException, AssertionError):
                continue  # the server is down or away: the same claim by the same token goes again


def test_nothing_that_was_told_is_lost_when_the_server_is_killed_under_load(server: RunningServer) -> None:
    with Once(server.port) as once:
        once.claim("founding", ttl=YEAR)
        token = once.token
    assert token is not None
    stop = threading.Event()
    workers = [Worker(server.port, token, number, stop) for number in range(6)]
    threads = [threading.Thread(target=worker.run) for worker in workers]
    for thread in threads:
        thread.start()
    for _ in range(3):
        time.sleep(0.8)
        server.kill9()
        server.start()
    time.sleep(0.5)
    stop.set()
    for thread in threads:
        thread.join(60)
    assert sum(len(worker.claimed) for worker in workers) > 20
    fences = [check(server.port, token, worker) for worker in workers]
    flat = [fence for some in fences for fence in some]
    assert len(set(flat)) == len(flat), "two claims had one fence"
    for some in fences:
        assert some == sorted(some), "a fence went back"


def check(port: int, token: str, worker: Worker) -> list[int]:
    """Every claim and result as it was told; what was not told is all or nothing. Fences in order of claiming."""
    fences = []
    with Once(port, token=token) as once, Api(port) as api:
        for action, told in worker.claimed.items():
            assert told["status"] == "claimed"
            fences.append(told["fencing_token"])
            status = once.once("status", action)
            assert (status["fencing_token"], status["attempt"]) == (told["fencing_token"], 1)
            again = once.claim(action)
            if action in worker.completed:
                assert again["status"] == "duplicate"
                assert f'"result":{worker.completed[action]},'.encode() in again.raw
            else:
                assert again["status"] in ("held", "duplicate")
        for action, who in worker.unknown.items():
            answer = once.claim(action, claim_token=who, ttl=YEAR)
            assert answer["status"] == "claimed", "nobody else can have it"
        assert api.get("/healthz").status == 200
    return fences
