"""The proxy snippets of deploy/, run as they are but for the ports: long-polls, sockets, what is kept inside."""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.client import connect

from tests.real import handoffs
from tests.real.api import V1, Api
from tests.real.ports import free_port
from tests.real.server import ROOT, RunningServer

pytestmark = pytest.mark.real


def installed(program: str) -> str:
    """Its path; proxies often lie where only root looks."""
    found = shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin:/opt/homebrew/bin")
    assert found is not None, f"{program} is not installed: scripts/need {program}"
    return found


def nginx(folder: Path, port: int, upstream: int) -> "subprocess.Popen[bytes]":
    ours = (ROOT / "deploy/nginx.conf").read_text(encoding="utf-8")
    ours = ours.replace("listen 80;", f"listen 127.0.0.1:{port};").replace("127.0.0.1:8000", f"127.0.0.1:{upstream}")
    (folder / "fencepost.conf").write_text(ours)
    places = "".join(
        f"{kind}_temp_path {folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "nginx.conf").write_text(
        f"daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/log warn; events {{}}"
        f" http {{ access_log off; {places} include {folder}/fencepost.conf; }}"
    )
    command = [installed("nginx"), "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", str(folder / "log")]
    return subprocess.Popen(command)


def caddy(folder: Path, port: int, upstream: int) -> "subprocess.Popen[bytes]":
    (folder / "Caddyfile").write_text(f"{{\n\tadmin off\n\tauto_https off\n}}\nimport {ROOT}/deploy/Caddyfile\n")
    variables = {"SITE": f"http://127.0.0.1:{port}", "UPSTREAMS": f"127.0.0.1:{upstream}", "HOME": str(folder)}
    command = [installed("caddy"), "run", "--config", str(folder / "Caddyfile"), "--adapter", "caddyfile"]
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(command, env=os.environ | variables, stdout=log, stderr=log)


class Behind:
    """A server behind a proxy; `port` is the proxy's."""

    def __init__(self, port: int, server: RunningServer) -> None:
        self.port = port
        self.server = server


@pytest.fixture(params=[nginx, caddy], ids=["nginx", "caddy"], scope="module")
def behind(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Behind]:
    start: Callable[[Path, int, int], subprocess.Popen[bytes]] = request.param
    folder, port = tmp_path_factory.mktemp("proxy"), free_port()
    variables = {"FENCEPOST_TRUSTED_PROXIES": "1", "FENCEPOST_LIMITS": "on"}
    with RunningServer(environment=variables) as server, start(folder, port, server.port) as proxy:
        try:
            await_proxy(port, folder)
            yield Behind(port, server)
        finally:
            proxy.terminate()


def await_proxy(port: int, folder: Path) -> None:
    deadline = time.monotonic() + 30
    while True:
        try:
            with Api(port, timeout_seconds=5) as api:
                if api.get("/healthz").status == 200:
                    return
        except OSError:
            pass
        assert time.monotonic() < deadline, (folder / "log").read_text(errors="replace")
        time.sleep(0.1)


def test_a_long_poll_waits_and_is_woken(behind: Behind) -> None:
    with Api(behind.port) as api:
        made = handoffs.make(api)
        answers: list[Any] = []
        with handoffs.waiting(behind, made, 25) as waiting:  # type: ignore[arg-type]
            await_parked(behind.server)
            assert handoffs.move(api, made, "accepted", "offered").status == 200
            answers = waiting
        assert answers[0].status == 200
        assert b'"accepted"' in answers[0].raw


def await_parked(server: RunningServer) -> None:
    deadline = time.monotonic() + 20
    while b'fencepost_seats_taken{use="wait"} 1.0' not in server.get("/metrics")[1]:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_socket_opens_and_tells_of_a_move(behind: Behind) -> None:
    with Api(behind.port) as api:
        made = handoffs.make(api)
        headers = {"Authorization": f"Bearer {made.owner}"}
        address = f"ws://127.0.0.1:{behind.port}{V1}/handoff/{made.name}/stream"
        with connect(address, additional_headers=headers, open_timeout=20, compression=None) as socket:
            assert json.loads(socket.recv(20))
            assert handoffs.move(api, made, "accepted", "offered").status == 200
            deadline = time.monotonic() + 20
            while '"accepted"' not in str(socket.recv(20)):
                assert time.monotonic() < deadline


def test_the_callers_are_counted_and_not_the_proxy(behind: Behind) -> None:
    with Api(behind.port) as api:
        left = int(api.post(f"{V1}/lease/status").headers["ratelimit-remaining"])
        forged = api.post(f"{V1}/lease/status", headers={"X-Forwarded-For": "203.0.113.9"})
        assert int(forged.headers["ratelimit-remaining"]) == left - 1


def test_figures_and_readiness_stay_inside(behind: Behind) -> None:
    with Api(behind.port) as api:
        for path in ("/metrics", "/readyz"):
            assert api.send("GET", path).status == 404
        assert api.get("/healthz").status == 200
