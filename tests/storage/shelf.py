"""A table of our own to write to: the engine knows nothing of leases."""

from collections.abc import Callable

from sqlalchemy import bindparam, insert, select, text, update

from app.storage.engine import Reader, Transaction
from app.storage.sqlite import SqliteEngine
from app.storage.statement import Statement
from app.storage.tables import meta

Open = Callable[..., SqliteEngine]

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
