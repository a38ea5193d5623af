"""What every route shares, asked with raw bytes: bodies, media, methods, limits, headers."""

import json
import re
import socket
import time
from datetime import UTC, datetime

import pytest

from tests.real.api import V1, Answer, Api
from tests.real.server import MOSTLY_SQLITE, RunningServer
from tests.real.test_lease_waiting import answer_of

STATUS = f"{V1}/lease/status"
KEY = "abcdefghijklmnopqrstuvwxyz0123456789"
CAP = 65_536


@pytest.fixture(scope="module", params=MOSTLY_SQLITE)
def server(request):
    with RunningServer(engine=request.param, environment={"FENCEPOST_BODY_DEADLINE_SECONDS": "1"}) as running:
        yield running


@pytest.fixture
def api(server):
    with Api(server.port) as caller:
        yield caller


def raw_request(server: RunningServer, *pieces: bytes, half_close: bool = False) -> Answer:
    """Send bytes as they are, read one answer."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as raw:
        for piece in pieces:
            raw.sendall(piece)
        if half_close:
            raw.shutdown(socket.SHUT_WR)
        return answer_of(raw)


def head(path: str = STATUS, *lines: str, method: str = "POST") -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: test", *lines, "", ""]).encode()


def chunked(body: bytes) -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(body[i : i + 1000]), body[i : i + 1000]) for i in range(0, len(body), 1000))


def padded(size: int) -> bytes:
    body = json.dumps({"key": KEY}).encode()
    return body + b" " * (size - len(body))


@pytest.mark.parametrize("body", [b"", b"  \n", b"null", b" null ", b"{}"])
def test_an_empty_body_or_null_counts_as_an_empty_object(api, body) -> None:
    headers = {"Content-Type": "application/json"} if body else {}
    assert api.send("POST", f"{V1}/lease/namespace", body, headers).status == 201


@pytest.mark.parametrize("body", ["[]", "1", '"x"', "true"])
def test_another_value_that_is_no_object_is_refused(api, body) -> None:
    refused = api.text(STATUS, body)
    assert (refused.status, refused["code"]) == (400, "invalid_request")


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b'{"key":}',
        b"\xef\xbb\xbf{}",
        b'{"key":"\xff"}',
        b'{"key":NaN}',
        b'{"key":Infinity}',
        b'{"key":"a","key":"b"}',
        b'{"key":{"a":1,"\\u0061":2}}',
        b'{"key":"\\ud800"}',
        b"{} {}",
        b"{}x",
        b'{"key":' + b"[" * 64 + b"]" * 64 + b"}",
        b"[" * 20_000,
        '{"key":"a"}'.encode("utf-16"),
    ],
)
def test_bad_json_is_refused_with_its_position(api, body) -> None:
    refused = api.send("POST", STATUS, body, {"Content-Type": "application/json"})
    assert (refused.status, refused["code"]) == (400, "invalid_json")
    assert isinstance(refused["position"], int)


@pytest.mark.parametrize(
    ("media", "status"),
    [
        ("application/json", 200),
        ("application/json; charset=utf-8", 200),
        ("Application/JSON", 200),
        ("text/plain", 415),
        ("application/x-www-form-urlencoded", 415),
        ("application/json-patch+json", 415),
        (None, 415),
    ],
)
def test_a_body_needs_the_json_media_type(server, media, status) -> None:
    body = json.dumps({"key": KEY}).encode()
    lines = [f"Content-Length: {len(body)}", *([f"Content-Type: {media}"] if media else [])]
    answer = raw_request(server, head(STATUS, *lines), body)
    assert answer.status == status
    if status == 415:
        assert answer["code"] == "unsupported_media_type"
        assert "application/json" in answer["error"] + answer["fix"]


def test_a_compressed_body_is_refused(api) -> None:
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    assert api.send("POST", STATUS, b"\x1f\x8b", headers).status == 415


@pytest.mark.parametrize(("size", "status"), [(CAP - 1, 200), (CAP, 200), (CAP + 1, 413), (3 * CAP, 413)])
@pytest.mark.parametrize("is_chunked", [False, True])
def test_the_cap_holds_with_and_without_a_length(server, size, status, is_chunked) -> None:
    body = padded(size)
    if is_chunked:
        framing, sent = "Transfer-Encoding: chunked", chunked(body) + b"0\r\n\r\n"
    else:
        framing, sent = f"Content-Length: {size}", body
    answer = raw_request(server, head(STATUS, framing, "Content-Type: application/json"), sent)
    assert answer.status == status
    if status == 413:
        assert answer["code"] == "body_too_large"
        assert str(CAP) in answer["error"]


def test_a_body_that_ends_early_is_refused_quietly(server) -> None:
    framing = ("Content-Length: 50", "Content-Type: application/json")
    answer = raw_request(server, head(STATUS, *framing), b'{"key":', half_close=True)
    assert (answer.status, answer["code"]) == (400, "incomplete_body")
    framing = ("Transfer-Encoding: chunked", "Content-Type: application/json")
    answer = raw_request(server, head(STATUS, *framing), b"5\r\n{", half_close=True)
    assert (answer.status, answer["code"]) == (400, "incomplete_body")
    assert "Traceback" not in server.stderr


def test_a_body_that_comes_too_slowly_is_cut_and_nothing_was_done(server) -> None:
    framing = ("Content-Length: 50", "Content-Type: application/json")
    began = time.monotonic()
    answer = raw_request(server, head(STATUS, *framing), b"{")
    assert (answer.status, answer["code"]) == (408, "request_timeout")
    assert 1.0 <= time.monotonic() - began < 10
    assert "Traceback" not in server.stderr


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH", "HEAD"])
def test_a_wrong_method_is_405_with_the_methods_allowed(api, method) -> None:
    refused = api.send(method, STATUS)
    assert refused.status == 405
    assert set(refused.headers["allow"].replace(" ", "").split(",")) == {"OPTIONS", "POST"}
    assert refused.raw == b"" if method == "HEAD" else refused["code"] == "method_not_allowed"


def test_options_and_head_answer_as_http_asks(api) -> None:
    options = api.send("OPTIONS", STATUS)
    assert options.status in (200, 204)
    assert "POST" in options.headers["allow"]
    looked = api.send("HEAD", "/healthz")
    assert (looked.status, looked.raw) == (200, b"")


@pytest.mark.parametrize(
    "path", ["/nope", f"{V1}/lease/", f"{V1}//lease", f"{V1}/lease/acquire/", "/services/v2/lease"]
)
def test_an_unknown_path_is_404(api, path) -> None:
    for method in ("GET", "POST"):
        refused = api.send(method, path)
        assert (refused.status, refused["code"]) == (404, "unknown_route")


@pytest.mark.parametrize("query", ["?a=1", "?token=x", "?key", "?="])
def test_a_query_is_refused_before_the_body_is_looked_at(api, query) -> None:
    refused = api.send("POST", STATUS + query, b"not json", {"Content-Type": "application/json"})
    assert (refused.status, refused["code"]) == (400, "query_not_allowed")


def test_every_answer_has_the_common_headers(api) -> None:
    for answer in (api.post(STATUS, key=KEY), api.post(STATUS), api.get("/nope"), api.get(STATUS), api.get("/healthz")):
        assert answer.headers["content-type"] == "application/json"
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert re.fullmatch(r"[A-Za-z0-9._-]{1,64}", answer.headers["x-request-id"])
        assert isinstance(answer.body, dict)


@pytest.mark.parametrize(
    ("sent", "kept"),
    [("a", True), ("A-z_0.9" * 9, True), ("a" * 64, True), ("a" * 65, False), ("a b", False), ("é", False)],
)
def test_a_decent_request_id_comes_back(api, sent, kept) -> None:
    answer = api.post(STATUS, key=KEY, headers={"X-Request-Id": sent.encode().decode("latin-1")})
    assert (answer.headers["x-request-id"] == sent) == kept


def test_a_token_sent_as_a_request_id_by_mistake_is_not_taken_into_the_log(server, api) -> None:
    token = api.lease("acquire", key=KEY + "id")["owner_token"]
    assert api.post(STATUS, key=KEY, headers={"X-Request-Id": token}).headers["x-request-id"] != token
    deadline = time.monotonic() + 10
    while server.stdout.count("/lease/status") == 0 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert token not in server.stdout + server.stderr


def test_printed_instants_come_in_pairs_and_are_rounded_down(api) -> None:
    key = KEY + "pairs"
    before = time.time()
    granted = api.lease("acquire", key=key, ttl_seconds=10)
    after = time.time()
    stamp = granted["lease_expires_at_timestamp"]
    assert datetime.fromisoformat(granted["lease_expires_at"]) == datetime.fromtimestamp(stamp, UTC)
    assert granted["lease_expires_at"].endswith("Z")
    assert int(before) + 10 <= stamp <= after + 10


@pytest.fixture(scope="module")
def limited():
    environment = {
        "FENCEPOST_LIMITS": "on",
        "FENCEPOST_LIMIT_REQUESTS_PER_DAY": "5",
        "FENCEPOST_TRUSTED_PROXIES": "1",
    }
    with RunningServer(environment=environment) as running:
        yield running


class TestLimits:
    """The daily allowance per address, behind and without a proxy."""

    def ask(self, server: RunningServer, forwarded: str) -> Answer:
        with Api(server.port) as api:
            return api.post(STATUS, key=KEY, headers={"X-Forwarded-For": forwarded})

    def test_the_allowance_counts_down_to_a_429_until_midnight(self, limited) -> None:
        answers = [self.ask(limited, "203.0.113.1") for _ in range(7)]
        assert [answer.status for answer in answers] == [200] * 5 + [429] * 2
        assert [answer.headers["ratelimit-remaining"] for answer in answers] == ["4", "3", "2", "1", "0", "0", "0"]
        assert {answer.headers["ratelimit-limit"] for answer in answers} == {"5"}
        last = answers[-1]
        assert last["code"] == "rate_limited"
        now = datetime.now(UTC)
        left = 86_400 - (now.hour * 3600 + now.minute * 60 + now.second)
        assert abs(int(last.headers["retry-after"]) - left) < 30

    def test_only_the_entry_of_the_trusted_proxy_counts(self, limited) -> None:
        answers = [self.ask(limited, f"198.51.100.{number}, 203.0.113.2") for number in range(6)]
        assert answers[-1].status == 429

    def test_ipv6_counts_by_its_64_bit_network_and_mapped_addresses_as_ipv4(self, limited) -> None:
        answers = [self.ask(limited, f"2001:db8:1:2:{number:x}::1") for number in range(6)]
        assert answers[-1].status == 429
        assert self.ask(limited, "2001:db8:1:3::1").status == 200
        mixed = [self.ask(limited, address) for address in ["203.0.113.9", "::ffff:203.0.113.9"] * 3]
        assert mixed[-1].status == 429

    def test_the_count_survives_kill_9_and_midnight_gives_a_new_day(self, limited) -> None:
        for _ in range(5):
            self.ask(limited, "203.0.113.77")
        limited.kill9()
        limited.start()
        assert self.ask(limited, "203.0.113.77").status == 429
        limited.set_clock(86_400)
        assert self.ask(limited, "203.0.113.77").status == 200

    def test_health_is_not_counted(self, limited) -> None:
        with Api(limited.port) as api:
            assert {api.get("/healthz", {"X-Forwarded-For": "203.0.113.5"}).status for _ in range(9)} == {200}

    def test_auto_counts_local_peers_only_when_a_proxy_stands_before_them(self) -> None:
        environment = {"FENCEPOST_LIMIT_REQUESTS_PER_DAY": "2"}
        with RunningServer(environment=environment) as server, Api(server.port) as api:
            assert {api.post(STATUS, key=KEY).status for _ in range(5)} == {200}
            assert "ratelimit-limit" not in api.post(STATUS, key=KEY).headers
            statuses = [self.ask(server, f"198.51.100.{number}").status for number in range(4)]
            assert statuses == [200, 200, 429, 429]
            assert (
                server.stderr.count("FENCEPOST_TRUSTED_PROXIES") + server.stdout.count("FENCEPOST_TRUSTED_PROXIES") == 1
            )
