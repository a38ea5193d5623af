"""`fencepost-server backup` and `restore`: the embedded engine's file, copied beside a running server and put back.

A backup is one file with its SHA-256 beside it. Restoring checks that, every page, and the schema, raises the epoch so
that every fence drawn from now on is above all that were granted after the backup, and only then puts the file in
place. On PostgreSQL its own tools do this; the epoch rises by itself there.
"""

import hashlib
import time
from pathlib import Path

from app.clock import wall
from app.settings import Settings, StartRefused


def backup(settings: Settings, file: str | None) -> list[str]:
    """Write one; the lines to say. Raises StartRefused."""
    from app.cli.reach import A_DAY_SECONDS, done, installed
    from app.serving.prepare import prepared

    _only_sqlite(settings, "pg_dump or a base backup")
    settings = prepared(installed(settings))
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(wall()))
    target = Path(file).absolute() if file else settings.backup_dir / f"fencepost-{stamp}.db"
    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as fault:
        raise StartRefused(f"{target.parent} cannot be used: {fault.strerror}.") from fault
    done(settings, {"verb": "backup", "file": str(target)}, patience_seconds=A_DAY_SECONDS)
    digest = sha256(target)
    beside(target).write_text(f"{digest}  {target.name}\n", encoding="utf-8")
    beside(target).chmod(0o600)
    return [f"Backed up to {target} ({target.stat().st_size} bytes), SHA-256 {digest}."]


def restore(settings: Settings, file: str, *, without_log: bool, above_epoch: int) -> list[str]:
    """Put one in place of a database that is not there; the lines to say. Raises StartRefused."""
    from app.storage.sqlite_restore import put_in_place

    _only_sqlite(settings, "pg_restore, psql or recovery to a point in time")
    source = Path(file)
    if not source.is_file():
        raise StartRefused(f"{source} is not there.")
    if beside(source).is_file():
        words = beside(source).read_text(encoding="utf-8", errors="replace").split()
        if not words or words[0] != sha256(source):
            raise StartRefused(f"{source} is damaged: it has not the SHA-256 that {beside(source).name} names.")
    epoch = put_in_place(source, settings.sqlite_file, without_log=without_log, above_epoch=above_epoch)
    return [f"Restored {settings.sqlite_file}. Fences go on in epoch {epoch}, above all that were granted before."]


def beside(file: Path) -> Path:
    """The file that holds its checksum, as `sha256sum -c` reads it."""
    return file.with_name(file.name + ".sha256")


def sha256(file: Path) -> str:
    """In hex."""
    with file.open("rb") as bytes_of:
        return hashlib.file_digest(bytes_of, "sha256").hexdigest()


def _only_sqlite(settings: Settings, tools: str) -> None:
    if not settings.is_sqlite:
        raise StartRefused(f"This is for SQLite. On PostgreSQL use {tools}; docs/backup.md tells how.")
