"""Webhooks of a real server: sent by its own process, received by one that knows nothing of it."""

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks import Webhook as Verifier

from tests.real.api import V1, Api
from tests.real.server import ENGINES, RunningServer

OPEN = {"FENCEPOST_NOTIFY_ALLOW": "127.0.0.0/8"}


class Inbox:
    """A receiver in this process: what came, and what to answer next (200 when nothing is planned)."""

    def __init__(self) -> None:
        self.came: list[tuple[dict[str, str], bytes]] = []
        self.plan: list[int] = []
        inbox = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                inbox.came.append(({name.lower(): value for name, value in self.headers.items()}, body))
                self.send_response(inbox.plan.pop(0) if inbox.plan else 200)
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/hook"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def versions(self) -> list[int]:
        return [json.loads(body)["version"] for _, body in self.came]


@pytest.fixture
def inbox() -> Iterator[Inbox]:
    inbox = Inbox()
    yield inbox
    inbox.close()


def until(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def create(api: Api, url: str | None, **members: Any) -> dict[str, Any]:
    answer = api.post(f"{V1}/handoff", **{"payload": {"a": 1}, "notify_url": url, **members})
    assert answer.status == 201, answer.raw
    return answer.body


def move(api: Api, made: dict[str, Any], expected: str, to: str, **members: Any) -> Any:
    path = f"{V1}/handoff/{made['handoff_id']}/{to}"
    headers = {"Authorization": f"Bearer {made['receiver_token']}"}
    return api.post(path, headers=headers, **{"from": expected, **members})


@pytest.mark.real
@pytest.mark.parametrize("engine", ENGINES)
def test_each_committed_move_is_announced_once_and_nothing_else_is(
    start_server: Callable[..., RunningServer], inbox: Inbox, engine: str
) -> None:
    server = start_server(environment=OPEN, engine=engine)
    with Api(server.port) as api:
        made = create(api, inbox.url)
        time.sleep(0.5)
        assert inbox.came == [], "a creation is no move"
        assert move(api, made, "offered", "accepted", nonce="n1").status == 200
        assert move(api, made, "offered", "accepted", nonce="n1")["repeated"] is True
        assert move(api, made, "offered", "working").status == 409
        until(lambda: inbox.versions() == [2])
        answer = move(api, made, "accepted", "done")
        until(lambda: inbox.versions() == [2, 3])
        time.sleep(0.5)
        assert inbox.versions() == [2, 3]
    headers, body = inbox.came[1]
    told = Verifier(made["notify_secret"]).verify(body, headers)
    assert told == {
        "event": "agent_handoff.changed",
        "handoff_id": made["handoff_id"],
        "state": "done",
        "previous": "accepted",
        "by": "receiver",
        "version": 3,
        "ended": True,
        "changed_at": answer["changed_at"],
        "changed_at_timestamp": answer["changed_at_timestamp"],
        "result_url": made["read_url"],
    }


@pytest.mark.real
def test_no_payload_note_title_or_token_is_ever_in_a_webhook(
    start_server: Callable[..., RunningServer], inbox: Inbox
) -> None:
    server = start_server(environment=OPEN)
    with Api(server.port) as api:
        made = create(api, inbox.url, payload={"MARKER-payload": "MARKER"}, note="MARKER-note", title="MARKER-title")
        move(api, made, "offered", "accepted", note="MARKER-move")
        move(api, made, "accepted", "failed", note="MARKER-end", nonce="MARKER-nonce")
        until(lambda: len(inbox.came) == 2)
    for headers, body in inbox.came:
        whole = json.dumps(headers).encode() + body
        for secret in (
            b"MARKER",
            *(made[name].encode() for name in ("owner_token", "receiver_token", "notify_secret")),
        ):
            assert secret not in whole
    log = server.stdout + server.stderr
    assert not any(made[name] in log for name in ("owner_token", "receiver_token", "notify_secret"))


@pytest.mark.real
@pytest.mark.parametrize("engine", ENGINES)
def test_a_kill_between_commit_and_webhook_loses_nothing(
    start_server: Callable[..., RunningServer], inbox: Inbox, tmp_path: Path, engine: str
) -> None:
    """The process dies after the commit and before the answer; the next one sends it, once."""
    server = start_server(environment=OPEN, data_dir=tmp_path, engine=engine)
    with Api(server.port) as api:
        made = create(api, inbox.url)
    server.failpoint("after-commit kill")
    with Api(server.port) as api, pytest.raises((ConnectionError, OSError)):
        move(api, made, "offered", "accepted", nonce="n1")
    server.failpoint()
    server.kill9()
    assert inbox.came == []
    server.start()
    until(lambda: inbox.versions() == [2])
    with Api(server.port) as api:
        assert move(api, made, "offered", "accepted", nonce="n1")["repeated"] is True
    time.sleep(1.5)
    assert inbox.versions() == [2]
    headers, body = inbox.came[0]
    Verifier(made["notify_secret"]).verify(body, headers)


@pytest.mark.real
def test_a_move_that_was_never_committed_is_never_announced(
    start_server: Callable[..., RunningServer], inbox: Inbox, tmp_path: Path
) -> None:
    server = start_server(environment=OPEN, data_dir=tmp_path)
    with Api(server.port) as api:
        made = create(api, inbox.url)
    server.failpoint("before-commit kill")
    with Api(server.port) as api, pytest.raises((ConnectionError, OSError)):
        move(api, made, "offered", "accepted")
    server.failpoint()
    server.kill9()
    server.start()
    time.sleep(1.5)
    assert inbox.came == []
    with Api(server.port) as api:
        assert move(api, made, "offered", "accepted").status == 200
    until(lambda: inbox.versions() == [2])


@pytest.mark.real
@pytest.mark.parametrize("engine", ENGINES)
def test_retries_follow_the_deciding_clock_with_one_identifier_and_end_on_success(
    start_server: Callable[..., RunningServer], inbox: Inbox, engine: str
) -> None:
    server = start_server(environment=OPEN, engine=engine)
    inbox.plan = [500, 302, 503, 200]
    with Api(server.port) as api:
        made = create(api, inbox.url)
        move(api, made, "offered", "accepted")
        offset = 0

        def came(count: int) -> bool:
            return len(inbox.came) == count

        for tries, pause in enumerate((20, 80, 300), start=1):
            until(partial(came, tries))
            time.sleep(0.3)
            assert len(inbox.came) == tries, "no sooner than its time"
            offset += pause
            server.set_clock(offset)
        until(lambda: len(inbox.came) == 4)
        server.set_clock(offset + 3_600)
        time.sleep(1.5)
        assert len(inbox.came) == 4
    assert {headers["webhook-id"] for headers, _ in inbox.came} == {f"msg_{made['handoff_id']}_2"}
    for headers, body in inbox.came:  # the stamp is real time, whatever the deciding clock says
        assert abs(int(headers["webhook-timestamp"]) - time.time()) < 120
        Verifier(made["notify_secret"]).verify(body, headers)


@pytest.mark.real
def test_without_the_setting_a_private_url_is_refused_at_creation_in_test_mode_too(server: RunningServer) -> None:
    with Api(server.port) as api:
        for url in ("http://127.0.0.1:8080/", "http://localhost/", "http://2130706433/", "http://[::ffff:7f00:1]/"):
            answer = api.post(f"{V1}/handoff", payload=1, notify_url=url)
            assert (answer.status, answer["code"]) == (400, "notify_url_refused")


@pytest.mark.real
def test_moves_are_answered_at_their_pace_while_receivers_hang(start_server: Callable[..., RunningServer]) -> None:
    """A listener whose queue nobody empties: connections hang, and the mover does not notice."""
    server = start_server(environment=OPEN)
    with socket.socket() as hanging, Api(server.port) as api:
        hanging.bind(("127.0.0.1", 0))
        hanging.listen(1)
        url = f"http://127.0.0.1:{hanging.getsockname()[1]}/"

        def ten_moves(url: str | None) -> float:
            taken = []
            for _ in range(10):
                made = create(api, url)
                began = time.monotonic()
                assert move(api, made, "offered", "done").status == 200
                taken.append(time.monotonic() - began)
            return sorted(taken)[5]

        quiet = ten_moves(None)
        assert ten_moves(url) < 10 * quiet + 0.5


@pytest.mark.real
def test_a_stop_does_not_wait_for_receivers_that_hang(start_server: Callable[..., RunningServer]) -> None:
    server = start_server(environment=OPEN)
    with socket.socket() as hanging, Api(server.port) as api:
        hanging.bind(("127.0.0.1", 0))
        hanging.listen(5)
        made = create(api, f"http://127.0.0.1:{hanging.getsockname()[1]}/")
        move(api, made, "offered", "accepted")
        time.sleep(0.5)
        began = time.monotonic()
        server.terminate()
        assert time.monotonic() - began < 5
