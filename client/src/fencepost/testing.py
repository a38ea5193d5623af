"""A real server for your own tests: `with fencepost.testing.server() as url:`.

It is `fencepost-server` itself, in a process of its own on a free port with a folder that is removed at the end. An
imitation in memory would be quicker by half a second and would answer differently in the very corners that tests are
for: expiry to the microsecond, the order of waiters, what a repeat is told. So the server must be installed beside the
client (`pip install fencepost-server`, or FENCEPOST_SERVER names its program).
"""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

_START_SECONDS = 30.0
_STOP_SECONDS = 20.0


class ServerMissing(RuntimeError):
    """fencepost-server is not installed, or did not start; the sentence says which."""


@contextlib.contextmanager
def server(**settings: str) -> Iterator[str]:
    """The URL of a server that runs while the block does. `settings` are FENCEPOST_* variables without the prefix.

    Raises ServerMissing.
    """
    folder = Path(tempfile.mkdtemp(prefix="fencepost-testing-"))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FENCEPOST_")}
    given = {f"FENCEPOST_{name.upper()}": value for name, value in settings.items()}
    places = {"FENCEPOST_DATA_DIR": str(folder / "data"), "FENCEPOST_BIND": f"127.0.0.1:{port}"}
    with (folder / "log").open("wb") as log:
        running = subprocess.Popen(
            [_program(), "serve"],
            env=kept | places | given,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        _await(running, f"http://127.0.0.1:{port}", folder / "log")
        yield f"http://127.0.0.1:{port}"
    finally:
        _stop(running)
        shutil.rmtree(folder, ignore_errors=True)


def _program() -> str:
    beside = Path(sys.executable).parent / "fencepost-server"
    found = os.environ.get("FENCEPOST_SERVER") or (str(beside) if beside.exists() else shutil.which("fencepost-server"))
    if found is None:
        raise ServerMissing("fencepost-server is not installed here: pip install fencepost-server")
    return found


def _await(running: "subprocess.Popen[bytes]", url: str, log: Path) -> None:
    give_up_at = time.monotonic() + _START_SECONDS
    while time.monotonic() < give_up_at:
        if running.poll() is not None:
            break
        try:
            with urllib.request.urlopen(f"{url}/healthz", timeout=2):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.05)
    raise ServerMissing(f"fencepost-server did not start: {log.read_text(encoding='utf-8', errors='replace')[-2000:]}")


def _stop(running: "subprocess.Popen[bytes]") -> None:
    if running.poll() is None:
        running.send_signal(signal.SIGTERM)
        try:
            running.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            running.kill()
    running.wait()
