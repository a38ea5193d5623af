"""What an operation of the embedded engine acts through.

One object serves all operations, one after the other. It keeps the marks: the count of fences drawn and the largest
instant read so far, and what of them the file knows already.
"""

import sqlite3
from collections.abc import Sequence

from app.clock import Clock
from app.storage import fence, meta
from app.storage.engine import Lock
from app.storage.sqlite_reads import SqliteReader
from app.storage.statement import Row, Statement, Value
from app.testmode import Failpoints


class SqliteTransaction(SqliteReader):
    """The transaction of the operation that runs now. One object serves them all, one after the other."""

    def __init__(self, connection: sqlite3.Connection, clock: Clock, failpoints: Failpoints) -> None:
        super().__init__(connection, clock)
        self._failpoints = failpoints
        numbers = {str(name): int(str(number)) for name, number in self.all(meta.numbers)}
        self._epoch = numbers[meta.EPOCH]
        self.fence_count = self._saved_count = numbers[meta.FENCE_COUNT]
        self.clock_mark = self._saved_mark = numbers[meta.CLOCK_MARK]
        self.topics: list[str] = []
        self.fault: sqlite3.Error | None = None

    def all(self, statement: Statement, **parameters: Value) -> list[Row]:
        """As the port says. An error is remembered, so that an operation cannot swallow it and be committed."""
        try:
            return super().all(statement, **parameters)
        except sqlite3.Error as fault:
            self.fault = fault
            raise

    def execute(self, statement: Statement, **parameters: Value) -> int:
        """As the port says."""
        compiled = statement.compiled("sqlite")
        try:
            return self._execute(compiled.text, compiled.positional(parameters)).rowcount
        except sqlite3.Error as fault:
            self.fault = fault
            raise

    def write(self, statement: Statement, **parameters: Value) -> None:
        """As the port says."""
        self.execute(statement, **parameters)

    def execute_each(self, statement: Statement, parameters: Sequence[dict[str, Value]]) -> list[int]:
        """As the port says."""
        return [self.execute(statement, **each) for each in parameters]

    def lock(self, select: Statement, insert: Statement | None = None, **parameters: Value) -> Row | None:
        """As the port says: the transaction holds the whole file already."""
        return self.one(select, **parameters)

    def trip(self, *steps: Statement | Lock, **parameters: Value) -> list[list[Row]]:
        """As the port says."""
        return [self.all(step.select if isinstance(step, Lock) else step, **parameters) for step in steps]

    def now(self) -> int:
        """As the port says; the largest instant ever read is what the clock mark will say."""
        instant = self._clock.now()
        if instant > self.clock_mark:
            self.clock_mark = instant
        return instant

    def next_fence(self) -> int:
        """As the port says. A count that was rolled back is never used again."""
        self.fence_count += 1
        return fence.fence(self._epoch, self.fence_count)

    def ring(self, topic: str) -> None:
        """As the port says."""
        self.topics.append(topic)

    def failpoint(self, name: str) -> None:
        """As the port says."""
        self._failpoints.at(name)

    @property
    def has_drawn(self) -> bool:
        """Whether a fence was drawn that the file does not know of yet."""
        return self.fence_count > self._saved_count

    def save_marks(self) -> None:
        """Write the marks where they moved."""
        if self.has_drawn or self.clock_mark > self._saved_mark:
            self.execute(meta.move_marks, fence_count=self.fence_count, clock_mark=self.clock_mark)

    def marks_are_durable(self) -> None:
        """Remember that the commit that carried them succeeded."""
        self._saved_count, self._saved_mark = self.fence_count, self.clock_mark
