"""Waiting claims on a real server: told of completion, release and lapse, passed over when gone, answered at stop."""

import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from tests.real.api import Answer, open_request
from tests.real.oncecalls import Once
from tests.real.server import ENGINES, RunningServer

pytestmark = pytest.mark.real

Wait = Callable[..., "Future[Answer]"]
PARKED_SECONDS = 0.7


@pytest.fixture(scope="module", params=ENGINES)
def server(request: pytest.FixtureRequest) -> Iterator[RunningServer]:
    with RunningServer(engine=request.param) as running:
        yield running


@pytest.fixture
def once(server: RunningServer, request: pytest.FixtureRequest) -> Iterator[Once]:
    with Once(server.port, namespace=request.node.name) as api:
        api.claim("founding")
        yield api


@pytest.fixture
def wait(once: Once) -> Iterator[Wait]:
    """Claims in the background, each on a connection of its own, and gives them time to be parked."""
    with ThreadPoolExecutor(20) as pool:

        def call(**members: Any) -> Answer:
            with Once(once.port, once.namespace, once.token) as api:
                return api.claim(**members)

        def start(**members: Any) -> "Future[Answer]":
            future = pool.submit(call, wait_seconds=25, **members)
            time.sleep(PARKED_SECONDS)
            return future

        yield start


def test_a_completion_gives_those_who_wait_the_result(once: Once, wait: Wait) -> None:
    once.claim(lease_ttl=600)
    waiting = [wait(), wait()]
    began = time.monotonic()
    once.complete_raw('{"id" : 1e2}')
    for future in waiting:
        answer = future.result(20)
        assert (answer["status"], b'"result":{"id" : 1e2}' in answer.raw) == ("duplicate", True)
    assert time.monotonic() - began < 5


def test_a_release_lets_the_first_in_line_claim(once: Once, wait: Wait) -> None:
    once.claim()
    first, second = wait(), wait()
    once.once("release")
    assert first.result(20)["status"] == "claimed"
    assert not second.done()
    once.complete_raw("1")
    assert second.result(20)["status"] == "duplicate"


def test_a_lapse_lets_the_first_in_line_take_over(once: Once, wait: Wait, server: RunningServer) -> None:
    first = once.claim(lease_ttl=60)
    waiting = wait(lease_ttl=60)
    server.set_clock(60)
    taken = waiting.result(20)
    assert (taken["status"], taken["recovered"]) == ("claimed", True)
    assert taken["expires_at"] == first["expires_at"]


def test_a_caller_that_hung_up_is_never_granted(once: Once, wait: Wait) -> None:
    once.claim()
    names = {"namespace": once.namespace, "action_key": "charge-1042", "namespace_token": once.token}
    body = json.dumps({**names, "wait_seconds": 25})
    gone = open_request(once.port, "/once-key", body)
    time.sleep(PARKED_SECONDS)
    second = wait()
    gone.close()
    time.sleep(PARKED_SECONDS)
    once.once("release")
    assert second.result(20)["status"] == "claimed"


def test_a_stopping_server_answers_those_who_wait(once: Once, wait: Wait, server: RunningServer) -> None:
    """The last one: it ends the server."""
    once.claim()
    waiting = [wait() for _ in range(3)]
    began = time.monotonic()
    assert server.terminate() == 0
    assert time.monotonic() - began < 10
    for future in waiting:
        answer = future.result(20)
        assert (answer["status"], answer.status) == ("held", 200)
