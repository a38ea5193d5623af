"""Over a run that brings about every outcome of every surface: what the logs hold, and what they never hold.

Every token, key, note and payload that went over the wire is noted down by the test; none may stand in a log line, nor
in the figures. What a caller says is written in one line, whatever it says.
"""

import json
import re
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from websockets.sync.client import connect

from tests.mcp.oracle import REVISIONS
from tests.mcp.speak import Mcp
from tests.real import handoffs
from tests.real.api import V1, Answer, Api
from tests.real.mcpcases import CASES, World, rest
from tests.real.server import ENGINES, RunningServer

pytestmark = pytest.mark.real
_TOKEN = re.compile(r"(?:ns|own|howner|hrecv|nst|clm|cred|cred_trial|whsec|start)_[A-Za-z0-9_+/=-]{20,}")
FORGED = 'x"}\r\n{"at":"2020-01-01T00:00:00.000Z","level":"error","event":"forged"}\x1b[31m\u2028'
PRIVATE = ("private-note-7781", "private-payload-7782", "private-key-7783", "private-holder-7784", "query-7785")


@dataclass
class Heard:
    """What a run sent and got."""

    sqlite: bool
    secrets: set[str] = field(default_factory=set)
    request_ids: list[str] = field(default_factory=list)
    out: str = ""
    err: str = ""
    figures: str = ""


def listened(heard: Heard, patch: pytest.MonkeyPatch) -> None:
    """Note down what every caller of this test sends and gets."""
    send = Api.send

    def noting(self: Api, method: str, path: str, body: bytes | None = None, headers: Any = None) -> Answer:
        answer = send(self, method, path, body, headers)
        spoken = (body or b"").decode("utf-8", "replace") + repr(headers) + answer.raw.decode("utf-8", "replace")
        heard.secrets.update(_TOKEN.findall(spoken))
        if "x-request-id" in answer.headers:  # pages for people have none
            heard.request_ids.append(answer.headers["x-request-id"])
        return answer

    patch.setattr(Api, "send", noting)


def everything(server: RunningServer, api: Api) -> None:
    """Every outcome of every tool and of its REST twin, sockets, forged and broken requests."""
    world = World(server, api)
    world.namespace = api.lease("namespace")["namespace"]
    for place, case in enumerate(CASES):
        rest(api, case.tool, case.make(world))
        with Mcp(server.port, REVISIONS[place % len(REVISIONS)]) as mcp:
            mcp.tool(case.tool, case.make(world))
    private = {"namespace": world.namespace, "key": PRIVATE[2], "holder": PRIVATE[3] + FORGED}
    api.lease("acquire", **private)
    made = handoffs.make(api, payload={"secret": PRIVATE[1]}, title=FORGED)
    handoffs.move(api, made, "accepted", "offered", note=PRIVATE[0] + FORGED)
    api.send(
        "GET", f"/own_{handoffs.BODY}?token={PRIVATE[4]}", None, {"X-Request-Id": "a\tforged id", "User-Agent": "x"}
    )
    api.text(f"{V1}/lease/acquire?{PRIVATE[4]}", json.dumps({"namespace": FORGED}))
    api.text(f"{V1}/lease/acquire", '{"' + FORGED)
    for path in ("/", "/docs", "/openapi.json", "/llms.txt", "/healthz", "/readyz", "/sign-in"):
        api.get(path)
    headers = {"Authorization": f"Bearer {made.owner}"}
    with connect(f"ws://127.0.0.1:{server.port}{made.path}/stream", additional_headers=headers, open_timeout=20) as ws:
        ws.recv(20)


def broken(port: int) -> None:
    """What is no HTTP at all, and callers who hang up."""
    for said in (
        f"GET /own_{handoffs.BODY} BROKEN\r\nX: {PRIVATE[4]}\x1b[31m\r\n\r\n".encode(),
        b"POST /once-key HTTP/1.1\r\n",
    ):
        with socket.create_connection(("127.0.0.1", port), timeout=20) as client:
            client.sendall(said)


@pytest.fixture(params=ENGINES, scope="module")
def heard(request: pytest.FixtureRequest) -> Iterator[Heard]:
    run = Heard(request.param == "sqlite")
    variables = {"FENCEPOST_LIMITS": "off", "FENCEPOST_LOG_FORMAT": "json", "FENCEPOST_LOG_LEVEL": "debug"}
    with RunningServer(engine=request.param, environment=variables) as server, pytest.MonkeyPatch.context() as patch:
        listened(run, patch)
        with Api(server.port) as api:
            everything(server, api)
            broken(server.port)
            run.figures = api.get("/metrics").raw.decode()
        assert server.terminate() == 0
        run.out, run.err = server.stdout, server.stderr
        yield run


def lines(text: str) -> list[dict[str, Any]]:
    """The events; what a start says to people is no JSON."""
    return [json.loads(line) for line in text.split("\n") if line.startswith("{")]


def test_no_secret_stands_in_a_log_or_a_figure(heard: Heard) -> None:
    assert len(heard.secrets) > 200
    said = heard.figures + "\n".join(json.dumps(line) for line in lines(heard.out) + lines(heard.err))
    assert [secret for secret in heard.secrets if secret in said] == []
    assert not _TOKEN.search(said)
    assert [word for word in PRIVATE if word in heard.out + heard.err + heard.figures] == []


def test_every_line_is_json_but_for_what_a_start_says_to_people(heard: Heard) -> None:
    greeting = ("Fencepost ", "Public address: ", "Data: ", "TEST MODE: ", "Nobody may sign in yet.")
    others = [line for line in (heard.out + heard.err).split("\n") if line and not line.startswith("{")]
    assert [line for line in others if not line.startswith(greeting)] == []
    assert len(others) <= len(greeting)
    assert all({"at", "level", "event"} <= set(line) for line in lines(heard.out) + lines(heard.err))


def test_each_request_has_one_line(heard: Heard) -> None:
    logged = [line["id"] for line in lines(heard.out) if line["event"] == "request"]
    assert len(logged) == len(set(logged))
    assert sorted(set(heard.request_ids) - set(logged)) == []


def test_nobody_forges_a_line_or_steers_a_terminal(heard: Heard) -> None:
    said = heard.out + heard.err
    assert all(line.isascii() and line.isprintable() for line in said.split("\n"))
    assert [line for line in lines(said) if line["event"] == "forged"] == []


def test_a_run_without_faults_logs_none(heard: Heard) -> None:
    bad = [line for line in lines(heard.out) + lines(heard.err) if line["level"] in ("error", "critical")]
    assert bad == []
    assert "Traceback" not in heard.out + heard.err
