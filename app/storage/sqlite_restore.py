"""Putting a backup in place.

Whoever restores goes back in time: what was granted after the backup is forgotten, and its holders still write under
their fences. So the epoch rises, above that of the backup and above the highest that this folder ever noted, and every
fence drawn from now on is above all of those. The file is made whole and checked under another name; it gets its own
by a rename, so there is no moment at which half of it could be served.
"""

import os
import shutil
import sqlite3
from pathlib import Path

from app.storage import meta, sqlite_custody
from app.storage.fence import LARGEST_EPOCH
from app.storage.migrate import refuse_newer
from app.storage.sqlite_file import DatabaseRefused, FileLock, refuse_network_filesystem, sync_folder
from app.tokens import random_bytes


def put_in_place(source: Path, target: Path, *, without_log: bool = False, above_epoch: int = 0) -> int:
    """Check `source` and put it at `target`, where nothing may be yet; the new epoch. Raises DatabaseRefused.

    `without_log` takes in a file that was copied while it was served: what its log held is lost, and the caller knows.
    `above_epoch` is the highest epoch that a server with this database ever had, if that is known from elsewhere.
    """
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    refuse_network_filesystem(target.parent)
    lock = FileLock(target)
    part = target.with_name(target.name + ".part")
    try:
        _refuse_what_is_there(target)
        _refuse_a_log(source, without_log=without_log)
        shutil.copyfile(source, part)
        part.chmod(0o600)
        session, epoch = _made_ready(part, source, lock, without_log=without_log, above_epoch=above_epoch)
        _sync(part)
        lock.write(f"{session} {epoch}")
        part.rename(target)
        sync_folder(target.parent)
    except OSError as fault:
        raise DatabaseRefused(f"{source} cannot be put at {target}: {fault.strerror}.") from fault
    finally:
        part.unlink(missing_ok=True)
        lock.release()
    return epoch


def _refuse_what_is_there(target: Path) -> None:
    for file in (target, target.with_name(target.name + "-wal")):
        if file.exists():
            raise DatabaseRefused(
                f"{file} is there, and nothing is overwritten: move it away, or choose another folder."
            )


def _refuse_a_log(source: Path, *, without_log: bool) -> None:
    log = source.with_name(source.name + "-wal")
    if not without_log and log.exists() and log.stat().st_size:
        raise DatabaseRefused(
            f"{source} has a log beside it, so it is the folder of a server and no backup: start a server on it, or "
            "make a backup of it with `fencepost-server backup`."
        )


def _made_ready(part: Path, source: Path, lock: FileLock, *, without_log: bool, above_epoch: int) -> tuple[int, int]:
    connection = sqlite3.connect(part, isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode = DELETE").fetchall()
        connection.execute("PRAGMA synchronous = FULL")
        numbers = _checked(connection, source)
        if numbers.get(meta.STATE) == sqlite_custody.OPEN and not without_log:
            raise DatabaseRefused(
                f"{source} was copied while it was served, without its log: what was answered last is missing. Use a "
                "file that `fencepost-server backup` wrote, or take it in all the same with --without-log."
            )
        epoch = max(numbers[meta.EPOCH], sqlite_custody.noted(lock.note)[1], above_epoch) + 1
        if epoch > LARGEST_EPOCH:
            raise DatabaseRefused(f"There is no epoch above {epoch - 1}: all fencing tokens are used up.")
        session = int.from_bytes(random_bytes(8), "big") >> 1
        sqlite_custody.mark_as_restored(connection, session, epoch)
    except sqlite3.DatabaseError as fault:
        raise DatabaseRefused(f"{source} is damaged or no database: {fault}.") from fault
    finally:
        connection.close()
    return session, epoch


def _checked(connection: sqlite3.Connection, source: Path) -> dict[str, int]:
    found = connection.execute("PRAGMA integrity_check(1)").fetchall()
    if found != [("ok",)]:
        raise DatabaseRefused(f"{source} is damaged: {found[0][0]}.")
    numbers = sqlite_custody.numbers_of(connection)
    if meta.EPOCH not in numbers or meta.FENCE_COUNT not in numbers:
        raise DatabaseRefused(f"{source} is no database of this server.")
    (revision,) = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    refuse_newer(str(revision))
    return numbers


def _sync(file: Path) -> None:
    descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
