"""Reads of the embedded engine: each statement is finished at once, so that none keeps the log from shrinking."""

import sqlite3

from app.clock import Clock
from app.storage.lane import Call, Lane
from app.storage.sqlite_trouble import Trouble, judge
from app.storage.statement import Row, Statement, Value


class SqliteReader:
    """Plain reads through one connection."""

    def __init__(self, connection: sqlite3.Connection, clock: Clock) -> None:
        self._execute = connection.execute
        self._clock = clock

    def one(self, statement: Statement, **parameters: Value) -> Row | None:
        """As the port says."""
        rows = self.all(statement, **parameters)
        return rows[0] if rows else None

    def all(self, statement: Statement, **parameters: Value) -> list[Row]:
        """As the port says."""
        compiled = statement.compiled("sqlite")
        return self._execute(compiled.text, compiled.positional(parameters)).fetchall()

    def together(self, *statements: Statement, **parameters: Value) -> list[list[Row]]:
        """As the port says."""
        return [self.all(statement, **parameters) for statement in statements]

    def now(self) -> int:
        """As the port says."""
        return self._clock.now()

    def not_before(self, instant: int) -> None:
        """As the port says: the one clock of this engine never steps back."""


def serve_reads(lane: "Lane[object]", thread: int, connection: sqlite3.Connection, clock: Clock) -> None:
    """The life of a reader thread: it ends with the call whose work is None."""
    reader = SqliteReader(connection, clock)
    while True:
        call = lane.take_one(thread)
        if call.work is None:
            connection.close()
            lane.answer([call])
            return
        _read(call, reader)
        lane.answer([call])


def _read(call: "Call[object]", reader: SqliteReader) -> None:
    try:
        assert callable(call.work)
        call.value = call.work(reader)
    except BaseException as fault:  # noqa: BLE001 -- it belongs to the caller, who raises it
        call.fault = fault
        if judge(fault) is not Trouble.NONE:
            call.refuse(f"SQLite: {fault}")
