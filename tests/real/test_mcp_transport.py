"""The HTTP side of /mcp with requests as raw as they come: methods, origins, media, sizes, limits, batches."""

import json
import socket
from contextlib import suppress

import pytest

from tests.mcp.speak import ENVELOPE, Mcp, headers_of
from tests.real.api import Answer, Api, open_request
from tests.real.server import MOSTLY_SQLITE, RunningServer

PING = '{"jsonrpc":"2.0","id":7,"method":"ping"}'
DISCOVER = json.dumps({"jsonrpc": "2.0", "id": 7, "method": "server/discover", "params": {"_meta": ENVELOPE}})
NEW = headers_of("2026-07-28", "server/discover")
CAP = 65_536


@pytest.fixture(scope="module", params=MOSTLY_SQLITE)
def server(request):
    with RunningServer(
        engine=request.param, environment={"FENCEPOST_ALLOWED_ORIGINS": "https://board.example.com"}
    ) as running:
        yield running


@pytest.fixture
def api(server):
    with Api(server.port) as caller:
        yield caller


def post(api: Api, body: str = PING, **headers: str) -> Answer:
    return api.text("/mcp", body, {name.replace("_", "-"): value for name, value in headers.items()})


def told(answer: Answer) -> tuple[int, int]:
    return answer.status, answer["error"]["code"]


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "PATCH", "HEAD", "TRACE", "PROPFIND"])
def test_there_is_one_method(api, method) -> None:
    answer = api.send(method, "/mcp", None, {"Accept": "text/event-stream", "Mcp-Session-Id": "x"})
    assert (answer.status, answer.headers["allow"]) == (405, "POST")


def test_options_tells_the_methods(api) -> None:
    answer = api.send("OPTIONS", "/mcp")
    assert (answer.status, answer.headers["allow"], answer.raw) == (200, "OPTIONS, POST", b"")


@pytest.mark.parametrize("path", ["/mcp/", "/mcp/x", "/MCP"])
def test_there_is_one_path(api, path) -> None:
    assert api.text(path, PING).status == 404


def test_every_answer_is_json_uncached_with_a_request_id_and_no_session(api) -> None:
    answer = post(api, X_Request_Id="mine-1")
    assert (answer.status, answer.body) == (200, {"jsonrpc": "2.0", "id": 7, "result": {}})
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["x-request-id"] == "mine-1"
    assert "mcp-session-id" not in answer.headers


@pytest.mark.parametrize(
    "origin",
    ["https://evil.example", "http://evil.example", "null", "", "file://", "https://board.example.com.evil.example",
     "http://board.example.com", "https://board.example.com:8443", "http://user@127.0.0.1"],
)  # fmt: skip
def test_the_pages_of_strangers_are_refused_whatever_host_they_name(api, server, origin) -> None:
    for host in (f"127.0.0.1:{server.port}", "evil.example"):
        answer = api.send(
            "POST", "/mcp", PING.encode(), {"Content-Type": "application/json", "Origin": origin, "Host": host}
        )
        assert answer.status == 403
        assert answer["error"]["data"]["code"] == "origin_not_allowed"


def test_our_own_pages_allowed_ones_and_programs_are_let_in(api, server) -> None:
    own = [f"http://127.0.0.1:{server.port}", f"http://localhost:{server.port}", f"http://[::1]:{server.port}"]
    for origin in [*own, "https://board.example.com", "https://BOARD.example.com:443"]:
        assert post(api, Origin=origin).status == 200
    assert post(api).status == 200


@pytest.mark.parametrize(
    ("accept", "status"),
    [
        ("application/json", 200),
        ("application/json, text/event-stream", 200),
        ("text/event-stream, application/json;q=0.1", 200),
        ("*/*", 200),
        ("application/*", 200),
        ("APPLICATION/JSON", 200),
        ("application/json; charset=utf-8", 200),
        ("", 200),
        ("text/html", 406),
        ("text/event-stream", 406),
        ("application/json;q=0", 406),
        ("application/jsonx", 406),
        ("text/*", 406),
    ],
)
def test_who_accepts_no_json_is_told_so(api, accept, status) -> None:
    answer = post(api, Accept=accept)
    assert answer.status == status
    if status == 406:
        assert answer["error"]["data"]["code"] == "not_acceptable"


@pytest.mark.parametrize("media", ["text/plain", "application/x-www-form-urlencoded", "application/jsonp", ""])
def test_another_content_type_is_refused(api, media) -> None:
    answer = api.send("POST", "/mcp", PING.encode(), {"Content-Type": media})
    assert (answer.status, answer["error"]["data"]["code"]) == (415, "unsupported_media_type")


def test_a_compressed_body_is_refused(api) -> None:
    assert post(api, Content_Encoding="gzip").status == 415


def test_a_charset_is_fine(api) -> None:
    answer = api.send("POST", "/mcp", PING.encode(), {"Content-Type": "application/json; charset=utf-8"})
    assert answer.status == 200


@pytest.mark.parametrize(("size", "status"), [(CAP - 1, 200), (CAP, 200), (CAP + 1, 413), (1_000_000, 413)])
@pytest.mark.parametrize("chunked", [False, True])
def test_the_cap_holds_with_and_without_a_length(server, size, status, chunked) -> None:
    body = PING.encode().ljust(size)
    head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n"
    if chunked:
        raw = head.encode() + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % size + body + b"\r\n0\r\n\r\n"
    else:
        raw = head.encode() + b"Content-Length: %d\r\n\r\n" % size + body
    answer = exchange(server.port, raw)
    assert answer.startswith(b"HTTP/1.1 %d " % status)
    assert (b'"limit_bytes":65536' in answer) is (status == 413)


def exchange(port: int, raw: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        with suppress(BrokenPipeError, ConnectionResetError):  # refused while sending: the answer may be there already
            connection.sendall(raw)
        pieces = []
        with suppress(ConnectionResetError):
            while piece := connection.recv(65_536):
                pieces.append(piece)
        return b"".join(pieces)


def test_a_body_cut_short_is_refused_and_nothing_is_logged_as_an_error(server) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
        connection.sendall(
            b"POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{"
        )
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(100).startswith(b"HTTP/1.1 400 ")
    assert "Traceback" not in server.stderr


@pytest.mark.parametrize(
    "message",
    [
        '{"jsonrpc":"2.0","method":"notifications/initialized"}',
        '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}',
        '{"jsonrpc":"2.0","method":"notifications/whatever"}',
        '{"jsonrpc":"2.0","id":7,"result":{}}',
        '[{"jsonrpc":"2.0","method":"notifications/initialized"}]',
    ],
)
def test_what_asks_nothing_is_accepted_without_a_body(api, message) -> None:
    answer = post(api, message)
    assert (answer.status, answer.raw) == (202, b"")


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ("", 400, -32600),
        ("{", 400, -32700),
        ("[]", 400, -32600),
        ("17", 400, -32600),
        ('{"jsonrpc":"2.0","id":null,"method":"ping"}', 400, -32600),
        ('{"jsonrpc":"2.0","id":7,"method":"nope"}', 200, -32601),
        ('{"jsonrpc":"2.0","id":7,"method":"ping","params":[]}', 200, -32602),
        ('{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"nope"}}', 200, -32602),
        (
            '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"acquire_lease","arguments":[]}}',
            200,
            -32602,
        ),
    ],
)
def test_the_old_era_answers_requests_in_a_200(api, body, status, code) -> None:
    assert told(post(api, body)) == (status, code)
    assert told(post(api, body, MCP_Protocol_Version="2025-11-25")) == (status, code)


def new(method: str, **params: object) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": 7, "method": method, "params": {"_meta": ENVELOPE, **params}})


@pytest.mark.parametrize(
    ("body", "headers", "status", "code"),
    [
        (new("server/discover"), {}, 400, -32020),
        (new("server/discover"), {"Mcp-Method": "tools/list"}, 400, -32020),
        (new("tools/call", name="nope"), {"Mcp-Method": "tools/call", "Mcp-Name": "nope"}, 400, -32602),
        (new("tools/call", name="nope"), {"Mcp-Method": "tools/call", "Mcp-Name": "other"}, 400, -32020),
        (new("tools/call", name="nope"), {"Mcp-Method": "tools/call"}, 400, -32020),
        (new("ping"), {"Mcp-Method": "ping"}, 404, -32601),
        (new("initialize", protocolVersion="2025-11-25"), {"Mcp-Method": "initialize"}, 404, -32601),
        ('{"jsonrpc":"2.0","id":7,"method":"tools/list"}', {"Mcp-Method": "tools/list"}, 400, -32602),
        ('{"jsonrpc":"2.0","id":7,"method":"tools/list","params":[]}', {"Mcp-Method": "tools/list"}, 400, -32602),
        ("{", {"Mcp-Method": "tools/list"}, 400, -32700),
        (f"[{PING}]", {"Mcp-Method": "ping"}, 400, -32600),
    ],
)
def test_the_new_era_answers_with_the_status_that_it_pins(api, body, headers, status, code) -> None:
    assert told(api.text("/mcp", body, {"MCP-Protocol-Version": "2026-07-28", **headers})) == (status, code)


def test_a_new_body_without_headers_is_not_taken_for_an_old_one(api) -> None:
    assert told(post(api, DISCOVER)) == (400, -32020)
    assert api.text("/mcp", DISCOVER, NEW).status == 200


def test_a_revision_that_is_not_served_is_told_with_those_that_are(api) -> None:
    body = DISCOVER.replace("2026-07-28", "2099-01-01")
    answer = api.text("/mcp", body, {**NEW, "MCP-Protocol-Version": "2099-01-01"})
    assert told(answer) == (400, -32022)
    assert answer["error"]["data"]["requested"] == "2099-01-01"
    assert answer["error"]["data"]["supported"][0] == "2026-07-28"


def test_a_batch_is_answered_in_order_without_what_asks_nothing(api) -> None:
    batch = f'[{PING},{{"jsonrpc":"2.0","method":"x"}},{{"jsonrpc":"2.0","id":8,"method":"nope"}},17,{{"jsonrpc":"2.0",\
"id":9,"method":"initialize","params":{{"protocolVersion":"2025-03-26"}}}}]'
    answer = post(api, batch)
    replies = json.loads(answer.raw)
    assert answer.status == 200
    assert [(reply["id"], reply.get("error", {}).get("code")) for reply in replies] == [
        (7, None),
        (8, -32601),
        (None, -32600),
        (9, -32600),
    ]
    assert told(post(api, batch, MCP_Protocol_Version="2025-06-18")) == (400, -32600)


def test_a_query_is_no_way_to_say_anything(api) -> None:
    assert api.text("/mcp?token=own_x", PING).body == post(api).body


def test_a_crash_is_an_error_with_the_request_id_and_nothing_else(server, api) -> None:
    arguments = {"key": "k" * 20 + "0123456789abcdef"}
    body = {
        "jsonrpc": "2.0",
        "id": 7,
        "method": "tools/call",
        "params": {"name": "acquire_lease", "arguments": arguments},
    }
    server.failpoint("after-decide error")
    try:
        answer = post(api, json.dumps(body), X_Request_Id="mine-2")
    finally:
        server.failpoint()
    assert (answer.status, answer.body) == (
        200,
        {
            "jsonrpc": "2.0",
            "id": 7,
            "error": {"code": -32603, "message": "Internal error", "data": {"request_id": "mine-2"}},
        },
    )
    assert "mine-2" in server.stderr


def test_tokens_and_arguments_are_in_no_log(server, api) -> None:
    with Mcp(server.port) as mcp:
        namespace = mcp.structured("create_lease_namespace")["namespace"]
        held = mcp.structured("acquire_lease", key="a-readable-key", namespace=namespace, holder="somebody")
        mcp.tool("release_lease", {"key": "a-readable-key", "namespace": namespace, "owner_token": held["owner_token"]})
    open_request(server.port, "/mcp?token=own_leak", PING).close()
    for secret in (namespace, held["owner_token"], "a-readable-key", "somebody", "own_leak"):
        assert secret not in server.stdout + server.stderr


def test_requests_are_counted_each_message_of_a_batch_as_one(start_server) -> None:
    limits = {"FENCEPOST_LIMITS": "on", "FENCEPOST_LIMIT_REQUESTS_PER_DAY": "6"}
    with RunningServer(environment=limits) as counted, Api(counted.port) as api:
        first = post(api)
        assert (first.headers["ratelimit-limit"], first.headers["ratelimit-remaining"]) == ("6", "5")
        batch = json.loads(post(api, "[" + ",".join([PING] * 3) + "]").raw)
        assert [reply["result"] for reply in batch] == [{}, {}, {}]
        assert api.lease("namespace").headers["ratelimit-remaining"] == "1"
        replies = json.loads(post(api, f"[{PING},{PING}]").raw)
        assert replies[0]["result"] == {}
        assert replies[1]["error"]["code"] == 429
        over = post(api)
        assert (over.status, over["id"], over["error"]["code"]) == (429, 7, 429)
        assert over["error"]["data"]["code"] == "rate_limited"
        assert int(over.headers["retry-after"]) == over["error"]["data"]["retry_after_seconds"] > 0
        assert api.lease("namespace").status == 429
