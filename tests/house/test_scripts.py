"""What installs: nothing is fetched when nothing changed, and what is missing is said, never skipped."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.house.tree import ROOT, plant

TOOLS = ("bash", "cat", "cksum", "dirname", "env", "grep", "mktemp", "rm", "uname", "chmod", "touch", "id", "mkdir")


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A folder of programs with the most common ones and nothing else: the whole PATH of a bare machine."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for tool in TOOLS:
        found = shutil.which(tool)
        assert found is not None
        (folder / tool).symlink_to(found)
    return folder


def program(folder: Path, name: str, script: str) -> None:
    """Put a program of our own among them."""
    path = folder / name
    path.unlink(missing_ok=True)
    path.write_text(f"#!{shutil.which('bash')}\n{script}\n", encoding="utf-8")
    path.chmod(0o755)


def call(command: list[str], path: Path, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run it with this PATH only."""
    environment = {"PATH": str(path), "HOME": str(folder), "LC_ALL": "C"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


NEED = str(ROOT / "scripts/need")


def test_what_is_there_is_not_installed(bare: Path) -> None:
    program(bare, "wrk", "exit 9")
    assert call([NEED, "wrk"], bare).returncode == 0


def test_without_root_the_exact_command_is_printed_and_the_run_fails(bare: Path) -> None:
    program(bare, "apt-get", "exit 9")
    program(bare, "id", "echo 1000")
    done = call([NEED, "wrk", "sox"], bare)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "Missing: wrk sox. Install with:\n    sudo apt-get install wrk sox\nand run this again.\n"


def test_on_a_mac_it_is_homebrew(bare: Path) -> None:
    program(bare, "uname", "echo Darwin")
    done = call([NEED, "wrk"], bare)
    assert (done.returncode, "    brew install wrk\n" in done.stderr) == (1, True)


def test_root_installs_with_apt_and_says_so(bare: Path, tmp_path: Path) -> None:
    program(bare, "id", "echo 0")
    program(
        bare, "apt-get", f'echo "$@" >>{tmp_path}/calls; [ "$1" = update ] || touch {bare}/wrk; chmod 755 {bare}/* '
    )
    done = call([NEED, "wrk"], bare)
    assert (done.returncode, done.stderr) == (0, "Installing with apt: wrk\n")
    assert (tmp_path / "calls").read_text() == "update\ninstall --yes --no-install-recommends wrk\n"


def test_an_install_that_failed_fails_the_run_and_shows_why(bare: Path) -> None:
    program(bare, "id", "echo 0")
    program(bare, "apt-get", "echo E: no such package; exit 100")
    done = call([NEED, "wrk"], bare)
    assert (done.returncode, "E: no such package" in done.stderr) == (1, True)


def test_an_install_that_brought_nothing_fails_the_run(bare: Path) -> None:
    program(bare, "id", "echo 0")
    program(bare, "apt-get", "exit 0")
    assert call([NEED, "wrk"], bare).returncode == 1


@pytest.fixture
def checkout(tmp_path: Path, bare: Path) -> Path:
    """A small project whose pip and python only write down what they were asked."""
    folder = tmp_path / "project"
    plant(folder, {"requirements/run.txt": "flask==3 \\\n", "pyproject.toml": "[project]\n", "setup.py": ""})
    (folder / "scripts").mkdir()
    shutil.copy(ROOT / "scripts/venv", folder / "scripts/venv")
    python = f"""
case "$*" in
    "-c "*|--version) exit 0 ;;
    "-m venv .venv") mkdir -p .venv/bin; cat "$0" >.venv/bin/python; chmod 755 .venv/bin/python ;;
    *) echo "$*" >>{tmp_path}/calls ;;
esac"""
    program(bare, "python3", python)
    return folder


def test_the_second_start_installs_nothing_and_a_new_lock_does(checkout: Path, bare: Path, tmp_path: Path) -> None:
    calls = tmp_path / "calls"

    def installs() -> list[str]:
        before = calls.read_text().splitlines() if calls.exists() else []
        assert call(["bash", "scripts/venv", "run"], bare, checkout).returncode == 0
        return calls.read_text().splitlines()[len(before) :]

    first = installs()
    assert first[0] == "-m pip install -qq --require-hashes --requirement requirements/run.txt"
    assert len(first) == 2
    assert installs() == []
    plant(checkout, {"requirements/run.txt": "flask==4 \\\n"})
    assert len(installs()) == 2
    assert installs() == []


def test_a_moved_checkout_gets_a_new_environment(checkout: Path, bare: Path, tmp_path: Path) -> None:
    assert call(["bash", "scripts/venv", "run"], bare, checkout).returncode == 0
    moved = tmp_path / "moved"
    checkout.rename(moved)
    done = call(["bash", "scripts/venv", "run"], bare, moved)
    assert (done.returncode, "Making the virtual environment" in done.stderr) == (0, True)


def test_without_python_the_start_says_what_to_install(checkout: Path, bare: Path) -> None:
    program(bare, "python3", "exit 1")
    done = call(["bash", "scripts/venv", "run"], bare, checkout)
    assert (done.returncode, "needs Python 3.11" in done.stderr) == (1, True)


def test_every_script_can_be_executed() -> None:
    assert [path.name for path in (ROOT / "scripts").iterdir() if not os.access(path, os.X_OK)] == []
    assert os.access(ROOT / ".ci/run", os.X_OK)
