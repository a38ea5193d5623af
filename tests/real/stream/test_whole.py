"""The stream of the whole server: REST on one side, the socket on the other."""

import asyncio
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.real.api import V1, Answer, Api
from tests.real.server import ENGINES, RunningServer
from tests.real.stream.rawsocket import RawSocket, Rejected


@pytest.fixture(params=ENGINES)
def server(request: pytest.FixtureRequest) -> Iterator[RunningServer]:
    """A server of its own."""
    with RunningServer(engine=request.param) as running:
        yield running


def created(api: Api, **members: Any) -> Answer:
    """A new handoff."""
    answer = api.post(f"{V1}/handoff", **{"payload": {"n": 1}, **members})
    assert answer.status == 201, answer.raw
    return answer


def move(api: Api, handoff: Answer, to: str, expected: str, nonce: str) -> None:
    answer = api.post(
        f"{V1}/handoff/{handoff['handoff_id']}/{to}",
        headers={"Authorization": f"Bearer {handoff['receiver_token']}"},
        **{"from": expected, "nonce": nonce},
    )
    assert answer.status == 200, answer.raw


def test_a_handoff_is_followed_to_its_end(server: RunningServer) -> None:
    with Api(server.port) as api:
        handoff = created(api)
        id, bearer = handoff["handoff_id"], {"Authorization": f"Bearer {handoff['owner_token']}"}
        ws = RawSocket(server.port, f"{V1}/handoff/{id}/stream", headers=bearer, label=None)
        snap = ws.next("snap")
        read = api.get(f"{V1}/handoff/{id}", bearer).body
        for name in set(read) - {"ok", "handoff_id", "payload", "seconds_left"}:
            assert snap[name] == read[name], name
        assert "payload" not in snap
        assert ws.next() == {"t": "live", "id": id, "handoff": id, "version": 1}
        move(api, handoff, "accepted", "offered", "one")
        chg = ws.next()
        assert (chg["t"], chg["version"], chg["state"], chg["by"], chg["ended"]) == (
            "chg",
            2,
            "accepted",
            "receiver",
            False,
        )
        move(api, handoff, "accepted", "offered", "one")  # a repeat is no change
        move(api, handoff, "done", "accepted", "two")
        chg, end = ws.next(), ws.next()
        assert (chg["version"], chg["ended"], end["t"], end["reason"]) == (3, True, "end", "ended")
        assert ws.close_code() == 1000


def test_the_payload_comes_as_it_was_sent(server: RunningServer) -> None:
    with Api(server.port) as api:
        text = '{"payload": {"b": 1.10, "a": 1e400, "\\u00e4": [ 1,2 ]}}'
        answer = api.text(f"{V1}/handoff", text)
        ws = RawSocket(server.port)
        ws.next("hello")
        sub = {"t": "sub", "id": "a", "handoff": answer["handoff_id"], "token": answer["receiver_token"]}
        ws.send({**sub, "payload": True})
        frame = ws.next_frame()
        assert frame is not None
        assert b'"payload":{"b": 1.10, "a": 1e400, "\\u00e4": [ 1,2 ]}' in frame.payload
        assert answer["receiver_token"].encode() not in frame.payload
        ws.close()


def test_expiry_needs_no_write(server: RunningServer) -> None:
    with Api(server.port) as api:
        handoff = created(api, ttl_seconds=60)
        ws = RawSocket(server.port, headers={"Authorization": f"Bearer {handoff['owner_token']}"})
        ws.send({"t": "sub", "id": "a", "handoff": handoff["handoff_id"]})
        assert ws.next("live")
        server.set_clock(61)
        end = ws.next("end", timeout=5)
        assert (end["reason"], end["version"]) == ("expired", 1)
        ws.close()


def test_a_lease_is_followed_through_its_life(server: RunningServer) -> None:
    with Api(server.port) as api:
        namespace = api.lease("namespace")["namespace"]
        key = {"namespace": namespace, "key": "deploy"}
        ws = RawSocket(server.port)
        ws.send({"t": "sub", "id": "l", "lease": key})

        def told() -> tuple[str, int | None, str | None]:
            frame = ws.next("lease")
            assert (frame["seconds_left"] is not None) == (frame["status"] == "held")
            return frame["status"], frame["fencing_token"], frame["cause"]

        assert told() == ("free", None, None)
        first = api.lease("acquire", **key, ttl_seconds=60)
        fence = first["fencing_token"]
        assert told() == ("held", fence, "granted")
        owner = {"owner_token": first["owner_token"]}
        api.lease("renew", **key, **owner, ttl_seconds=90)
        assert told() == ("held", fence, "renewed")
        api.lease("release", **key, **owner)
        assert told() == ("free", fence, "released")
        second = api.lease("acquire", **key, ttl_seconds=30)
        assert told() == ("held", second["fencing_token"], "granted")
        server.set_clock(31)
        assert told() == ("free", second["fencing_token"], "lapsed")
        third = api.lease("acquire", **key)
        assert told() == ("held", third["fencing_token"], "granted")
        api.lease("complete", **key, owner_token=third["owner_token"], result={"secret": "x", "big": 1})
        assert told() == ("completed", third["fencing_token"], "completed")
        ws.close()


def test_the_servers_own_origin_may_connect_and_others_may_not(server: RunningServer) -> None:
    RawSocket(server.port, headers={"Origin": f"http://127.0.0.1:{server.port}"}).close()
    with pytest.raises(Rejected) as rejected:
        RawSocket(server.port, headers={"Origin": "http://evil.example"})
    assert rejected.value.status == 403


def test_an_upgrade_counts_as_a_request_of_its_address(start_server: type[RunningServer]) -> None:
    server = start_server(environment={"FENCEPOST_LIMITS": "on", "FENCEPOST_LIMIT_REQUESTS_PER_DAY": "2"})
    for _ in range(2):
        RawSocket(server.port, label="fencepost.v1").close()
    with pytest.raises(Rejected) as rejected:
        RawSocket(server.port, label=None, headers={"Origin": "null"})
    assert (rejected.value.status, rejected.value.code) == (429, "rate_limited")
    with pytest.raises(Rejected) as rejected:
        RawSocket(server.port, f"{V1}/stream?x", label=None)
    assert rejected.value.status == 400


def test_a_plain_get_is_told_to_upgrade_and_a_post_is_405(server: RunningServer) -> None:
    with Api(server.port) as api:
        for path in (f"{V1}/stream", f"{V1}/handoff/{'0' * 32}/stream"):
            plain = api.get(path)
            assert (plain.status, plain["code"], plain.headers["upgrade"]) == (426, "upgrade_required", "websocket")
            assert api.post(path).status == 405


def test_a_restart_is_bridged_by_after(server: RunningServer) -> None:
    with Api(server.port) as api:
        handoff = created(api)
        sub = {"t": "sub", "id": "a", "handoff": handoff["handoff_id"], "token": handoff["owner_token"]}
        ws = RawSocket(server.port)
        ws.send(sub)
        assert ws.next("live")["version"] == 1
        move(api, handoff, "accepted", "offered", "one")
        assert ws.next("chg")["version"] == 2
        server.restart()
        assert ws.next("goaway")["reason"] == "shutdown"
        assert ws.close_code() == 4200
    with Api(server.port) as api:
        move(api, handoff, "working", "accepted", "two")
        ws = RawSocket(server.port)
        ws.send({**sub, "after": 2})
        assert [(ws.next("chg", "snap")["version"]), ws.next("live")["version"]] == [3, 3]
        server.kill9()
        assert ws.close_code() in (None, 4200)  # the worker may see its arbiter die before it dies itself
        server.start()
    with Api(server.port) as api:
        move(api, handoff, "done", "working", "three")
        ws = RawSocket(server.port)
        ws.send({**sub, "after": 3})
        assert [ws.next()["t"] for _ in range(4)] == ["hello", "chg", "live", "end"]
        ws.close()


def test_the_documented_client_sees_each_change_once_across_a_restart(
    server: RunningServer, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (Path(__file__).parents[3] / "docs" / "stream.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    exec(re.findall(r"```python\n(.*?)```", page, re.DOTALL)[0], names)

    async def drive() -> None:
        with Api(server.port) as api:
            handoff = created(api)
            following = asyncio.create_task(
                names["follow"](f"ws://127.0.0.1:{server.port}", handoff["handoff_id"], handoff["owner_token"])
            )
            await asyncio.sleep(1)
            await asyncio.to_thread(move, api, handoff, "accepted", "offered", "one")
            await asyncio.sleep(1)
        await asyncio.to_thread(server.restart)
        with Api(server.port) as api:
            await asyncio.to_thread(move, api, handoff, "done", "accepted", "two")
            await asyncio.wait_for(following, 40)

    asyncio.run(drive())
    assert capsys.readouterr().out.splitlines() == ["1 offered owner", "2 accepted receiver", "3 done receiver"]


def test_a_server_with_many_sockets_stops_quickly(server: RunningServer) -> None:
    with Api(server.port) as api:
        handoff = created(api)
    held = []
    for _ in range(100):
        ws = RawSocket(server.port)
        ws.send({"t": "sub", "id": "a", "handoff": handoff["handoff_id"], "token": handoff["owner_token"]})
        ws.next("live")
        held.append(ws)
    began = time.monotonic()
    assert server.terminate() == 0
    assert time.monotonic() - began < 4
    assert [ws.close_code() for ws in held] == [4200] * 100


def test_nothing_secret_is_logged(server: RunningServer) -> None:
    with Api(server.port) as api:
        handoff = created(api)
    ws = RawSocket(server.port, headers={"Authorization": f"Bearer {handoff['owner_token']}"})
    ws.send({"t": "sub", "id": "a", "handoff": handoff["handoff_id"], "after": 1})
    assert ws.next("live")
    ws.close()
    deadline = time.monotonic() + 5
    while "/services/v1/stream" not in server.stdout and time.monotonic() < deadline:
        time.sleep(0.05)
    assert " 101 " in server.stdout or '"status":101' in server.stdout
    for log in (server.stdout, server.stderr):
        assert handoff["owner_token"] not in log
        assert handoff["handoff_id"] not in log
        assert "Traceback" not in log
