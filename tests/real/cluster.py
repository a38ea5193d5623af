"""A PostgreSQL cluster of the tests' own: made once for a run, a fresh database for whoever asks, gone at the end."""

import atexit
import os
import pwd
import shutil
import subprocess
import tempfile
import time
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

from tests.real.ports import free_port

_START_SECONDS = 30.0


def programs() -> Path:
    """The folder of initdb and postgres, the newest release of those installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda folder: int(folder.parent.name))
    if found:
        return found[-1]
    beside = shutil.which("initdb")
    if beside is None:
        raise RuntimeError("PostgreSQL is not installed: apt-get install postgresql")
    return Path(beside).parent


class Cluster:
    """A running server of its own data folder, on 127.0.0.1 and a free port."""

    def __init__(self, **parameters: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="fencepost-pg-"))
        self.port = free_port()
        self._names = count(1)
        self._owner = pwd.getpwnam("postgres") if os.geteuid() == 0 else None
        if self._owner is not None:
            os.chown(self.folder, self._owner.pw_uid, self._owner.pw_gid)
        self._run("initdb", "-D", str(self.data), "-U", "postgres", "-A", "trust", "--no-sync", "-E", "UTF8")
        self._parameters = {"max_connections": "200", "shared_buffers": "32MB", **parameters}
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def data(self) -> Path:
        """The cluster's data folder."""
        return self.folder / "data"

    def url(self, database: str = "postgres") -> str:
        """How to connect."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        """Start the server and wait until it takes connections."""
        settings = {
            "port": str(self.port),
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": str(self.folder),
        }
        options = [
            part for name, value in {**settings, **self._parameters}.items() for part in ("-c", f"{name}={value}")
        ]
        log = (self.folder / "log").open("ab")
        self.process = subprocess.Popen(
            [str(programs() / "postgres"), "-D", str(self.data), *options], stdout=log, stderr=log, **self._as_owner()
        )
        log.close()
        deadline = time.monotonic() + _START_SECONDS
        while self._run("pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port), check=False) != 0:
            assert self.process.poll() is None, (self.folder / "log").read_text()
            assert time.monotonic() < deadline, "PostgreSQL did not start"
            time.sleep(0.05)

    def stop(self, *, immediate: bool = False) -> None:
        """Stop it: fast, or as a crash does."""
        if self.process is not None:
            self.process.send_signal(3 if immediate else 2)
            self.process.wait(60)
            self.process = None

    def close(self) -> None:
        """Stop it and remove everything."""
        self.stop(immediate=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    def standby(self) -> "Cluster":
        """A copy that follows this one once it is started; until then it knows nothing of what is written here."""
        copy = object.__new__(Cluster)
        copy.folder = Path(tempfile.mkdtemp(prefix="fencepost-pg-"))
        copy.port, copy._names, copy._owner, copy.process = free_port(), count(1), self._owner, None
        copy._parameters = dict(self._parameters)
        if self._owner is not None:
            os.chown(copy.folder, self._owner.pw_uid, self._owner.pw_gid)
        self._run("pg_basebackup", "-D", str(copy.data), "-R", "-X", "stream", "-c", "fast", "-d", self.url())
        return copy

    def promote(self) -> None:
        """Make a standby the primary."""
        self._run("pg_ctl", "promote", "-D", str(self.data), "-w")

    def database(self) -> str:
        """The URL of a new empty database."""
        name = f"test{next(self._names)}"
        self._run("createdb", "-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres", name)
        return self.url(name)

    def _run(self, program: str, *arguments: str, check: bool = True) -> int:
        done = subprocess.run(
            [str(programs() / program), *arguments], capture_output=True, text=True, check=False, **self._as_owner()
        )
        assert done.returncode == 0 or not check, done.stderr
        return done.returncode

    def _as_owner(self) -> dict[str, Any]:
        """PostgreSQL refuses to run as root."""
        return {} if self._owner is None else {"user": self._owner.pw_uid, "group": self._owner.pw_gid}


@cache
def shared_cluster() -> Cluster:
    """The cluster of this test process, started at the first use and ended with the process."""
    cluster = Cluster()
    atexit.register(cluster.close)
    return cluster


def lasting_processes() -> set[int]:
    """The shared cluster's process, if it runs: whichever test came first started it for all."""
    if not shared_cluster.cache_info().currsize:
        return set()
    process = shared_cluster().process
    return set() if process is None else {process.pid}
