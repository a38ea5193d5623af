"""One transaction on PostgreSQL, in as few round trips as a decision allows.

    1  BEGIN, time-outs, insert-if-absent, SELECT … FOR UPDATE, probe
    2  what was written, commit mark, COMMIT

The *probe* is one statement that runs while the row lock is held: the database's clock (its transaction clock would be
that of the start, before the wait for the lock: ShedLock #3577), the next fence, and whether the timeline is the one
that the epoch belongs to. A transaction that changed nothing is rolled back instead: a refusal waits for no disk.

A connection is taken with the first statement. Before it, where that locks a row, comes the row's turn in this process.
"""

from collections.abc import Callable, Sequence
from typing import Any, cast

from app.clock import DatabaseClock
from app.storage import fence, postgres_commit
from app.storage.engine import Lock, Unavailable
from app.storage.postgres_pool import Anyone, Lent, Pool
from app.storage.postgres_reads import CLOCK, first, number, send
from app.storage.statement import Row, Statement, Value
from app.storage.turns import Turns
from app.testmode import Failpoints

_TIMELINE = "('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::int"
_PROBE = (
    f"{CLOCK}, {_TIMELINE}"
    ", (SELECT number FROM meta WHERE name = 'timeline'), (SELECT number FROM meta WHERE name = 'epoch')"
)
_PROBE_AND_FENCE = _PROBE + ", nextval('fence_count')"
_LIMITS = (
    "SELECT set_config('lock_timeout', %(lock)s, true)"
    ", set_config('idle_in_transaction_session_timeout', %(idle)s, true)"
)


class TimelineChanged(Exception):
    """The database was promoted, and may have forgotten its last moments: the epoch must rise before any fence."""


class PostgresTransaction:
    """The Transaction of the port. It begins with its first statement and has until `give_up_at` (monotonic)."""

    def __init__(
        self,
        pool: Pool,
        turns: Turns,
        clock: DatabaseClock,
        failpoints: Failpoints,
        *,
        give_up_at: float,
        patience_seconds: float,
        on_trip: Callable[[], None],
    ) -> None:
        self._pool = pool
        self._turns = turns
        self._clock = clock
        self._failpoints = failpoints
        self._give_up_at = give_up_at
        milliseconds = round(patience_seconds * 1000)
        self._limits = {"lock": f"{milliseconds}ms", "idle": f"{2 * milliseconds}ms"}
        self._on_trip = on_trip
        self._lent: Lent | None = None
        self._begins = False
        self._row: tuple[object, ...] | None = None
        self._unsent: list[tuple[Statement, dict[str, Value]]] = []
        self._instant: int | None = None
        self._floor = 0
        self._fence: int | None = None
        self.has_changed = False
        """Whether there is something to commit."""
        self.topics: list[str] = []

    def one(self, statement: Statement, **parameters: Value) -> Row | None:
        """As the port says."""
        rows = self.all(statement, **parameters)
        return rows[0] if rows else None

    def all(self, statement: Statement, **parameters: Value) -> list[Row]:
        """As the port says."""
        return self.trip(statement, **parameters)[0]

    def together(self, *statements: Statement, **parameters: Value) -> list[list[Row]]:
        """As the port says."""
        return self.trip(*statements, **parameters)

    def execute(self, statement: Statement, **parameters: Value) -> int:
        """As the port says."""
        return self.execute_each(statement, [parameters])[0]

    def execute_each(self, statement: Statement, parameters: Sequence[dict[str, Value]]) -> list[int]:
        """As the port says."""
        if not parameters:
            return []
        self.has_changed = True
        connection = self._begun()
        with connection.pipeline():
            self._catch_up(connection)
            done = [send(connection, statement, each) for each in parameters]
        return [cursor.rowcount for cursor in done]

    def write(self, statement: Statement, **parameters: Value) -> None:
        """As the port says: it travels with the next statement or the commit."""
        self.has_changed = True
        self._unsent.append((statement, parameters))

    def lock(self, select: Statement, insert: Statement | None = None, **parameters: Value) -> Row | None:
        """As the port says."""
        rows = self.trip(Lock(select, insert), **parameters)[0]
        return rows[0] if rows else None

    def trip(self, *steps: Statement | Lock, **parameters: Value) -> list[list[Row]]:
        """As the port says."""
        locks = [step for step in steps if isinstance(step, Lock)]
        if locks and self._lent is None:
            self._await_turn((id(locks[0].select), *parameters.values()))
        connection = self._begun()
        while True:
            found = self._travel(connection, steps, locks, parameters)
            if all(rows or not isinstance(step, Lock) or step.insert is None for step, rows in found):
                return [rows for _, rows in found]
            # somebody removed the row between our insert and our lock: make it again

    def now(self) -> int:
        """As the port says: read while the last lock was held."""
        if self._instant is None:
            connection = self._begun()
            with connection.pipeline():
                self._catch_up(connection)
                clock = connection.execute(CLOCK)
            self._instant = self._clock.told(number(first(clock)[0]))
        return max(self._instant, self._floor)

    def not_before(self, instant: int) -> None:
        """As the port says."""
        self._floor = max(self._floor, instant)

    def next_fence(self) -> int:
        """As the port says."""
        if self._fence is None:
            connection = self._begun()
            with connection.pipeline():
                self._catch_up(connection)
                probe = connection.execute(cast(Any, _PROBE_AND_FENCE))
            self._read_probe(first(probe))
        drawn, self._fence = self._fence, None
        return cast(int, drawn)

    def ring(self, topic: str) -> None:
        """As the port says."""
        self.topics.append(topic)

    def failpoint(self, name: str) -> None:
        """As the port says."""
        self._failpoints.at(name)

    @property
    def is_lost(self) -> bool:
        """Whether the connection is."""
        return self._lent is not None and self._lent.connection.closed

    def commit(self) -> None:
        """Send what is unsent and commit. When this raises and the connection is lost, its mark tells more."""
        connection = self._begun()
        lent = cast(Lent, self._lent)
        lent.number += 1
        with connection.pipeline():
            self._catch_up(connection)
            postgres_commit.count(connection, lent.slot, lent.number)
            connection.execute("COMMIT")

    def roll_back(self) -> None:
        """Undo everything."""
        if self._lent is not None:
            self._on_trip()
            self._lent.connection.execute("ROLLBACK")

    def abandon(self) -> None:
        """Undo everything by closing the connection, in whatever state it is."""
        if self._lent is not None:
            self._lent.connection.close()

    def leave(self) -> Lent | None:
        """Give back the connection and the turn; which connection it was."""
        lent, self._lent = self._lent, None
        if lent is not None:
            self._pool.put(lent)
        if self._row is not None:
            self._turns.give(self._row)
            self._row = None
        return lent

    def _await_turn(self, row: tuple[object, ...]) -> None:
        if not self._turns.take(row, self._give_up_at):
            raise Unavailable("other operations on the same row took too long", committed="no")
        self._row = row

    def _begun(self) -> Anyone:
        self._on_trip()
        if self._lent is None:
            self._lent = self._pool.take(self._give_up_at)
            self._begins = True
        return self._lent.connection

    def _travel(
        self, connection: Anyone, steps: Sequence[Statement | Lock], locks: list[Lock], parameters: dict[str, Value]
    ) -> list[tuple[Statement | Lock, list[Row]]]:
        with connection.pipeline():
            self._catch_up(connection)
            sent = []
            for step in steps:
                if isinstance(step, Lock):
                    if step.insert is not None:
                        send(connection, step.insert, parameters)
                    sent.append(send(connection, step.select, parameters, suffix=" FOR UPDATE"))
                else:
                    sent.append(send(connection, step, parameters))
            draws = any(lock.insert is not None for lock in locks)
            probe = connection.execute(cast(Any, _PROBE_AND_FENCE if draws else _PROBE)) if locks else None
            clock = connection.execute(CLOCK) if probe is None and self._instant is None else None
        if probe is not None:
            self._read_probe(first(probe))
        elif clock is not None:
            self._instant = self._clock.told(number(first(clock)[0]))
        return [(step, cursor.fetchall()) for step, cursor in zip(steps, sent, strict=True)]

    def _catch_up(self, connection: Anyone) -> None:
        """Queue the beginning and what was to travel later; called inside a pipeline."""
        if self._begins:
            self._begins = False
            connection.execute("BEGIN")
            connection.execute(_LIMITS, self._limits)
        unsent, self._unsent = self._unsent, []
        for statement, parameters in unsent:
            send(connection, statement, parameters)

    def _read_probe(self, row: Row) -> None:
        self._instant = self._clock.told(number(row[0]))
        if row[1] != row[2]:
            raise TimelineChanged
        if len(row) > 4:
            self._fence = fence.fence(number(row[3]), number(row[4]))
