"""`make run` as a person or a supervisor meets it: no terminal, PORT and DATA honoured, ended by one SIGTERM.

The Makefile is the project's own; what it would install is replaced by the interpreter of these tests.
"""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from time import monotonic, sleep

import pytest

from tests.house.tree import ROOT
from tests.real.ports import free_port

pytestmark = pytest.mark.real
PATIENCE_SECONDS = 30


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with our Makefile, an installer with nothing to do, and the server of this checkout."""
    shutil.copy(ROOT / "Makefile", tmp_path / "Makefile")
    programs = {
        "scripts/venv": "exit 0",
        ".venv/bin/fencepost-server": f'PYTHONPATH={ROOT} exec {sys.executable} -m app.cli.main "$@"',
    }
    for name, line in programs.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True)
        path.write_text(f"#!/usr/bin/env bash\n{line}\n", encoding="utf-8")
        path.chmod(0o755)
    return tmp_path


class Made:
    """A running `make run`."""

    def __init__(self, checkout: Path, port: int, *arguments: str) -> None:
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("FENCEPOST_", "MAKE"))}
        self.output = checkout / "output"
        self.port = port
        with self.output.open("ab") as output:
            self.running = subprocess.Popen(
                ["make", "run", f"PORT={port}", *arguments],
                cwd=checkout,
                env=clean,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )

    def answers(self) -> bool:
        """Whether the server answers now."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request("GET", "/healthz")
            return connection.getresponse().status == 200
        except (OSError, HTTPException):
            return False
        finally:
            connection.close()

    def await_state(self, *, answering: bool) -> None:
        """Wait until it answers, or does not any more."""
        deadline = monotonic() + PATIENCE_SECONDS
        while self.answers() is not answering:
            assert monotonic() < deadline, self.output.read_text(encoding="utf-8")
            sleep(0.05)


@pytest.fixture
def made(checkout: Path) -> Iterator[Made]:
    """`make run` on a free port with its data in a folder whose name has a blank."""
    running = Made(checkout, free_port(), "DATA=my data")
    try:
        running.await_state(answering=True)
        yield running
    finally:
        running.running.terminate()
        running.running.wait(PATIENCE_SECONDS)
        running.await_state(answering=False)


def test_it_says_where_it_listens_and_where_the_data_is(made: Made, checkout: Path) -> None:
    said = made.output.read_text(encoding="utf-8")
    assert f"http://127.0.0.1:{made.port}" in said
    assert str(checkout / "my data") in said
    assert (checkout / "my data").is_dir()
    assert not (checkout / "data").exists()


def test_sigterm_to_what_was_started_ends_the_server(made: Made) -> None:
    made.running.send_signal(signal.SIGTERM)
    assert made.running.wait(PATIENCE_SECONDS) != 0
    made.await_state(answering=False)


def test_it_starts_again_on_the_same_data(made: Made, checkout: Path) -> None:
    made.running.terminate()
    made.running.wait(PATIENCE_SECONDS)
    made.await_state(answering=False)
    again = Made(checkout, made.port, "DATA=my data")
    try:
        again.await_state(answering=True)
    finally:
        again.running.terminate()
        again.running.wait(PATIENCE_SECONDS)


def test_a_variable_that_nobody_knows_stops_the_start(checkout: Path) -> None:
    running = Made(checkout, free_port(), "FENCEPOST_TYPO=1")
    assert running.running.wait(PATIENCE_SECONDS) != 0
    assert "FENCEPOST_TYPO" in running.output.read_text(encoding="utf-8")
