"""The stream's rules, over a real port under the gevent worker, with a client of its own."""

import time
from collections.abc import Iterator

import pytest

from tests.real.stream.rawsocket import BINARY, RawSocket, Rejected
from tests.real.stream.streaming import StreamServer

STATES = [f"s{number}" for number in range(12)]


@pytest.fixture(scope="module")
def server() -> Iterator[StreamServer]:
    with StreamServer() as running:
        yield running


def test_hello_comes_first_and_tells_the_limits(server: StreamServer) -> None:
    ws = RawSocket(server.port)
    hello = ws.next()
    assert hello["t"] == "hello"
    assert hello["server"] == "fencepost"
    assert hello["heartbeat_seconds"] == 20
    assert hello["limits"]["subscriptions"] == 256
    assert ws.head["sec-websocket-protocol"] == "fencepost.v1"
    ws.close()


def test_a_sub_without_after_begins_with_a_snapshot_and_goes_live(server: StreamServer) -> None:
    [id] = server.make(states=STATES)
    ws = RawSocket(server.port)
    ws.send({"t": "sub", "id": "a", "handoff": id, "token": "o" + id, "unknown": [1]})
    snap = ws.next("snap", "live", "err")
    assert (snap["t"], snap["id"], snap["handoff"], snap["version"], snap["state"]) == ("snap", "a", id, 1, "s0")
    assert snap["ended"] is False
    assert snap["allowed"][0] == "s1"
    assert "payload" not in snap
    assert "reset" not in snap
    assert 590 <= snap["seconds_left"] < 600
    live = ws.next()
    assert live == {"t": "live", "id": "a", "handoff": id, "version": 1}
    server.post("move", ids=[id], note="näxt")
    chg = ws.next()
    assert (chg["t"], chg["version"], chg["previous"], chg["state"], chg["by"]) == ("chg", 2, "s0", "s1", "owner")
    assert chg["note"] == "näxt"
    ws.close()


def test_after_brings_exactly_what_is_lacking(server: StreamServer) -> None:
    [id] = server.make(states=STATES)
    server.post("move", ids=[id] * 4)
    for after, expected in ((0, [1, 2, 3, 4, 5]), (2, [3, 4, 5]), (5, [])):
        ws = RawSocket(server.port, headers={"Authorization": f"Bearer r{id}"})
        ws.send({"t": "sub", "id": "a", "handoff": id, "after": after})
        versions = []
        while (message := ws.next("chg", "live", "snap", "err"))["t"] == "chg":
            versions.append(message["version"])
        assert versions == expected
        assert (message["t"], message["version"]) == ("live", 5)
        ws.close()


def test_after_ahead_of_the_server_is_reset(server: StreamServer) -> None:
    [id] = server.make()
    ws = RawSocket(server.port)
    ws.send({"t": "sub", "id": "a", "handoff": id, "token": "o" + id, "after": 7, "payload": True})
    snap = ws.next("snap")
    assert snap["reset"] is True
    assert snap["payload"] == "xxx"
    ws.close()


def test_the_end_comes_after_everything_else_and_frees_the_id(server: StreamServer) -> None:
    [id] = server.make(states=["a", "b", "c"])
    ws = RawSocket(server.port)
    ws.send({"t": "sub", "id": "x", "handoff": id, "token": "o" + id, "after": 1})
    assert ws.next("live")["version"] == 1
    server.post("move", ids=[id, id])
    assert [ws.next()["version"], ws.next()["version"]] == [2, 3]
    end = ws.next()
    assert end == {"t": "end", "id": "x", "handoff": id, "version": 3, "state": "c", "reason": "ended"}
    ws.send({"t": "sub", "id": "x", "handoff": id, "token": "o" + id, "after": 2})
    assert [ws.next()["t"] for _ in range(3)] == ["chg", "live", "end"]
    ws.close()


def test_expiry_ends_a_subscription_by_itself(server: StreamServer) -> None:
    [id] = server.make(ttl_seconds=2)
    ws = RawSocket(server.port)
    ws.send({"t": "sub", "id": "x", "handoff": id, "token": "o" + id})
    assert ws.next("live")
    end = ws.next(timeout=5)
    assert (end["t"], end["reason"]) == ("end", "expired")
    ws.send({"t": "sub", "id": "y", "handoff": id, "token": "o" + id})
    assert [ws.next()["t"], ws.next()["t"]] == ["live", "end"]
    ws.close()


def test_a_swept_handoff_ends_as_expired(server: StreamServer) -> None:
    [id] = server.make()
    ws = RawSocket(server.port)
    ws.send({"t": "sub", "id": "x", "handoff": id, "token": "o" + id})
    assert ws.next("live")
    server.post("forget", ids=[id])
    assert ws.next()["reason"] == "expired"
    ws.close()


def test_unknown_and_wrong_answer_alike_and_harm_nobody(server: StreamServer) -> None:
    [id, other] = server.make(2)
    ws = RawSocket(server.port)
    ws.send({"t": "sub", "id": "good", "handoff": id, "token": "o" + id})
    assert ws.next("live")["id"] == "good"
    errors = []
    for handoff, token in ((id, "o" + other), ("0" * 32, "o" + other), ("no id", "x"), (id, "")):
        ws.send({"t": "sub", "id": "bad", "handoff": handoff, "token": token})
        errors.append(ws.next())
    assert all(error == errors[0] for error in errors)
    assert errors[0]["code"] == "not_found"
    ws.send({"t": "sub", "id": "bad", "handoff": id})
    assert ws.next()["code"] == "token_required"
    server.post("move", ids=[id])
    assert ws.next()["t"] == "chg"
    ws.close()


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        ({"t": "nope", "id": "q"}, "unknown_type"),
        ({"id": "q"}, "unknown_type"),
        ({"t": "sub", "handoff": "0" * 32}, "invalid_request"),
        ({"t": "sub", "id": "q"}, "invalid_request"),
        ({"t": "sub", "id": 7, "handoff": "0" * 32}, "invalid_request"),
        ({"t": "sub", "id": "", "handoff": "0" * 32}, "invalid_request"),
        ({"t": "sub", "id": "q" * 65, "handoff": "0" * 32}, "invalid_request"),
        ({"t": "sub", "id": "q", "handoff": "0" * 32, "token": "t", "after": -1}, "invalid_request"),
        ({"t": "sub", "id": "q", "handoff": "0" * 32, "token": "t", "after": True}, "invalid_request"),
        ({"t": "sub", "id": "q", "handoff": "0" * 32, "token": "t", "after": 1.5}, "invalid_request"),
        ({"t": "sub", "id": "q", "handoff": "0" * 32, "feed": "leases"}, "invalid_request"),
        ({"t": "sub", "id": "q", "lease": {"key": "short"}}, "invalid_request"),
        ({"t": "sub", "id": "q", "feed": "nonsense"}, "invalid_request"),
        ({"t": "sub", "id": "q", "feed": "leases"}, "operator_required"),
        ({"t": "unsub", "id": "q"}, "unknown_id"),
        ({"t": "unsub"}, "invalid_request"),
    ],
)
def test_a_frame_that_means_nothing_is_told_and_the_socket_stays(
    server: StreamServer, frame: dict[str, object], code: str
) -> None:
    ws = RawSocket(server.port)
    ws.next("hello")
    ws.send(frame)
    error = ws.next()
    assert (error["t"], error["code"]) == ("err", code), error
    [id] = server.make()
    ws.send({"t": "sub", "id": "a", "handoff": id, "token": "o" + id})
    assert ws.next("live")
    ws.close()


@pytest.mark.parametrize("text", ["", "null", "[]", '"t"', "{", '{"t":"hb"} x', '{"t":"hb","t":"hb"}', "{t:1}", "7"])
def test_what_is_no_json_object_closes_4001(server: StreamServer, text: str) -> None:
    ws = RawSocket(server.port)
    ws.send(text)
    assert ws.close_code() == 4001


def test_binary_closes_4001(server: StreamServer) -> None:
    ws = RawSocket(server.port)
    ws.send(b'{"t":"hb"}', BINARY)
    assert ws.close_code() == 4001


def test_a_duplicate_id_is_refused_and_the_first_stays(server: StreamServer) -> None:
    one, two = server.make(2)
    ws = RawSocket(server.port)
    ws.send({"t": "sub", "id": "a", "handoff": one, "token": "o" + one})
    assert ws.next("live")["handoff"] == one
    ws.send({"t": "sub", "id": "a", "handoff": two, "token": "o" + two})
    assert ws.next()["code"] == "duplicate_id"
    server.post("move", ids=[two, one])
    assert ws.next()["handoff"] == one
    ws.send({"t": "unsub", "id": "a"})
    ws.send({"t": "sub", "id": "a", "handoff": two, "token": "o" + two})
    assert ws.next("snap")["handoff"] == two
    ws.close()


def test_unsub_ends_the_changes(server: StreamServer) -> None:
    [id] = server.make(states=STATES)
    ws = RawSocket(server.port)
    ws.send({"t": "sub", "id": "a", "handoff": id, "token": "o" + id})
    assert ws.next("live")
    ws.send({"t": "unsub", "id": "a"})
    ws.send({"t": "unsub", "id": "a"})
    assert ws.next()["code"] == "unknown_id"
    server.post("move", ids=[id])
    assert ws.is_silent(0.5)
    ws.close()


def test_an_idle_socket_outlives_the_deadlines_of_requests(server: StreamServer) -> None:
    [id] = server.make(states=STATES)
    ws = RawSocket(server.port)
    ws.send({"t": "sub", "id": "a", "handoff": id, "token": "o" + id})
    assert ws.next("live")
    assert ws.is_silent(3)  # the test server gives heads and answers 2 s
    assert not ws.is_at_end
    server.post("move", ids=[id])
    assert ws.next("chg")["version"] == 2
    ws.close()


def test_two_sockets_on_one_handoff_are_independent(server: StreamServer) -> None:
    [id] = server.make(states=STATES)
    pair = [RawSocket(server.port) for _ in range(2)]
    for ws in pair:
        ws.send({"t": "sub", "id": "a", "handoff": id, "token": "o" + id})
        assert ws.next("live")
    server.post("move", ids=[id, id])
    assert [[ws.next()["version"], ws.next()["version"]] for ws in pair] == [[2, 3], [2, 3]]
    pair[0].cut()
    server.post("move", ids=[id])
    assert pair[1].next()["version"] == 4
    pair[1].close()


def test_a_lease_is_told_at_once_and_at_each_change(server: StreamServer) -> None:
    lease = {"namespace": "ns_" + "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG", "key": "build"}
    ws = RawSocket(server.port)
    ws.send({"t": "sub", "id": "l", "lease": {**lease, "unknown": 1}})
    first = ws.next("lease", "err")
    assert first == {
        "t": "lease", "id": "l", "status": "free", "fencing_token": None, "seconds_left": None, "cause": None,
    }  # fmt: skip
    for status, seconds, cause in (("held", 60, "granted"), ("held", 90, "renewed"), ("free", None, "released")):
        server.post("lease", **lease, status=status, fence=8, seconds=seconds, cause=cause)
        told = ws.next()
        assert (told["status"], told["fencing_token"], told["cause"]) == (status, 8, cause)
        assert told["seconds_left"] is None if seconds is None else seconds - 3 <= told["seconds_left"] < seconds
    ws.close()


def test_an_operators_feed_needs_the_session_and_is_told(server: StreamServer) -> None:
    ws = RawSocket(server.port, headers={"Cookie": "session=operator"})
    ws.send({"t": "sub", "id": "o", "feed": "handoffs"})
    assert ws.next("feed", "err")["count"] == 1
    [id] = server.make(states=STATES)
    server.post("move", ids=[id] * 5)
    assert ws.next("feed")["count"] == 2
    time.sleep(0.3)
    server.post("move", ids=[id])  # the third look fails and is made again
    assert ws.next("feed")["count"] == 4
    time.sleep(0.3)
    server.post("move", ids=[id])  # the fifth finds the session ended
    assert ws.close_code() == 4013


def test_the_end_of_a_session_is_noticed_though_nothing_happens() -> None:
    with StreamServer(heartbeat=0.5) as server:
        ws = RawSocket(server.port, headers={"Cookie": "session=operator"})
        ws.send({"t": "sub", "id": "o", "feed": "handoffs"})
        assert ws.next("feed")["count"] == 1
        assert ws.close_code() == 4013


def test_a_hundred_refusals_are_told_and_the_next_closes_4029(server: StreamServer) -> None:
    ws = RawSocket(server.port)
    ws.next("hello")
    [id] = server.make()
    ws.send({"t": "sub", "id": "good", "handoff": id, "token": "o" + id})
    assert ws.next("live")
    for number in range(101):
        time.sleep(0.052)
        ws.send({"t": "sub", "id": "bad", "handoff": id, "token": f"o{number}"})
        assert ws.next("err")["code"] == "not_found"
    assert ws.close_code() == 4029


def test_the_257th_subscription_is_refused() -> None:
    with StreamServer() as server:
        ids = server.make(257)
        ws = RawSocket(server.port)
        for number, id in enumerate(ids):
            ws.send({"t": "sub", "id": str(number), "handoff": id, "token": "o" + id, "after": 1})
            answer = ws.next("live", "err")
            assert answer["t"] == ("err" if number == 256 else "live"), answer
            time.sleep(0.055)
        assert answer["code"] == "too_many_subscriptions"
        server.post("move", ids=[ids[255]])
        assert ws.next("chg")["id"] == "255"
        ws.close()


# ------------------------------------------------------------------------------------ before the 101


def test_the_label_is_required_and_only_it_is_echoed(server: StreamServer) -> None:
    for label in (None, "chat", "fencepost.v2"):
        with pytest.raises(Rejected) as rejected:
            RawSocket(server.port, label=label)
        assert (rejected.value.status, rejected.value.code) == (400, "invalid_request")
    ws = RawSocket(server.port, label="bearer.secret, fencepost.v1")
    assert ws.head["sec-websocket-protocol"] == "fencepost.v1"
    ws.close()


@pytest.mark.parametrize(
    "origin", [None, "https://fence.example", "https://FENCE.example:443", "http://extra.example:8080"]
)
def test_our_own_origins_may_connect(server: StreamServer, origin: str | None) -> None:
    RawSocket(server.port, headers={"Origin": origin} if origin else {}).close()


@pytest.mark.parametrize(
    "origin",
    ["null", "https://evil.example", "http://fence.example", "https://fence.example:444", "https://fence.example.evil",
     "https://u@fence.example", "fence.example", "https://fence.example, https://fence.example", "http://extra.example"],
)  # fmt: skip
def test_a_foreign_origin_is_refused_before_the_101(server: StreamServer, origin: str) -> None:
    with pytest.raises(Rejected) as rejected:
        RawSocket(server.port, headers={"Origin": origin})
    assert (rejected.value.status, rejected.value.code) == (403, "origin_not_allowed")
    assert rejected.value.headers["cache-control"] == "no-store"


def test_the_refusals_come_in_the_order_of_the_contract(server: StreamServer) -> None:
    for path, headers, label, expected in (
        ("/services/v1/streams?x=1", {"Origin": "null"}, None, (404, "unknown_route")),
        ("/services/v1/stream?token=x", {"Origin": "null"}, None, (400, "query_not_allowed")),
        ("/services/v1/stream", {"Origin": "null"}, None, (400, "invalid_request")),
        ("/services/v1/stream", {"Origin": "null"}, "fencepost.v1", (403, "origin_not_allowed")),
    ):
        with pytest.raises(Rejected) as rejected:
            RawSocket(server.port, path, headers=headers, label=label)
        assert (rejected.value.status, rejected.value.code) == expected


def test_a_broken_handshake_is_a_json_refusal(server: StreamServer) -> None:
    for headers, status in (
        ({"Sec-WebSocket-Version": "8"}, 426),
        ({"Sec-WebSocket-Version": ""}, 426),
        ({"Sec-WebSocket-Key": "short"}, 400),
        ({"Sec-WebSocket-Key": ""}, 400),
        ({"Upgrade": ""}, 426),
    ):
        with pytest.raises(Rejected) as rejected:
            RawSocket(server.port, headers=headers)
        assert rejected.value.status == status
        assert rejected.value.code


def test_a_full_server_refuses_with_retry_after() -> None:
    with StreamServer(seats=2) as server:
        held = [RawSocket(server.port) for _ in range(2)]
        with pytest.raises(Rejected) as rejected:
            RawSocket(server.port)
        assert (rejected.value.status, rejected.value.code) == (503, "too_many_waiters")
        assert int(rejected.value.headers["retry-after"]) >= 1
        held.pop().cut()
        for _ in range(50):
            try:
                RawSocket(server.port).close()
                break
            except Rejected:
                continue
        else:
            pytest.fail("the seat was not given back")


def test_a_compression_offer_is_not_accepted(server: StreamServer) -> None:
    ws = RawSocket(server.port, headers={"Sec-WebSocket-Extensions": "permessage-deflate; client_max_window_bits"})
    assert "sec-websocket-extensions" not in ws.head
    assert ws.next()["t"] == "hello"
    ws.close()


# -------------------------------------------------------------------------------------- one handoff


def test_the_handoffs_own_stream_subscribes_by_itself_and_closes_at_the_end(server: StreamServer) -> None:
    [id, other] = server.make(2, states=["a", "b", "c"])
    path = f"/services/v1/handoff/{id}/stream"
    ws = RawSocket(server.port, path, headers={"Authorization": f"bearer o{id}"}, label=None)
    assert "sec-websocket-protocol" not in ws.head
    assert [ws.next()["t"] for _ in range(3)] == ["hello", "snap", "live"]
    ws.send({"t": "sub", "id": "z", "handoff": other, "token": "o" + other})
    assert ws.next()["code"] == "other_handoff"
    server.post("move", ids=[id, id])
    assert [ws.next()["t"] for _ in range(3)] == ["chg", "chg", "end"]
    assert ws.close_code() == 1000


def test_the_handoffs_own_stream_asks_for_the_token_before_the_101(server: StreamServer) -> None:
    [id] = server.make()
    for handoff, headers, expected in (
        (id, {}, (401, "token_required")),
        (id, {"Authorization": "Basic xyz"}, (401, "token_required")),
        (id, {"Authorization": "Bearer wrong"}, (404, "not_found")),
        ("0" * 32, {"Authorization": f"Bearer o{id}"}, (404, "not_found")),
        ("odd", {"Authorization": f"Bearer o{id}"}, (404, "not_found")),
    ):
        with pytest.raises(Rejected) as rejected:
            RawSocket(server.port, f"/services/v1/handoff/{handoff}/stream", headers=headers, label=None)
        assert (rejected.value.status, rejected.value.code) == expected
