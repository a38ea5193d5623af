"""Backup beside a busy server, restore into an empty folder, the sweep on demand: by the command line."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.real import handoffs
from tests.real.api import V1, Api
from tests.real.server import ENGINES, ROOT, RunningServer

pytestmark = pytest.mark.real
NAMESPACE = f"ns_{handoffs.BODY}"
WRITES_A_SECOND = 300
CALLERS = 6


def command(data_dir: Path, *arguments: str, stdin: str = "", **more: str) -> "subprocess.CompletedProcess[str]":
    """`fencepost-server …` on this data folder."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("FENCEPOST_")}
    return subprocess.run(
        [sys.executable, "-m", "app.cli.main", *arguments],
        cwd=data_dir.parent,
        env=clean | {"PYTHONPATH": str(ROOT), "FENCEPOST_DATA_DIR": str(data_dir)} | more,
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )


def acquire(api: Api, key: str) -> Any:
    answer = api.post(f"{V1}/lease/acquire", namespace=NAMESPACE, key=key, ttl_seconds=3600)
    assert answer.status in (201, 409), answer.raw
    return answer


class Crowd:
    """Callers who acquire new keys together at a steady pace; `granted` is key to fence, as answered."""

    def __init__(self, server: RunningServer) -> None:
        self._server = server
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(who,)) for who in range(CALLERS)]
        self.granted: dict[str, int] = {}

    def __enter__(self) -> "Crowd":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *fault: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(30)

    def _run(self, who: int) -> None:
        pause = CALLERS / WRITES_A_SECOND
        due, n = time.monotonic(), 0
        with Api(self._server.port) as api:
            while not self._stop.is_set():
                key = f"job-{who}-{n}"
                self.granted[key] = acquire(api, key)["fencing_token"]
                n, due = n + 1, due + pause
                time.sleep(max(0.0, due - time.monotonic()))


def await_(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_backup_under_writes_holds_what_was_answered_and_its_fences_go_on_above(
    server: RunningServer, start_server: Callable[..., RunningServer], tmp_path: Path
) -> None:
    copy = tmp_path / "copies" / "one.db"
    with Crowd(server) as crowd:
        await_(lambda: len(crowd.granted) > 600)
        before = dict(crowd.granted)
        done = command(server.data_dir, "backup", str(copy))
        assert (done.returncode, done.stderr) == (0, "")
        later = len(crowd.granted)
        await_(lambda: len(crowd.granted) > later + 50)
    assert f"Backed up to {copy} " in done.stdout
    assert subprocess.run(["sha256sum", "-c", f"{copy.name}.sha256"], cwd=copy.parent, check=False).returncode == 0
    assert {file.stat().st_mode & 0o777 for file in copy.parent.iterdir()} == {0o600}

    folder = tmp_path / "restored"
    folder.mkdir()
    done = command(folder / "data", "restore", str(copy))
    assert (done.returncode, done.stderr) == (0, "")
    restored = start_server(data_dir=folder)
    with Api(restored.port) as api:
        lost = [key for key in before if acquire(api, key).status != 409]
        assert lost == []
        assert acquire(api, "another")["fencing_token"] > max(crowd.granted.values())
    refused = command(folder / "data", "restore", str(copy))
    assert refused.returncode == 78
    assert "Another process" in refused.stderr


def test_a_backup_overwrites_nothing_and_a_restore_wants_it_as_it_was_written(
    server: RunningServer, tmp_path: Path
) -> None:
    there = tmp_path / "there.db"
    there.write_text("something")
    done = command(server.data_dir, "backup", str(there))
    assert (done.returncode, done.stderr) == (
        78,
        f"fencepost-server: {there} is there already; nothing was overwritten.\n",
    )
    server.terminate()
    done = command(server.data_dir, "backup")
    assert done.returncode == 0, done.stderr
    [copy] = (server.data_dir / "backups").glob("*.db")
    assert "nothing is overwritten" in command(server.data_dir, "restore", str(copy)).stderr
    damaged = bytearray(copy.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    copy.write_bytes(damaged)
    (tmp_path / "elsewhere").mkdir()
    refused = command(tmp_path / "elsewhere" / "data", "restore", str(copy))
    assert refused.returncode == 78
    assert "has not the SHA-256" in refused.stderr


@pytest.mark.parametrize("verb", ["backup", "sweep", "operator list", "operator remove ann", "operator add ann"])
def test_an_admin_verb_in_a_mistyped_folder_says_so_and_makes_nothing(tmp_path: Path, verb: str) -> None:
    folder = tmp_path / "mistyped"
    done = command(folder, *verb.split())
    assert (done.returncode, done.stdout) == (78, "")
    assert f"{folder}/fencepost.db is not there, so nothing was done. Is FENCEPOST_DATA_DIR right?" in done.stderr
    assert not folder.exists()


def test_an_operator_can_be_added_before_the_first_start(tmp_path: Path) -> None:
    assert command(tmp_path / "data", "migrate").returncode == 0
    assert "Nobody may sign in yet" in command(tmp_path / "data", "operator", "list").stdout


def test_who_is_added_is_sent_to_the_address_of_the_server_that_runs(server: RunningServer) -> None:
    added = command(server.data_dir, "operator", "add", "vic", "--role", "viewer", stdin="long enough\n")
    assert added.stdout == f"vic may sign in as viewer on {server.url}/sign-in\n", added.stderr


def test_a_bare_copy_of_a_running_server_is_refused_with_the_way_out(server: RunningServer, tmp_path: Path) -> None:
    with Api(server.port) as api:
        acquire(api, "a")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "fencepost.db").write_bytes((server.data_dir / "fencepost.db").read_bytes())
    refused = command(tmp_path / "data", "serve", FENCEPOST_BIND="127.0.0.1:0")
    assert refused.returncode == 78
    assert "its log fencepost.db-wal is missing" in refused.stderr
    assert "restore --without-log" in refused.stderr


@pytest.mark.parametrize("engine", ENGINES)
def test_a_sweep_on_demand_removes_what_is_over(start_server: Callable[..., RunningServer], engine: str) -> None:
    server = start_server(engine=engine)
    with Api(server.port) as api:
        for n in range(3):
            assert api.post(f"{V1}/lease/acquire", namespace=NAMESPACE, key=f"k{n}", ttl_seconds=60).status == 201
    server.set_clock(30 * 86400)
    variables = {name: value for name, value in server.environment.items() if name.startswith("FENCEPOST_")}
    done = command(server.data_dir, "sweep", **variables)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Swept 3 leases, 0 handoffs")


def test_on_postgresql_its_own_tools_make_backups(tmp_path: Path) -> None:
    variables = {"FENCEPOST_DATABASE_URL": "postgresql://nobody/asks", "FENCEPOST_SECRET_KEY": "0123456789abcdef" * 2}
    for arguments in (["backup"], ["restore", "file"]):
        done = command(tmp_path / "data", *arguments, **variables)
        assert done.returncode == 78
        assert "This is for SQLite. On PostgreSQL use pg_" in done.stderr
