"""A real server for tests: its own process, port and data folder, and the means to kill it.

The test's process is not patched by gevent; it talks over the network like anybody else.
"""

import http.client
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest

from tests.real.cluster import shared_cluster
from tests.real.ports import free_port

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 30.0
_LINK = "/sign-in#"
_LINK_SECONDS = 3.0
ENGINES = ["sqlite", "postgresql"]
"""For suites that ask the database something."""
MOSTLY_SQLITE = ["sqlite", pytest.param("postgresql", marks=pytest.mark.long)]
"""For suites whose subject lies above the database."""
STOP_SECONDS = 20.0


def children(pid: int) -> list[int]:
    """The processes that this one has started and that still run."""
    listed = Path(f"/proc/{pid}/task/{pid}/children")
    if listed.exists():
        return [int(word) for word in listed.read_text(encoding="ascii").split()]
    found = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False)
    return [int(word) for word in found.stdout.split()]


class RunningServer:
    """`fencepost-server serve` on 127.0.0.1. A context manager that always ends what it started.

    It runs in test mode with its own clock and failpoint files unless `test_mode=False`. `environment` adds
    variables or, with the value None, takes them away. `application` serves another WSGI object under the same server,
    `command` is what serves instead of this checkout.
    """

    def __init__(
        self,
        *,
        environment: Mapping[str, str | None] | None = None,
        data_dir: Path | None = None,
        test_mode: bool = True,
        engine: str = "sqlite",
        application: str | None = None,
        command: Sequence[str] = (sys.executable, "-m", "app.cli.main", "serve"),
        await_path: str = "/healthz",
    ) -> None:
        self._made_folder = None if data_dir else Path(tempfile.mkdtemp(prefix="fencepost-test-"))
        self.folder = data_dir or self._made_folder or Path()
        self.data_dir = self.folder / "data"
        self.clock_file = self.folder / "clock"
        self.failpoints_file = self.folder / "failpoints"
        self.stdout_file = self.folder / "stdout"
        self.stderr_file = self.folder / "stderr"
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._await_path = await_path
        self._is_ours = application is None
        self._command = list(command)
        if application is not None:
            program = (
                "from app.serving.arbiter import serve; from app.serving.prepare import prepared; "
                f"from app.settings import load; serve(prepared(load()), {application!r})"
            )
            self._command = [sys.executable, "-c", program]
        database = {"FENCEPOST_DATABASE_URL": shared_cluster().database()} if engine == "postgresql" else {}
        self.environment = self._variables({**database, **_for(engine), **(environment or {})}, test_mode)
        self.process: subprocess.Popen[bytes] | None = None

    def _variables(self, extra: Mapping[str, str | None], test_mode: bool) -> dict[str, str]:
        variables: dict[str, str | None] = {
            name: value for name, value in os.environ.items() if not name.startswith("FENCEPOST_")
        }
        variables |= {"FENCEPOST_DATA_DIR": str(self.data_dir), "FENCEPOST_BIND": f"127.0.0.1:{self.port}"}
        variables |= {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", "FENCEPOST_WRITE_DEADLINE_SECONDS": "30"}
        if test_mode:
            variables |= {
                "FENCEPOST_TEST_MODE": "1",
                "FENCEPOST_TEST_CLOCK_FILE": str(self.clock_file),
                "FENCEPOST_TEST_FAILPOINTS": str(self.failpoints_file),
            }
        variables |= extra
        return {name: value for name, value in variables.items() if value is not None}

    @property
    def pid(self) -> int:
        """The process that was started: gunicorn's arbiter."""
        assert self.process is not None
        return self.process.pid

    @property
    def worker_pids(self) -> list[int]:
        """The serving processes."""
        return children(self.pid)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(self, *, await_answer: bool = True) -> None:
        """Start it, and wait until it answers."""
        links = self.stdout.count(_LINK) if self.stdout_file.exists() else 0
        with self.stdout_file.open("ab") as out, self.stderr_file.open("ab") as err:
            self.process = subprocess.Popen(
                self._command, cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL, stdout=out, stderr=err
            )
        if await_answer:
            self.await_answer()
            self._await_sign_in_link(links)

    def _await_sign_in_link(self, known: int) -> None:
        """Wait for the write that a start without an operator makes, so that the next commit is the test's own."""
        deadline = time.monotonic() + _LINK_SECONDS
        while self._is_ours and self.stdout.count(_LINK) == known and time.monotonic() < deadline:
            time.sleep(0.02)

    def await_answer(self, seconds: float = START_SECONDS) -> None:
        """Wait until the server answers 200."""
        assert self.process is not None
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise AssertionError(f"the server ended with {self.process.returncode}:\n{self.stderr}")
            if self._answers():
                return
            time.sleep(0.02)
        raise AssertionError(f"the server did not answer in {seconds} s:\n{self.stderr}")

    def _answers(self) -> bool:
        try:
            return self.get(self._await_path)[0] == 200
        except (OSError, http.client.HTTPException):
            return False

    def get(self, path: str, seconds: float = 10.0) -> tuple[int, bytes]:
        """One GET on a connection of its own: status and body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=seconds)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def wait(self, seconds: float = STOP_SECONDS) -> int:
        """Wait for its end: the exit code."""
        assert self.process is not None
        return self.process.wait(seconds)

    def terminate(self, seconds: float = STOP_SECONDS) -> int:
        """SIGTERM, and wait for the end: the exit code."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.wait(seconds)

    def kill9(self) -> None:
        """SIGKILL to the whole tree: as a power cut for processes."""
        assert self.process is not None
        tree = [self.pid, *self.worker_pids]
        for pid in tree:
            _kill(pid)
        self.process.wait(STOP_SECONDS)
        deadline = time.monotonic() + STOP_SECONDS
        while any(_is_alive(pid) for pid in tree[1:]) and time.monotonic() < deadline:
            time.sleep(0.005)

    def restart(self) -> None:
        """Stop it gracefully if it runs, and start it on the same data and port."""
        if self.process is not None and self.process.poll() is None:
            self.terminate()
        self.start()

    def close(self) -> None:
        """End everything that was started here and remove the folder if it was made here."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.kill9()
        if self._made_folder is not None:
            shutil.rmtree(self._made_folder, ignore_errors=True)

    def set_clock(self, seconds: float) -> None:
        """The offset of the deciding clock from now on."""
        _write_whole(self.clock_file, f"{seconds!r}")

    def failpoint(self, *lines: str) -> None:
        """The failpoints from now on: `name action` lines. None clears them."""
        _write_whole(self.failpoints_file, "".join(f"{line}\n" for line in lines))

    @property
    def stdout(self) -> str:
        """What it has written so far: request lines."""
        return self.stdout_file.read_text(encoding="utf-8", errors="replace")

    @property
    def stderr(self) -> str:
        """What it has written so far: everything else."""
        return self.stderr_file.read_text(encoding="utf-8", errors="replace")


def _for(engine: str) -> dict[str, str]:
    if engine == "sqlite":
        return {}
    return {"FENCEPOST_SECRET_KEY": "a-key-of-the-tests-0123456789abcdef", "FENCEPOST_WORKERS": "1"}


AS_SHIPPED = {"FENCEPOST_WRITE_DEADLINE_SECONDS": "3"}
"""For tests of that deadline. The others wait: a disk that other programs use too may take seconds for one commit."""


def _write_whole(file: Path, text: str) -> None:
    """Replace a file in one step, so that the server never reads half of it."""
    beside = file.with_name(file.name + ".new")
    beside.write_text(text, encoding="utf-8")
    beside.replace(file)


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
