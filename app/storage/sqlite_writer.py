"""The one writer: it takes all that is queued, runs it, commits once, and answers.

There is no savepoint for each operation, because almost none fails. When one does, the whole group is rolled back,
the culprit is set aside to be run alone, and the others run again; after a few culprits each runs alone. An
operation must therefore be re-runnable, and sees only what was committed or will be committed with it.

    taken -> BEGIN IMMEDIATE -> operation ... operation -> marks -> COMMIT (synced) -> ring, answer

Marks are the count of fences and the largest instant that was read. They are written with whatever changed, so
after a restart no fence comes twice and the clock starts at or above every instant that decided something. A group
that changed nothing writes nothing and costs no sync.
"""

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass

from app.clock import Clock, monotonic
from app.storage import fence, meta
from app.storage.engine import Transaction
from app.storage.lane import DONE, Call, Lane
from app.storage.sqlite_reads import SqliteReader
from app.storage.sqlite_trouble import Trouble, judge
from app.storage.statement import Row, Statement, Value
from app.testmode import Failpoints

Work = Callable[[Transaction], object]
_MOST_IN_A_GROUP = 512
_CULPRITS_BEFORE_EACH_RUNS_ALONE = 3
_IDLE_SECONDS = 1.0


@dataclass(slots=True)
class Figures:
    """What the writer did so far."""

    groups: int = 0
    operations: int = 0
    largest_group: int = 0
    group_seconds: float = 0.0
    longest_group_seconds: float = 0.0
    failed: int = 0


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

    def lock(self, select: Statement, insert: Statement | None = None, **parameters: Value) -> Row | None:
        """As the port says: the transaction holds the whole file already."""
        return self.one(select, **parameters)

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


class Writer:
    """The life of the writer thread. `on_fatal` is called on it, once, when the file cannot be trusted any more."""

    def __init__(
        self,
        lane: Lane[Work],
        connection: sqlite3.Connection,
        clock: Clock,
        failpoints: Failpoints,
        on_fatal: Callable[[str], None],
    ) -> None:
        self._lane = lane
        self._connection = connection
        self._failpoints = failpoints
        self._on_fatal = on_fatal
        self._transaction = SqliteTransaction(connection, clock, failpoints)
        self._has_to_checkpoint = False
        self._is_closing = False
        self.figures = Figures()
        self.broken: str | None = None

    def serve(self) -> None:
        """Take, run, commit, answer, until `close` was asked for."""
        while not self._is_closing:
            calls = self._lane.take_group(_MOST_IN_A_GROUP, _IDLE_SECONDS)
            try:
                self._turn(calls)
            except BaseException as fault:  # noqa: BLE001 -- a writer that dies in silence would hang every caller
                self._break(
                    [call for call in calls if call.state != DONE], f"the writer failed: {fault!r}", unknown=True
                )

    def _turn(self, calls: list[Call[Work]]) -> None:
        group = [call for call in calls if not call.apart]
        if group:
            self._run(group)
        elif not calls and self._has_to_checkpoint:
            self._checkpoint("PASSIVE")
        for call in calls:
            if call.apart:
                self._run_apart(call)

    def close(self, transaction: Transaction) -> None:
        """Asked for as a call of its own, the last: write the marks, empty the log, let go of the file."""
        self._is_closing = True
        if self.broken is not None:
            return
        self._connection.execute("BEGIN IMMEDIATE")
        self._transaction.save_marks()
        self._connection.execute("COMMIT")
        self._checkpoint("TRUNCATE")
        self._connection.close()

    def _run_apart(self, call: Call[Work]) -> None:
        try:
            call.value = call.work(self._transaction)
        except BaseException as fault:  # noqa: BLE001 -- it belongs to the caller, who raises it
            call.fault = fault
        self._lane.answer([call])

    def _run(self, calls: list[Call[Work]]) -> None:
        started = monotonic()
        together, alone = calls, list[Call[Work]]()
        while together:
            culprit = self._attempt(together)
            if culprit is None:
                break
            self.figures.failed += 1
            alone.append(culprit)
            together = [call for call in together if call is not culprit]
            if len(alone) == _CULPRITS_BEFORE_EACH_RUNS_ALONE:
                alone, together = alone + together, []
        for call in alone:
            self._attempt([call])
        self._count(len(calls), monotonic() - started)

    def _attempt(self, calls: list[Call[Work]]) -> "Call[Work] | None":
        """Run and commit these, and answer; or roll back and name the one that failed among several."""
        if self.broken is not None:
            self._refuse(calls, self.broken)
            return None
        before = self._connection.total_changes
        culprit: Call[Work] | None = None
        committing = False
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            for call in calls:
                culprit = call
                self._operate(call)
            culprit = None
            if self._connection.total_changes > before or self._transaction.has_drawn:
                self._transaction.save_marks()
                self._has_to_checkpoint = True
            self._failpoints.at("before-commit")
            committing = True
            self._connection.execute("COMMIT")
        except BaseException as fault:  # noqa: BLE001 -- it belongs to a caller, who raises it
            return self._undo(calls, culprit, fault, committing)
        self._transaction.marks_are_durable()
        self._finish(calls)
        return None

    def _operate(self, call: Call[Work]) -> None:
        transaction = self._transaction
        transaction.topics = call.topics = []
        transaction.fault = None
        call.value = call.work(transaction)
        if transaction.fault is not None:
            raise transaction.fault

    def _finish(self, calls: list[Call[Work]]) -> None:
        try:
            self._failpoints.at("after-commit")
        except BaseException as fault:  # noqa: BLE001 -- a failpoint: the commit stands, the answers are replaced
            for call in calls:
                call.fault = fault
        self._lane.answer(calls)

    def _undo(
        self, calls: list[Call[Work]], culprit: "Call[Work] | None", fault: BaseException, committing: bool
    ) -> "Call[Work] | None":
        trouble = judge(fault)
        if trouble is Trouble.FATAL:
            self._break(calls, f"SQLite: {fault}", unknown=committing)
            return None
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")
        if trouble is Trouble.PASSING:
            self._refuse(calls, f"SQLite: {fault}")
            return None
        if culprit is not None and len(calls) > 1:
            return culprit
        for call in calls:
            call.value, call.topics, call.fault = None, [], fault
        self._lane.answer(calls)
        return None

    def _break(self, calls: list[Call[Work]], reason: str, *, unknown: bool) -> None:
        self.broken = self._lane.refusal = reason
        self._refuse(calls, reason, unknown=unknown)
        self._on_fatal(reason)

    def _refuse(self, calls: list[Call[Work]], reason: str, *, unknown: bool = False) -> None:
        for call in calls:
            call.refuse(reason, unknown=unknown)
        self._lane.answer(calls)

    def _checkpoint(self, mode: str) -> None:
        try:
            self._connection.execute(f"PRAGMA wal_checkpoint({mode})").fetchall()
        except sqlite3.Error as fault:
            if judge(fault) is Trouble.FATAL:
                self._break([], f"SQLite: {fault}", unknown=False)
        self._has_to_checkpoint = False

    def _count(self, operations: int, seconds: float) -> None:
        figures = self.figures
        figures.groups += 1
        figures.operations += operations
        figures.largest_group = max(figures.largest_group, operations)
        figures.group_seconds += seconds
        figures.longest_group_seconds = max(figures.longest_group_seconds, seconds)
