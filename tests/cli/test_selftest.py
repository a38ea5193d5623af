"""`fencepost-server selftest`: every check passes on a sound server, one that is away or wanting is named."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.tree import ROOT
from tests.real.server import RunningServer


def selftest(url: str, folder: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    """The verb in a process of its own."""
    words = [sys.executable, *flags, "-m", "app.cli.main", "selftest", "--against", url]
    env = {"PYTHONPATH": f"{ROOT}:{ROOT / 'client' / 'src'}", "PATH": "/usr/bin:/bin", "HOME": str(folder)}
    return subprocess.run(words, env=env, capture_output=True, text=True, timeout=110, check=False)


@pytest.mark.real
def test_a_sound_server_passes_every_check(tmp_path: Path) -> None:
    with RunningServer() as server:
        done = selftest(server.url, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    names = [line.split()[1].rstrip(":") for line in done.stdout.splitlines()]
    assert names == ["exclusion", "fences", "wake-ups", "once", "handoffs", "limits"]
    assert all(line.startswith("ok ") for line in done.stdout.splitlines())


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
    assert "pip install ./client" in done.stderr
