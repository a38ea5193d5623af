"""Waiting through tools: 25 seconds in one plain reply, hundreds at once, and callers who hang up free their places."""

import json
import socket
import statistics
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.mcp.speak import Mcp
from tests.real.api import V1, Api, open_request
from tests.real.server import ENGINES, RunningServer

MANY = 200


@pytest.fixture(scope="module", params=ENGINES)
def server(request):
    with RunningServer(engine=request.param, environment={"FENCEPOST_LIMITS": "off"}) as running:
        yield running


@pytest.fixture
def mcp(server):
    with Mcp(server.port) as caller:
        yield caller


def offered(mcp: Mcp) -> dict[str, str]:
    made = mcp.structured("create_agent_handoff", payload={"task": "review"})
    return {"handoff_id": made["handoff_id"], "token": made["owner_token"]}


def request_of(tool: str, arguments: dict[str, object]) -> str:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
    return json.dumps(body)


def test_a_wait_of_25_seconds_ends_as_a_result_that_says_nothing_yet(mcp) -> None:
    asked = offered(mcp)
    began = time.monotonic()
    told = mcp.structured("read_agent_handoff", **asked, wait_seconds=25, since_version=1)
    assert (told["changed"], told["wait_reason"]) == (False, "timeout")
    assert 24.5 < time.monotonic() - began < 55


def test_the_other_side_wakes_a_wait_at_once(server, mcp) -> None:
    asked = offered(mcp)

    def move() -> None:
        time.sleep(0.5)
        with Mcp(server.port, "2025-11-25") as other:
            other.structured("advance_agent_handoff", **asked, **{"from": "offered"}, to="accepted")

    mover = threading.Thread(target=move)
    mover.start()
    told = mcp.structured("read_agent_handoff", **asked, wait_seconds=25, since_version=1)
    mover.join()
    assert (told["changed"], told["wait_reason"], told["state"]) == (True, "changed", "accepted")
    assert 0.3 < told["waited_seconds"] < 15


def middle_of(mcp: Mcp, calls: int = 40) -> float:
    took = []
    for _ in range(calls):
        began = time.perf_counter()
        mcp.tool("check_lease", {"key": "k" * 20 + "0123456789abcdef"})
        took.append(time.perf_counter() - began)
    return statistics.median(took)


def test_two_hundred_waits_slow_nobody(server, mcp) -> None:
    asked = offered(mcp)
    alone = middle_of(mcp)
    text = request_of("read_agent_handoff", {**asked, "wait_seconds": 25, "since_version": 1})
    parked = [open_request(server.port, "/mcp", text) for _ in range(MANY)]
    beside = middle_of(mcp)
    assert beside < 5 * alone + 0.05
    began = time.monotonic()
    mcp.structured("advance_agent_handoff", **asked, **{"from": "offered"}, to="done")
    replies = [json.loads(read_answer(connection)) for connection in parked]
    assert time.monotonic() - began < 15
    answers = [reply["result"]["structuredContent"] for reply in replies]
    assert {(answer["wait_reason"], answer["state"]) for answer in answers} == {("ended", "done")}


def read_answer(connection: socket.socket) -> bytes:
    """The body of the one answer on this connection."""
    with connection, connection.makefile("rb") as stream:
        length = 0
        while (line := stream.readline()) not in (b"\r\n", b""):
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        return stream.read(length)


def test_whoever_hangs_up_is_granted_nothing(server, mcp) -> None:
    namespace = mcp.structured("create_lease_namespace")["namespace"]
    of_key = {"key": "line", "namespace": namespace}
    held = mcp.structured("acquire_lease", **of_key)
    gone = open_request(server.port, "/mcp", request_of("acquire_lease", {**of_key, "wait_seconds": 25}))
    with ThreadPoolExecutor(1) as pool, Mcp(server.port) as next_in_line:
        time.sleep(0.5)
        patient = pool.submit(next_in_line.structured, "acquire_lease", **of_key, wait_seconds=25)
        time.sleep(0.5)
        gone.close()
        time.sleep(0.5)
        mcp.structured("release_lease", **of_key, owner_token=held["owner_token"])
        granted = patient.result(timeout=30)
    assert (granted["ok"], granted["attempt"]) == (True, 2)


def test_waits_that_nobody_hears_the_end_of_give_their_places_back() -> None:
    with RunningServer(environment={"FENCEPOST_LIMIT_WAITERS": "3"}) as small, Mcp(small.port) as mcp:
        asked = offered(mcp)
        text = request_of("read_agent_handoff", {**asked, "wait_seconds": 25, "since_version": 1})
        for connection in [open_request(small.port, "/mcp", text) for _ in range(3)]:
            time.sleep(0.2)
            connection.close()
        deadline = time.monotonic() + 20
        while mcp.tool("read_agent_handoff", {**asked, "wait_seconds": 1}).get("isError"):
            assert time.monotonic() < deadline
            time.sleep(0.1)


def test_a_stop_answers_those_who_wait() -> None:
    with RunningServer() as ending, Mcp(ending.port) as mcp:
        asked = offered(mcp)
        text = request_of("read_agent_handoff", {**asked, "wait_seconds": 25, "since_version": 1})
        parked = [open_request(ending.port, "/mcp", text) for _ in range(20)]
        time.sleep(0.5)
        assert ending.terminate() == 0
        answers = [json.loads(read_answer(connection))["result"]["structuredContent"] for connection in parked]
    assert {(answer["wait_reason"], answer["changed"]) for answer in answers} == {("shutdown", False)}


def test_a_tool_and_its_rest_twin_wait_in_one_line(server, mcp) -> None:
    asked = offered(mcp)
    with ThreadPoolExecutor(1) as pool, Api(server.port) as api:
        path = f"{V1}/handoff/{asked['handoff_id']}/wait/25"
        waiting = pool.submit(api.get, path, {"Authorization": f"Bearer {asked['token']}", "If-None-Match": '"1"'})
        time.sleep(0.3)
        mcp.structured("advance_agent_handoff", **asked, **{"from": "offered"}, to="accepted")
        assert waiting.result(timeout=30)["wait_reason"] == "changed"
