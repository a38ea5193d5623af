"""One transaction on PostgreSQL, in as few round trips as a decision allows.

    1  BEGIN, lock_timeout, insert-if-absent, SELECT … FOR UPDATE, probe
    2  what was written, COMMIT

The *probe* is one statement that runs while the row lock is held: the database's clock (its transaction clock would be
that of the start, before the wait for the lock: ShedLock #3577), the transaction's id (to ask later whether a commit
whose answer was lost did happen), the next fence, and whether the timeline is the one that the epoch belongs to.
Statements of a trip travel together (pipeline mode) and run in order. Nothing is prepared and nothing is set for the
session, so a pooler in transaction mode may stand between.
"""

from collections.abc import Callable
from typing import Any, cast

from psycopg import Connection, Cursor

from app.storage import fence
from app.storage.statement import Row, Statement, Value
from app.testmode import Failpoints

Anyone = Connection[Row]
Offset = Callable[[], int]

_CLOCK = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
_PROBE = (
    _CLOCK
    + ", pg_current_xact_id()::text, ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::int"
    ", (SELECT number FROM meta WHERE name = 'timeline'), (SELECT number FROM meta WHERE name = 'epoch')"
)
_PROBE_AND_FENCE = _PROBE + ", nextval('fence_count')"


class TimelineChanged(Exception):
    """The database was promoted, and may have forgotten its last moments: the epoch must rise before any fence."""


class PostgresReader:
    """Plain reads on one connection in autocommit mode. The clock travels with each read, after it."""

    def __init__(self, connection: Anyone, offset: Offset) -> None:
        self._connection = connection
        self._offset = offset
        self._instant: int | None = None

    def one(self, statement: Statement, **parameters: Value) -> Row | None:
        """As the port says."""
        rows = self.all(statement, **parameters)
        return rows[0] if rows else None

    def all(self, statement: Statement, **parameters: Value) -> list[Row]:
        """As the port says."""
        with self._connection.pipeline():
            found = _send(self._connection, statement, parameters)
            clock = self._connection.execute(_CLOCK)
        self._instant = _number(_first(clock)[0])
        return found.fetchall()

    def now(self) -> int:
        """As the port says: the database's clock, at the latest read or now."""
        if self._instant is None:
            self._instant = _number(_first(self._connection.execute(_CLOCK))[0])
        return self._instant + self._offset()


class PostgresTransaction:
    """The Transaction of the port. It begins with its first statement."""

    def __init__(self, connection: Anyone, offset: Offset, failpoints: Failpoints, lock_timeout_seconds: float) -> None:
        self._connection = connection
        self._offset = offset
        self._failpoints = failpoints
        self._lock_timeout = f"SET LOCAL lock_timeout = {round(lock_timeout_seconds * 1000)}"
        self._unsent: list[tuple[Statement, dict[str, Value]]] = []
        self._instant: int | None = None
        self._floor = 0
        self._fence: int | None = None
        self._has_begun = False
        self.transaction_id: str | None = None
        self.topics: list[str] = []

    def one(self, statement: Statement, **parameters: Value) -> Row | None:
        """As the port says."""
        rows = self.all(statement, **parameters)
        return rows[0] if rows else None

    def all(self, statement: Statement, **parameters: Value) -> list[Row]:
        """As the port says."""
        with self._connection.pipeline():
            self._catch_up()
            found = _send(self._connection, statement, parameters)
        return found.fetchall()

    def execute(self, statement: Statement, **parameters: Value) -> int:
        """As the port says."""
        with self._connection.pipeline():
            self._catch_up()
            done = _send(self._connection, statement, parameters)
        return done.rowcount

    def write(self, statement: Statement, **parameters: Value) -> None:
        """As the port says: it travels with the next statement or the commit."""
        self._unsent.append((statement, parameters))

    def lock(self, select: Statement, insert: Statement | None = None, **parameters: Value) -> Row | None:
        """As the port says."""
        while True:
            with self._connection.pipeline():
                self._catch_up()
                if insert is not None:
                    _send(self._connection, insert, parameters)
                found = _send(self._connection, select, parameters, suffix=" FOR UPDATE")
                probe = self._connection.execute(_PROBE if insert is None else _PROBE_AND_FENCE)
            self._read_probe(_first(probe))
            row = found.fetchone()
            if row is not None or insert is None:
                return row
            # somebody removed the row between our insert and our lock: make it again

    def now(self) -> int:
        """As the port says: read while the last lock was held."""
        if self._instant is None:
            with self._connection.pipeline():
                self._catch_up()
                clock = self._connection.execute(_CLOCK)
            self._instant = _number(_first(clock)[0])
        return max(self._instant + self._offset(), self._floor)

    def not_before(self, instant: int) -> None:
        """As the port says."""
        self._floor = max(self._floor, instant)

    def next_fence(self) -> int:
        """As the port says."""
        if self._fence is None:
            with self._connection.pipeline():
                self._catch_up()
                probe = self._connection.execute(_PROBE_AND_FENCE)
            self._read_probe(_first(probe))
        drawn, self._fence = self._fence, None
        return cast(int, drawn)

    def ring(self, topic: str) -> None:
        """As the port says."""
        self.topics.append(topic)

    def failpoint(self, name: str) -> None:
        """As the port says."""
        self._failpoints.at(name)

    @property
    def has_written(self) -> bool:
        """Whether there is something to commit."""
        return self._has_begun or bool(self._unsent)

    def commit(self) -> None:
        """Send what is unsent and commit. When this raises, `transaction_id` tells whom to ask about."""
        with self._connection.pipeline():
            self._catch_up()
            self._connection.execute("COMMIT")

    def roll_back(self) -> None:
        """Undo everything."""
        if self._has_begun:
            self._connection.execute("ROLLBACK")

    def _catch_up(self) -> None:
        """Queue the beginning and what was to travel later; called inside a pipeline."""
        if not self._has_begun:
            self._has_begun = True
            self._connection.execute("BEGIN")
            self._connection.execute(cast(Any, self._lock_timeout))
        unsent, self._unsent = self._unsent, []
        for statement, parameters in unsent:
            _send(self._connection, statement, parameters)

    def _read_probe(self, row: Row) -> None:
        self._instant = _number(row[0])
        self.transaction_id = str(row[1])
        if row[2] != row[3]:
            raise TimelineChanged
        if len(row) > 5:
            self._fence = fence.fence(_number(row[4]), _number(row[5]))


def _send(connection: Anyone, statement: Statement, parameters: dict[str, Value], *, suffix: str = "") -> Cursor[Row]:
    compiled = statement.compiled("postgresql")
    return connection.execute(cast(Any, compiled.text + suffix), compiled.named(parameters))


def _first(cursor: Cursor[Row]) -> Row:
    row = cursor.fetchone()
    assert row is not None
    return row


def _number(value: object) -> int:
    return int(cast(int, value))
