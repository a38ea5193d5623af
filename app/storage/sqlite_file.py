"""The database file: whose it is, where it may lie, and how a connection to it is set up.

One process holds the file, by an exclusive lock on a lock file beside it; the system lets go of that when the
process ends, however it ends. The database file itself is never opened here: closing any descriptor of it would
drop the locks that SQLite holds in this process. A network file system is refused, because WAL needs memory
shared on one host and locks that are honest.
"""

import fcntl
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

from gevent import monkey

from app.clock import monotonic
from app.settings import StartRefused

_REMOTE = {
    "9p", "afs", "beegfs", "ceph", "cifs", "coda", "gfs2", "glusterfs", "gpfs", "lustre", "ncpfs", "nfs", "nfs4",
    "ocfs2", "orangefs", "smb2", "smb3", "smbfs",
}  # fmt: skip
_MOUNTS = Path("/proc/self/mounts")
_POLL_SECONDS = 0.05

native_sleep: Callable[[float], None] = monkey.get_original("time", "sleep")

JOURNAL_LIMIT = 16 * 1024 * 1024
CHECKPOINT_PAGES = 4000


class DatabaseRefused(StartRefused):
    """The file cannot be served; the message says why and what to do."""


class FileLock:
    """Held by the one process that serves the file."""

    def __init__(self, database: Path, *, wait_seconds: float = 0.0) -> None:
        self._file = database.with_name(database.name + ".lock")
        try:
            self._descriptor = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except PermissionError:
            raise DatabaseRefused(
                f"{self._file} cannot be written by this user: give the data folder to it, with all that is in it."
            ) from None
        deadline = monotonic() + wait_seconds
        while not self._try():
            if monotonic() >= deadline:
                holder = self._read().partition(" ")[0] or "unknown"
                os.close(self._descriptor)
                raise DatabaseRefused(
                    f"Another process (pid {holder}) serves {database}, and a SQLite database has one server "
                    "process: stop that one, choose another data folder, or use PostgreSQL."
                )
            native_sleep(_POLL_SECONDS)
        self.note = self._read().partition(" ")[2]
        """What stands in the lock file beside the holder: what the last one wanted the next to know."""
        self.write(self.note)

    def write(self, note: str) -> None:
        """Leave a note for the next holder."""
        text = f"{os.getpid()} {note}".encode("ascii")
        os.pwrite(self._descriptor, text, 0)
        os.ftruncate(self._descriptor, len(text))
        os.fsync(self._descriptor)
        self.note = note

    def _read(self) -> str:
        return os.pread(self._descriptor, 200, 0).decode("ascii", "replace").strip()

    def _try(self) -> bool:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def release(self) -> None:
        """Let another process have the file. The lock file stays: unlinking it would let two processes in."""
        os.close(self._descriptor)


def refuse_network_filesystem(folder: Path, mounts: Path = _MOUNTS) -> None:
    """Raise DatabaseRefused when `folder` lies on a file system of another host."""
    kind = filesystem_of(folder, mounts)
    if kind in _REMOTE or kind == "fuse" or kind.startswith("fuse."):
        raise DatabaseRefused(
            f"{folder} is on a network file system ({kind}), where SQLite cannot keep a commit safe: "
            "choose a folder on a local disk, or use PostgreSQL."
        )


def filesystem_of(folder: Path, mounts: Path = _MOUNTS) -> str:
    """The type of the file system that holds `folder`; empty where the system does not say."""
    if not mounts.exists():
        return ""
    folder = folder.resolve()
    found, deepest = "", -1
    for line in mounts.read_text(encoding="utf-8", errors="surrogateescape").splitlines():
        _, point, kind, *_ = line.split(" ")
        place = Path(point.encode("utf-8", "surrogateescape").decode("unicode_escape"))
        depth = len(place.parts)
        if depth >= deepest and (place == folder or place in folder.parents):
            found, deepest = kind, depth
    return found


def connect_writer(database: Path) -> sqlite3.Connection:
    """The one connection that writes and checkpoints, with its durability read back."""
    connection = _connect(database)
    _expect(connection, "PRAGMA journal_mode = WAL", "PRAGMA journal_mode", "wal")
    _expect(connection, "PRAGMA synchronous = FULL", "PRAGMA synchronous", 2)
    connection.execute("PRAGMA fullfsync = ON")
    connection.execute("PRAGMA checkpoint_fullfsync = ON")
    connection.execute(f"PRAGMA journal_size_limit = {JOURNAL_LIMIT}")
    connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
    connection.execute("PRAGMA cache_size = -32768")
    return connection


def connect_reader(database: Path) -> sqlite3.Connection:
    """A connection that neither writes nor checkpoints."""
    connection = _connect(database)
    _expect(connection, "PRAGMA wal_autocheckpoint = 0", "PRAGMA wal_autocheckpoint", 0)
    _expect(connection, "PRAGMA query_only = ON", "PRAGMA query_only", 1)
    return connection


def _connect(database: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(
        database, timeout=1.0, isolation_level=None, check_same_thread=False, cached_statements=512
    )
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.execute("PRAGMA trusted_schema = OFF")
    return connection


def _expect(connection: sqlite3.Connection, order: str, question: str, answer: object) -> None:
    connection.execute(order).fetchall()
    ((got,),) = connection.execute(question).fetchall()
    if got != answer:
        raise DatabaseRefused(f"SQLite did not obey {order!r}: it answers {got!r}")


def sync_folder(folder: Path) -> None:
    """Make a rename in this folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
