"""Is this the file that was left here, whole? Looked at before anybody writes to it, and a mark set while it is served.

The database and its log belong together, and SQLite takes what it finds: without the log it serves the state of the
last checkpoint, with the log of another day it mixes two states, and a log that was cut it reads up to the cut. Each
would hand out fences a second time. So while the file is served it carries marks, in the database proper as well as in
the log:

    start:  check -> session = a new number, state = open -> checkpoint -> settled -> serve
    stop:   state = closed -> checkpoint -> the log is gone

What must be so at a start, L is what one sees with the log and M without it:

1. M open: there is a log. (A bare copy of a served file has none.)
2. L has M's session, or began its session on top of M's and did nothing since. (Else log and file are of two kinds.)
3. L's marks (fences, clock) are not below M's. (Else the log is older than the file.)
4. The log is no shorter, and not of an earlier round, than the index of it that the last process left (`-shm`); that
   index is written after the log's sync, so it never runs ahead of it. (Else the log was cut, or a byte flipped in it.)
5. The folder's note (in the lock file) names L's session or the one before. (Else an older copy was put in place.)
6. The pages fit each other, as far as a second is enough to look.

Not found: a byte that flipped inside a stored value, for SQLite keeps no checksums of pages; a log that is cut where
the index is missing too; a file and a log of one session of which only the file is older. A backup has a checksum
beside it.
"""

import logging
import sqlite3
import struct
from dataclasses import dataclass
from pathlib import Path

from app.clock import monotonic
from app.storage import meta
from app.storage.sqlite_file import DatabaseRefused, FileLock
from app.tokens import random_bytes

_log = logging.getLogger("fencepost.storage")

CLOSED, OPEN, BACKUP = range(3)
_LOOK_SECONDS = 1.0
_LOG_HEAD_BYTES, _FRAME_HEAD_BYTES = 32, 24
_STEPS_BETWEEN_LOOKS = 20_000
_DISK = {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN}
_WAY_OUT = (
    "Nothing was changed. Restore a backup (`fencepost-server restore`), or, if you know that nothing is missing, move "
    "the file elsewhere and take it in with `fencepost-server restore --without-log`."
)


@dataclass(frozen=True, slots=True)
class LogIndex:
    """What a process left of its view of the log: how many pages of which round, told by its salts."""

    frames: int
    salts: bytes
    page_bytes: int


def inspect(database: Path, note: str) -> None:
    """Look at the file and its log and change neither; `note` is what the lock file said. Raises DatabaseRefused."""
    log = database.with_name(database.name + "-wal")
    if not database.exists():
        if log.exists() and log.stat().st_size:
            raise _refused(f"{log} is the log of a database that is missing.")
        return
    bare = _numbers_without_log(database, has_log=log.exists())
    if bare.get(meta.STATE) == OPEN and not log.exists():
        raise _refused(
            f"{database} was being served when it was copied or left, and its log {log.name} is missing, and with it "
            "what was answered last."
        )
    left, index_file = _index(log), _index_file(log)
    _compare_rounds(log, left)
    _compare_size(log, left)
    evidence = index_file.read_bytes() if index_file.exists() else b""
    try:
        _look_inside(database, log, left, bare, note)
    except DatabaseRefused:
        if evidence:
            index_file.write_bytes(evidence)  # looking made a new one, which agrees with whatever the log is now
        raise


def _look_inside(database: Path, log: Path, left: LogIndex | None, bare: dict[str, int], note: str) -> None:
    mode = "mode=ro" if log.exists() else "mode=ro&immutable=1"  # the latter leaves no empty log behind
    connection = sqlite3.connect(f"{database.absolute().as_uri()}?{mode}", uri=True, isolation_level=None)
    try:
        whole = numbers_of(connection)
        _compare_length(log, left, _index(log))
        _compare_numbers(database, bare, whole, note)
        _look_at_pages(connection, database)
    except sqlite3.DatabaseError as fault:
        if getattr(fault, "sqlite_errorcode", 0) & 0xFF in _DISK:
            raise DatabaseRefused(
                f"{database} cannot be looked at ({fault}): its disk is full or failing. Nothing was changed. "
                "Make room or repair the disk, and start again."
            ) from fault
        raise _refused(f"{database} is damaged ({fault}).") from fault
    finally:
        connection.close()


def take(connection: sqlite3.Connection, lock: FileLock) -> None:
    """Mark the file as served, in the database proper, before anything else is written. A backup gets a new epoch."""
    known = numbers_of(connection)
    session = int.from_bytes(random_bytes(8), "big") >> 1
    epoch = known.get(meta.EPOCH, 0)
    if known.get(meta.STATE) == BACKUP:
        epoch = max(epoch, noted(lock.note)[1]) + 1
        _log.warning("this is a backup put in place by hand: fences go on in epoch %d", epoch)
    marks = {meta.SESSION: session, meta.BEFORE: known.get(meta.SESSION, 0), meta.SETTLED: 0}
    _write(connection, {meta.EPOCH: epoch, meta.STATE: OPEN, **marks})
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    _write(connection, {meta.SETTLED: 1})
    lock.write(f"{session} {epoch}")


def leave(connection: sqlite3.Connection) -> None:
    """Mark the file as whole without its log, and empty the log. The caller closes the connection next."""
    if meta.STATE in numbers_of(connection):
        _write(connection, {meta.STATE: CLOSED})
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def mark_as_backup(connection: sqlite3.Connection) -> None:
    """Say in a copy that it is one, and make it a single file."""
    connection.execute("PRAGMA journal_mode = DELETE").fetchall()
    _write(connection, {meta.STATE: BACKUP})


def mark_as_restored(connection: sqlite3.Connection, session: int, epoch: int) -> None:
    """Say in a file that it is whole, whose it is now, and where its fences go on."""
    marks = {meta.SESSION: session, meta.BEFORE: 0, meta.SETTLED: 1, meta.STATE: CLOSED}
    _write(connection, {meta.EPOCH: epoch, meta.FENCE_COUNT: 0, **marks})


def noted(note: str) -> tuple[int | None, int]:
    """The session and the epoch that the lock file of a folder names; None and 0 where it names none."""
    words = note.split()
    if len(words) == 2 and all(word.isdecimal() for word in words):
        return int(words[0]), int(words[1])
    return None, 0


def _refused(what: str) -> DatabaseRefused:
    return DatabaseRefused(f"{what} {_WAY_OUT}")


def numbers_of(connection: sqlite3.Connection) -> dict[str, int]:
    """What the store knows of itself; empty in a database without the table."""
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone() is None:
        return {}
    return dict(connection.execute(meta.numbers.text("sqlite")).fetchall())


def _write(connection: sqlite3.Connection, numbers: dict[str, int]) -> None:
    connection.execute("BEGIN IMMEDIATE")
    for name, number in numbers.items():
        connection.execute("INSERT OR REPLACE INTO meta (name, number) VALUES (?, ?)", (name, number))
    connection.execute("COMMIT")


def _numbers_without_log(database: Path, *, has_log: bool) -> dict[str, int]:
    """The marks in the database proper. Where there is a log it may have to mend what cannot be read without it."""
    connection = sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
    try:
        return numbers_of(connection)
    except sqlite3.DatabaseError as fault:
        if not has_log:
            raise _refused(f"{database} is damaged ({fault}).") from fault
        return {}
    finally:
        connection.close()


def _index_file(log: Path) -> Path:
    return log.with_name(log.name.removesuffix("-wal") + "-shm")


def _index(log: Path) -> LogIndex | None:
    """What `-shm` says of the log, None where it says nothing whole."""
    file = _index_file(log)
    head = file.read_bytes()[:96] if file.exists() else b""
    if len(head) < 96 or head[:48] != head[48:] or not head[12]:
        return None
    page_bytes, frames = struct.unpack_from("=HI", head, 14)
    return LogIndex(frames, head[32:40], 65536 if page_bytes == 1 else page_bytes)


def _compare_size(log: Path, left: LogIndex | None) -> None:
    """What can be said without opening the database."""
    if left is None or left.frames == 0 or _round(log) not in (None, left.salts):
        return
    size = log.stat().st_size if log.exists() else 0
    whole = max(0, size - _LOG_HEAD_BYTES) // (_FRAME_HEAD_BYTES + left.page_bytes)
    if whole < left.frames:
        raise _refused(f"{log} was cut or damaged: of {left.frames} pages that were written to it {whole} are there.")


def _round(log: Path) -> bytes | None:
    """The salts in the log's own head."""
    if not log.exists():
        return None
    with log.open("rb") as file:
        head = file.read(32)
    return head[16:24] if len(head) == 32 else None


def _compare_rounds(log: Path, left: LogIndex | None) -> None:
    found = _round(log)
    if left is None or found is None:
        return
    behind = (int.from_bytes(left.salts[:4], "big") - int.from_bytes(found[:4], "big")) & 0xFFFFFFFF
    if 0 < behind < 1 << 31:
        raise _refused(f"{log} is {behind} rounds older than the database beside it.")


def _compare_length(log: Path, left: LogIndex | None, found: LogIndex | None) -> None:
    if left is None or left.frames == 0 or _round(log) not in (None, left.salts):
        return
    whole = 0 if found is None else found.frames
    if whole < left.frames:
        raise _refused(f"{log} was cut or damaged: of {left.frames} pages that were written to it {whole} can be read.")


def _compare_numbers(database: Path, bare: dict[str, int], whole: dict[str, int], note: str) -> None:
    session = whole.get(meta.SESSION)
    if meta.SESSION in bare and session != bare[meta.SESSION]:
        is_beginning = whole.get(meta.BEFORE) == bare[meta.SESSION] and whole.get(meta.SETTLED) == 0
        if not is_beginning:
            raise _refused(f"{database} and the log beside it do not belong together.")
    for mark in (meta.EPOCH, meta.FENCE_COUNT, meta.CLOCK_MARK):
        if whole.get(mark, 0) < bare.get(mark, 0):
            raise _refused(f"The log beside {database} is older than the database.")
    known, _ = noted(note)
    is_ours = known in (None, session, whole.get(meta.BEFORE))
    if session is not None and whole.get(meta.STATE) != BACKUP and not is_ours:
        raise _refused(f"{database} is another file than this folder had before: perhaps an older copy of it.")


def _look_at_pages(connection: sqlite3.Connection, database: Path) -> None:
    give_up_at = monotonic() + _LOOK_SECONDS
    connection.set_progress_handler(lambda: monotonic() > give_up_at, _STEPS_BETWEEN_LOOKS)
    try:
        found = connection.execute("PRAGMA quick_check(1)").fetchall()
    except sqlite3.OperationalError as fault:
        if fault.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT:
            raise
        _log.warning("the database is large: its pages were checked for %g s, not all of them", _LOOK_SECONDS)
        return
    finally:
        connection.set_progress_handler(None, 0)
    if found != [("ok",)]:
        raise _refused(f"{database} is damaged ({found[0][0]}).")
