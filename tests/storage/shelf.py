"""A table of our own to write to: the engine knows nothing of leases."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gevent
from sqlalchemy import bindparam, insert, select, text, update

from app.storage.engine import Reader, Transaction
from app.storage.lane import new_lock
from app.storage.sqlite import SqliteEngine
from app.storage.statement import Statement
from app.storage.tables import meta
from app.testmode import Failpoints

Open = Callable[..., SqliteEngine]
PATIENT: dict[str, Any] = {"write_deadline_seconds": 60.0, "read_deadline_seconds": 60.0}
"""For engines whose deadlines are not the subject: a disk that others use may take seconds for one commit."""

_put = Statement(insert(meta).values(name=bindparam("named"), number=bindparam("value")))
_add = Statement(update(meta).where(meta.c.name == bindparam("named")).values(number=meta.c.number + 1))
_look = Statement(select(meta.c.number).where(meta.c.name == bindparam("named")))
_names = Statement(select(meta.c.name).where(meta.c.name.like("shelf.%")).order_by(meta.c.name))
_broken = Statement(text("INSERT INTO no_such_table VALUES (1)"))


def put(tx: Transaction, name: str, value: int = 0) -> int:
    """Store a number; it is an error when the name exists."""
    return tx.execute(_put, named=f"shelf.{name}", value=value)


def add(tx: Transaction, name: str) -> int:
    """Raise a number by one; how many there were."""
    return tx.execute(_add, named=f"shelf.{name}")


def break_(tx: Transaction) -> None:
    """A statement that fails."""
    tx.execute(_broken)


def number(reader: Reader, name: str) -> int | None:
    """A stored number."""
    row = reader.one(_look, named=f"shelf.{name}")
    return None if row is None else int(str(row[0]))


def look(engine: SqliteEngine, name: str) -> int | None:
    """A committed number."""
    return engine.read(lambda reader: number(reader, name))


def names(engine: SqliteEngine) -> list[str]:
    """What is on the shelf."""
    rows = engine.read(lambda reader: reader.all(_names))
    return [str(row[0]).removeprefix("shelf.") for row in rows]


class Barrier:
    """A failpoint at which the writer stands still until the test lets it go on."""

    def __init__(self, folder: Path, point: str) -> None:
        self._file = folder / "failpoints"
        self._file.write_text(f"{point} pause 0\n", encoding="utf-8")
        self._open = new_lock()
        self._open.acquire()
        self._reached = new_lock()
        self._reached.acquire()
        self.failpoints = Failpoints(self._file, self._stand)

    def _stand(self, seconds: float) -> None:
        self._reached.release()
        self._open.acquire()

    def wait_until_reached(self) -> None:
        """Let greenlets run until the writer stands here."""
        with gevent.Timeout(10):
            while not self._reached.acquire(False):
                gevent.sleep(0.002)

    def open(self) -> None:
        """Let the writer go on, now and always."""
        self._file.unlink()
        self._open.release()


def calling(
    engine: SqliteEngine, operation: Callable[[Transaction], object], *, urgent: bool = False
) -> "gevent.Greenlet[[], object]":
    """A caller of its own for this operation."""

    def call() -> object:
        return engine.run(operation, urgent=urgent)

    return gevent.spawn(call)


def putting(engine: SqliteEngine, name: str) -> "gevent.Greenlet[[], object]":
    """A caller of its own that stores a number under this name."""
    return calling(engine, lambda tx: put(tx, name))


def wait_until_queued(engine: SqliteEngine, calls: int) -> None:
    """Let greenlets run until so many calls stand in the writer's queue."""
    with gevent.Timeout(10):
        while engine.report()["queued"] != calls:
            gevent.sleep(0.002)
