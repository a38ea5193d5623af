"""A gunicorn process with the gevent worker around tests/web/stream_app.py, on a real port."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any, Self

ROOT = Path(__file__).resolve().parents[2]


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class StreamServer:
    """Use it as a context manager. Keyword arguments set `Pace`."""

    def __init__(self, *, seats: int = 20000, **pace: float) -> None:
        self.port = free_port()
        self.log = ""
        environment = {**os.environ, "FENCEPOST_TEST_PACE": json.dumps(pace), "TEST_SEATS": str(seats)}
        command = [sys.executable, "-m", "gunicorn", "tests.web.stream_app:application", "-k", "gevent"]
        options = ["-b", f"127.0.0.1:{self.port}", "--worker-connections", "20000", "--backlog", "2048"]
        self._process = subprocess.Popen(
            [*command, *options, "--no-control-socket"],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
            text=True,
        )

    def __enter__(self) -> Self:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}/test/tick", timeout=5).read()
                return self
            except OSError:
                assert self._process.poll() is None, self._process.communicate()[1]
                time.sleep(0.05)
        raise AssertionError("the server did not come up")

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)
        self.log = self._process.communicate()[1]
        assert "Traceback" not in self.log, self.log[-4000:]

    def post(self, path: str, **members: Any) -> Any:
        """Tell the process something."""
        body = json.dumps(members).encode()
        asked = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/test/{path}", body, {"Content-Type": "application/json"}
        )
        return json.loads(urllib.request.urlopen(asked, timeout=30).read())

    def make(self, count: int = 1, **members: Any) -> list[str]:
        """New handoffs."""
        ids: list[str] = self.post("handoff", count=count, **members)
        return ids

    def counts(self) -> dict[str, int]:
        """Descriptors, greenlets and the like."""
        counted: dict[str, int] = json.loads(
            urllib.request.urlopen(f"http://127.0.0.1:{self.port}/test/counts", timeout=30).read()
        )
        return counted
