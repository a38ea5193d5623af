"""What stands round a request: hosts, targets, chunks, and the methods that a path takes; asked with raw bytes."""

import json

import pytest

from tests.real.api import V1, Api
from tests.real.handoffs import PATH, UNKNOWN
from tests.real.server import RunningServer
from tests.real.test_conventions import KEY, STATUS, head, raw_request

BODY = json.dumps({"key": KEY}).encode()
CHUNK = b"%x\r\n%b\r\n" % (len(BODY), BODY)
IMPOSSIBLE_HOSTS = ["", "Host: a b\r\n", "Host: a/b\r\n", "Host: u@a\r\n", "Host: \xe9\r\n", "Host: a:b\r\n"]
CHUNKED = ("Transfer-Encoding: chunked", "Content-Type: application/json")


@pytest.fixture(scope="module")
def server():
    with RunningServer() as running:
        yield running


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (b"+5\r\nabcde\r\n0\r\n\r\n", "invalid_http"),
        (b"-5\r\n", "invalid_http"),
        (b"0x5\r\n", "invalid_http"),
        (b"1_0\r\n", "invalid_http"),
        (b"\r\n", "invalid_http"),
        (b"%x \r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY), "invalid_http"),
        (b"1;" + b"a" * 100_000 + b"\r\n", "invalid_http"),
        (b"%x\r\n%bXX0\r\n\r\n" % (len(BODY), BODY), "invalid_http"),
        (CHUNK + b"0\r\nContent-Length: 1\r\n\r\n", "invalid_http"),
        (CHUNK + b"0\r\nno trailer\r\n\r\n", "invalid_http"),
        (CHUNK, "incomplete_body"),
        (CHUNK[:-2], "incomplete_body"),
        (CHUNK + b"0\r\n", "incomplete_body"),
    ],
)
def test_broken_chunks_are_the_callers_fault_and_no_error_in_the_log(server, sent, code) -> None:
    answer = raw_request(server, head(STATUS, *CHUNKED), sent, half_close=code == "incomplete_body")
    assert (answer.status, answer["code"]) == (400, code)
    assert '"level":"error"' not in server.stderr


def test_trailers_and_chunk_extensions_are_read_over(server) -> None:
    sent = b"%x;name=value\r\n%b\r\n0\r\nX-Digest: 1\r\n\r\n" % (len(BODY), BODY)
    assert raw_request(server, head(STATUS, *CHUNKED), sent).status == 200


def test_a_transfer_coding_that_nobody_would_undo_is_refused(server) -> None:
    lines = ("Transfer-Encoding: gzip, chunked", "Content-Type: application/json")
    answer = raw_request(server, head(STATUS, *lines), CHUNK + b"0\r\n\r\n")
    assert (answer.status, answer["code"]) == (501, "transfer_coding_unsupported")


@pytest.mark.parametrize("host", IMPOSSIBLE_HOSTS)
def test_a_request_without_a_possible_host_is_refused(server, host) -> None:
    answer = raw_request(server, f"GET /healthz HTTP/1.1\r\n{host}\r\n".encode("latin-1"))
    assert (answer.status, answer["code"]) == (400, "invalid_http")


@pytest.mark.parametrize("host", ["Host:\r\n", "Host: [::1]:8080\r\n", "Host: fence_post.internal:80\r\n"])
def test_any_possible_host_will_do(server, host) -> None:
    assert raw_request(server, f"GET /healthz HTTP/1.1\r\n{host}\r\n".encode()).status == 200
    assert raw_request(server, b"GET /healthz HTTP/1.0\r\n\r\n").status == 200


def test_a_fragment_is_no_part_of_a_request(server) -> None:
    answer = raw_request(server, head("/healthz#token", method="GET"))
    assert (answer.status, answer["code"]) == (400, "invalid_http")


@pytest.mark.parametrize("path", [f"/{STATUS}", "//healthz", "///metrics"])
def test_a_path_with_two_slashes_in_front_is_another_path(server, path) -> None:
    for method in ("GET", "POST"):
        answer = raw_request(server, head(path, method=method))
        assert (answer.status, answer["code"]) == (404, "unknown_route")


@pytest.mark.parametrize(
    ("path", "methods"),
    [
        (STATUS, "OPTIONS, POST"),
        (f"{V1}/stream", "GET, HEAD, OPTIONS"),
        (f"{PATH}/{UNKNOWN}", "GET, HEAD, OPTIONS"),
        (f"{PATH}/{UNKNOWN}/done", "OPTIONS, POST"),
        (f"{PATH}/{UNKNOWN}/wait", "GET, HEAD, OPTIONS"),
        (f"{PATH}/{UNKNOWN}/stream", "GET, HEAD, OPTIONS"),
        ("/healthz", "GET, HEAD, OPTIONS"),
        ("*", "GET, HEAD, OPTIONS, POST"),
    ],
)
def test_options_names_the_methods_and_has_the_headers_of_every_answer(server, path, methods) -> None:
    with Api(server.port) as api:
        answer = api.send("OPTIONS", path)
        assert (answer.status, answer.raw) == (204, b"")
        assert answer.headers["allow"] == methods
        assert answer.headers["x-request-id"]
        assert (answer.headers["cache-control"], answer.headers["x-content-type-options"]) == ("no-store", "nosniff")
        if path != "*":
            refused = api.send("PROPFIND", path)
            assert (refused.status, refused.headers["allow"]) == (405, methods)


@pytest.mark.parametrize("path", ["/openapi.json", "/docs", "/llms.txt", "/metrics", "/readyz", "/", "/no/such"])
def test_pages_and_documents_carry_the_request_id_too(server, path) -> None:
    with Api(server.port) as api:
        answer = api.get(path, {"X-Request-Id": "mine-1"})
        assert (answer.headers["x-request-id"], answer.headers["x-content-type-options"]) == ("mine-1", "nosniff")
