"""The embedded engine: one process, one file, one writer.

The writer and the readers are native threads of this engine, not of gevent's pool (which also resolves names), so
a stuck disk stops nothing but the callers that wait for it, and those only until their deadline. Only the writer's
connection writes and checkpoints, and it closes last: SQLite before 3.51.3 can damage a log that two connections
write and checkpoint at once.
"""

import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Protocol, TypeVar

from app.clock import Clock
from app.spread import Spread
from app.storage import meta, sqlite_custody
from app.storage.engine import Reader, Transaction
from app.storage.lane import Lane, start_thread
from app.storage.migrate import migrate, sqlite_engine
from app.storage.sqlite_file import FileLock, connect_reader, connect_writer, refuse_network_filesystem, sync_folder
from app.storage.sqlite_reads import serve_reads
from app.storage.sqlite_writer import LARGE_WAL, CopyBroken, Work, Writer
from app.testmode import Failpoints
from app.tokens import random_bytes

T = TypeVar("T")

_CLOSE_SECONDS = 10.0
_COPY_SECONDS = 24 * 3600.0


class BeginningClock(Clock, Protocol):
    """A clock that can be told the largest instant ever committed."""

    def begin_at_least(self, instant: int) -> None:
        """Never answer less than `instant` from now on."""
        ...


def _ignore(reason: str) -> None:
    """What happens after a fatal error when nobody asked: the engine refuses, and its report says why."""


class SqliteEngine:
    """The Engine of the port, on one SQLite file.

    `on_commit(topics)` is called on the caller's event loop after the commit and before the callers are resumed; it
    must not block. `on_fatal(reason)` is called on the writer's thread when the file cannot be trusted any more: the
    process should end and be started again. `lock_wait_seconds`: how long to wait for another process to let go
    of the file, as in a rolling restart. Failpoints pause on the writer's thread: give them an unpatched sleep.
    Raises DatabaseRefused and SchemaTooNew.
    """

    def __init__(
        self,
        path: Path,
        *,
        clock: BeginningClock,
        failpoints: Failpoints | None = None,
        on_commit: Callable[[list[str]], None] | None = None,
        on_fatal: Callable[[str], None] = _ignore,
        write_deadline_seconds: float = 3.0,
        read_deadline_seconds: float = 3.0,
        readers: int = 2,
        lock_wait_seconds: float = 0.0,
    ) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        refuse_network_filesystem(path.parent)
        self._path = path
        self._lock = FileLock(path, wait_seconds=lock_wait_seconds)
        try:
            sqlite_custody.inspect(path, self._lock.note)
            connection = _opened(path, self._lock, clock)
        except BaseException:
            self._lock.release()
            raise
        self._writes: Lane[Work] = Lane("writer", deadline_seconds=write_deadline_seconds, on_commit=on_commit)
        self._reads: Lane[object] = Lane("readers", deadline_seconds=read_deadline_seconds, threads=readers)
        self._readers = readers
        self._is_closed = False
        self._writer = Writer(
            self._writes,
            connection,
            path.with_name(path.name + "-wal"),
            clock,
            failpoints or Failpoints(),
            on_fatal,
        )
        start_thread(self._writer.serve, ())
        for thread in range(readers):
            start_thread(serve_reads, (self._reads, thread, connect_reader(path), clock))

    def run(self, operation: Callable[[Transaction], T], *, urgent: bool = False) -> T:
        """As the port says."""
        value: T = self._writes.ask(operation, urgent=urgent)
        return value

    def read(self, query: Callable[[Reader], T]) -> T:
        """As the port says."""
        value: T = self._reads.ask(query)
        return value

    @property
    def spreads(self) -> Mapping[str, Spread]:
        """As the port says."""
        return self._writer.spreads

    def report(self) -> dict[str, object]:
        """As the port says."""
        return {
            "engine": "sqlite",
            "version": sqlite3.sqlite_version,
            "durability": "WAL, synchronous=FULL",
            "queued": self._writes.queued,
            "reads_queued": self._reads.queued,
            **asdict(self._writer.figures),
            "problems": self._problems(),
        }

    def backup(self, target: Path) -> None:
        """Write a consistent copy to `target`, a file that is not there yet. Requests are served meanwhile.

        The copy stands under another name until it is whole and synced, and says of itself that it is a backup. Raises
        FileExistsError, another OSError, or Unavailable.
        """
        if target.exists():
            raise FileExistsError(f"{target} is there already")
        part = target.with_name(target.name + ".part")
        part.unlink(missing_ok=True)
        try:
            self._writes.ask_apart(lambda transaction: self._writer.copy(part), _COPY_SECONDS)
        except (sqlite3.Error, CopyBroken) as fault:
            part.unlink(missing_ok=True)
            raise OSError(f"SQLite: {fault}") from fault
        part.chmod(0o600)
        part.rename(target)
        sync_folder(target.parent)

    def close(self) -> None:
        """As the port says. The readers close first, the writer last. Twice is once.

        Raises Unavailable when a thread is stuck on the disk; the file then stays locked until the process ends.
        """
        if self._is_closed:
            return
        self._is_closed = True
        for lane in (self._reads, self._writes):
            lane.refusal = lane.refusal or "the store is closing"
        for _ in range(self._readers):
            self._reads.ask_apart(None, _CLOSE_SECONDS)
        self._writes.ask_apart(self._writer.close, _CLOSE_SECONDS)
        self._lock.release()

    def _problems(self) -> list[str]:
        problems = [f"{lane.name} stuck" for lane in (self._writes, self._reads) if lane.is_stuck]
        if self._writer.broken is not None:
            problems.append(self._writer.broken)
        if self._writer.figures.wal_bytes > LARGE_WAL:
            problems.append(f"the write-ahead log has {self._writer.figures.wal_bytes} bytes: a reader holds it")
        return problems


def _opened(path: Path, lock: FileLock, clock: BeginningClock) -> sqlite3.Connection:
    """The writer's connection to a file that is migrated and marked as served."""
    connection = connect_writer(path)
    try:
        path.chmod(0o600)
        migrate(sqlite_engine(path))
        _begin(connection, clock)
        sqlite_custody.take(connection, lock)
    except BaseException:
        sqlite_custody.leave(connection)
        connection.close()
        raise
    return connection


def _begin(connection: sqlite3.Connection, clock: BeginningClock) -> None:
    """Give a new database its numbers, and the clock its lower end."""
    fresh = {
        meta.EPOCH: 0,
        meta.FENCE_COUNT: 0,
        meta.CLOCK_MARK: clock.now(),
        meta.IDENTITY: int.from_bytes(random_bytes(8), "big") >> 1,
    }
    connection.execute("BEGIN IMMEDIATE")
    known = dict(connection.execute(meta.numbers.text("sqlite")).fetchall())
    put = meta.put.compiled("sqlite")
    for name, number in fresh.items():
        if name not in known:
            connection.execute(put.text, put.positional({"named": name, "value": number}))
    connection.execute("COMMIT")
    clock.begin_at_least(known.get(meta.CLOCK_MARK, 0))
