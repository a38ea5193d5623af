"""What is said to PostgreSQL, and plain reads.

Statements of one trip travel together (pipeline mode) and run in order. Nothing is prepared and nothing is set for the
session, so a pooler in transaction mode may stand between.
"""

from collections.abc import Callable
from typing import Any, cast

from psycopg import Cursor

from app.clock import DatabaseClock
from app.storage.postgres_pool import Anyone
from app.storage.statement import Row, Statement, Value

CLOCK = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"


class PostgresReader:
    """Plain reads on one connection in autocommit mode. The clock travels with each trip, after the reads."""

    def __init__(self, connection: Anyone, clock: DatabaseClock, on_trip: Callable[[], None]) -> None:
        self._connection = connection
        self._clock = clock
        self._on_trip = on_trip
        self._instant: int | None = None
        self._floor = 0

    def one(self, statement: Statement, **parameters: Value) -> Row | None:
        """As the port says."""
        rows = self.all(statement, **parameters)
        return rows[0] if rows else None

    def all(self, statement: Statement, **parameters: Value) -> list[Row]:
        """As the port says."""
        return self.together(statement, **parameters)[0]

    def together(self, *statements: Statement, **parameters: Value) -> list[list[Row]]:
        """As the port says."""
        self._on_trip()
        with self._connection.pipeline():
            found = [send(self._connection, statement, parameters) for statement in statements]
            clock = self._connection.execute(CLOCK)
        self._instant = self._clock.told(number(first(clock)[0]))
        return [cursor.fetchall() for cursor in found]

    def now(self) -> int:
        """As the port says: the database's clock, at the latest read or now."""
        if self._instant is None:
            self._on_trip()
            self._instant = self._clock.told(number(first(self._connection.execute(CLOCK))[0]))
        return max(self._instant, self._floor)

    def not_before(self, instant: int) -> None:
        """As the port says."""
        self._floor = max(self._floor, instant)


def send(connection: Anyone, statement: Statement, parameters: dict[str, Value], *, suffix: str = "") -> Cursor[Row]:
    """Run a statement; inside a pipeline its answer comes at the end."""
    compiled = statement.compiled("postgresql")
    return connection.execute(cast(Any, compiled.text + suffix), compiled.named(parameters))


def first(cursor: Cursor[Row]) -> Row:
    """The row that there must be."""
    row = cursor.fetchone()
    assert row is not None
    return row


def number(value: object) -> int:
    """A number as the driver gives it."""
    return int(cast(int, value))
