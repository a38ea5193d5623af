"""`fencepost-server selftest`: every check passes on a sound server, one that is away or wanting is named."""

import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from tests.house.tree import ROOT
from tests.real.server import ENGINES, RunningServer


def selftest(url: str, folder: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    """The verb in a process of its own."""
    words = [sys.executable, *flags, "-m", "app.cli.main", "selftest", "--against", url]
    env = {"PYTHONPATH": f"{ROOT}:{ROOT / 'client' / 'src'}", "PATH": "/usr/bin:/bin", "HOME": str(folder)}
    return subprocess.run(words, env=env, capture_output=True, text=True, timeout=110, check=False)


@pytest.mark.real
@pytest.mark.parametrize("engine", ENGINES)
def test_a_sound_server_passes_every_check(engine: str, tmp_path: Path) -> None:
    with RunningServer(engine=engine) as server:
        done = selftest(server.url, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    names = [line.split()[1].rstrip(":") for line in done.stdout.splitlines()]
    assert names == ["exclusion", "fences", "wake-ups", "once", "handoffs", "limits"]
    assert all(line.startswith("ok ") for line in done.stdout.splitlines())


@pytest.mark.real
@pytest.mark.parametrize("broken", ["exclusion", "fences", "wake-ups", "once"])
def test_a_broken_promise_is_named(broken: str, tmp_path: Path) -> None:
    with RunningServer(environment={"BROKEN": broken}, application="tests.cli.broken_app:application") as server:
        done = selftest(server.url, tmp_path)
    assert done.returncode == 1, done.stdout
    assert f"FAILED  {broken}: " in done.stdout
    assert "ok      limits: " in done.stdout


@pytest.mark.real
def test_it_leaves_nothing_that_counts(tmp_path: Path) -> None:
    with RunningServer() as server:
        assert selftest(server.url, tmp_path).returncode == 0
        assert server.terminate() == 0
        in_a_minute = (time.time() + 61) * 1_000_000
        with closing(sqlite3.connect(server.data_dir / "fencepost.db")) as database:
            left = [
                database.execute(f"SELECT count(*) FROM {table} WHERE {lives}", (in_a_minute,)).fetchone()[0]
                for table, lives in (
                    ("lease", "owner_hash IS NOT NULL AND lease_expires_at > ?"),
                    ("claim", "expires_at > ?"),
                    ("handoff", "expires_at > ?"),
                )
            ]
    assert left == [0, 0, 0]


@pytest.mark.real
def test_a_server_that_refuses_is_told_by_the_checks_that_it_fails(tmp_path: Path) -> None:
    with RunningServer(environment={"FENCEPOST_LIMITS": "on", "FENCEPOST_LIMIT_REQUESTS_PER_DAY": "5"}) as server:
        done = selftest(server.url, tmp_path)
    assert done.returncode == 1, done.stdout
    assert "FAILED  handoffs: The daily limit" in done.stdout


def test_without_the_client_it_says_how_to_install_it(tmp_path: Path) -> None:
    (tmp_path / "fencepost.py").write_text("raise ImportError\n", encoding="utf-8")
    words = [sys.executable, "-m", "app.cli.main", "selftest", "--against", "http://127.0.0.1:1"]
    env = {"PYTHONPATH": f"{tmp_path}:{ROOT}", "PATH": "/usr/bin:/bin"}
    done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 78
    assert f"{sys.executable} -m pip install ./client" in done.stderr
