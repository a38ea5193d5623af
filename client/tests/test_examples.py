"""The programs of client/examples/ as they stand, against a real server; the pieces of docs/client.md too."""

import json
import os
import re
import runpy
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from client.tests.commands import environment
from client.tests.waiting import until
from tests.house.tree import ROOT
from tests.real.cluster import shared_cluster
from tests.real.ports import free_port

import fencepost
from fencepost import Granted, keys, testing

EXAMPLES = ROOT / "client" / "examples"


@pytest.fixture
def env(url: str, tmp_path: Path, ns: str) -> dict[str, str]:
    """An environment with a namespace and a once secret."""
    return environment(url, tmp_path, FENCEPOST_NAMESPACE=ns, FENCEPOST_ONCE_SECRET=keys.mint_nonce())


def run(name: str, *words: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """One example to its end."""
    command = [sys.executable, str(EXAMPLES / name), *words]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=90, check=False)


def test_the_cron_job_runs_once_a_day(env: dict[str, str], url: str, ns: str) -> None:
    assert run("cron_job.py", "2026-09-05", env=env).stdout == "done: {'rows': 60}\n"
    assert run("cron_job.py", "2026-09-05", env=env).stdout == "done before: {'rows': 60}\n"
    with fencepost.Client(url) as fp, fp.lease("report:2026-09-06", namespace=ns):
        assert run("cron_job.py", "2026-09-06", env=env).returncode == 75


def test_the_webhook_receiver_acts_once_on_each_event(env: dict[str, str]) -> None:
    ports = [free_port(), free_port()]
    script = str(EXAMPLES / "webhook_receiver.py")
    receivers = [
        subprocess.Popen([sys.executable, script, str(port)], env=env, stdout=subprocess.PIPE, text=True)
        for port in ports
    ]
    try:
        lines = []
        for receiver in receivers:
            assert receiver.stdout is not None
            assert receiver.stdout.readline() == "ready\n"
        for port in [*ports, *ports]:
            body = json.dumps({"id": "evt_1", "amount": 5}).encode()
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/", data=body, timeout=60) as response:
                lines.append(json.load(response))
        assert lines == [{"charged": 5}] * 4
    finally:
        for receiver in receivers:
            receiver.terminate()
    charged = "".join(receiver.communicate(timeout=30)[0] for receiver in receivers)
    assert charged == "charging 5\n"


def test_two_agents_hand_work_over(env: dict[str, str]) -> None:
    done = run("two_agents.py", env=env)
    assert done.stdout.splitlines() == [
        "1 owner: offered",
        "2 receiver: accepted",
        "3 receiver: working 5 words",
        "4 receiver: done The lease is the truth",
        "too late: StateMismatch",
    ], done.stderr


def test_a_person_approves(env: dict[str, str], url: str) -> None:
    command = [sys.executable, str(EXAMPLES / "human_approval.py"), "Publish?"]
    asking = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)
    assert asking.stdout is not None
    link = asking.stdout.readline().strip()
    with fencepost.Client(url) as fp:
        fp.handoffs.from_link(link).move("approved", note="yes")
    out, _ = asking.communicate(timeout=60)
    assert (asking.returncode, out) == (0, "approved: yes\n")


@pytest.mark.parametrize("engine", ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def test_a_late_write_is_refused(env: dict[str, str], engine: str, tmp_path: Path, url: str, ns: str) -> None:
    """A holder is paused past its TTL; the rival's write with the higher fence stands."""
    place = str(tmp_path / "stock.db")
    if engine == "postgresql":
        place = shared_cluster().database().replace("+psycopg", "")
    example = runpy.run_path(str(EXAMPLES / "fenced_writer.py"))
    with fencepost.Client(url) as fp:
        late = fp.leases.acquire("stock:apples", namespace=ns, ttl=1)
        assert isinstance(late, Granted)
        done = run("fenced_writer.py", place, "of the rival", env=env)
        assert done.returncode == 0, done.stderr
        with pytest.raises(example["StaleFence"]):
            example["write"](place, "apples", "late", late.fencing_token)
        assert not fp.leases.verify("stock:apples", late.fencing_token, namespace=ns)
    connection, _ = example["connect"](place)
    rows = connection.cursor().execute("SELECT value FROM stock").fetchall()
    connection.close()
    assert [value for (value,) in rows] == ["of the rival"]


def test_the_testing_server_serves_and_leaves_nothing(ns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with testing.server(limits="off") as url, fencepost.Client(url) as fp, fp.lease("k", namespace=ns) as lease:
        assert lease.fencing_token >= 1
    monkeypatch.setenv("FENCEPOST_SERVER", "/bin/false")
    with pytest.raises(testing.ServerMissing), testing.server():
        raise AssertionError("the block must not run")


def test_the_pieces_of_the_page_run(url: str, ns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every python block of docs/client.md, in order, in one module."""
    monkeypatch.setenv("FENCEPOST_URL", url)
    monkeypatch.setenv("FENCEPOST_NAMESPACE", ns)
    monkeypatch.setenv("FENCEPOST_ONCE_SECRET", keys.mint_nonce())
    page = (ROOT / "docs" / "client.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 6
    module: dict[str, object] = {"__name__": "page"}
    for block in blocks:
        exec(compile(block, "docs/client.md", "exec"), module)
    until(lambda: os.environ["FENCEPOST_URL"] == url)
