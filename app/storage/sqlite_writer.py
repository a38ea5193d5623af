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
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from app.clock import Clock, monotonic
from app.spread import SIZES, Spread
from app.storage import sqlite_custody
from app.storage.engine import Transaction
from app.storage.lane import DONE, Call, Lane
from app.storage.sqlite_transaction import SqliteTransaction
from app.storage.sqlite_trouble import Trouble, judge
from app.testmode import Failpoints

Work = Callable[[Transaction], object]
_MOST_IN_A_GROUP = 512
_CULPRITS_BEFORE_EACH_RUNS_ALONE = 3
_IDLE_SECONDS = 1.0
_CHANGES_PER_CHECKPOINT = 1000
_PAGES_PER_COPY_STEP = 256
LARGE_WAL = 48 * 1024 * 1024


@dataclass(slots=True)
class Figures:
    """What the writer did so far."""

    groups: int = 0
    operations: int = 0
    largest_group: int = 0
    group_seconds: float = 0.0
    longest_group_seconds: float = 0.0
    failed: int = 0
    checkpoints: int = 0
    longest_checkpoint_seconds: float = 0.0
    wal_bytes: int = 0


class CopyBroken(Exception):
    """A copy was given up, because the store closes or cannot be trusted any more; the message says why."""


class Writer:
    """The life of the writer thread. `on_fatal` is called on it, once, when the file cannot be trusted any more."""

    def __init__(
        self,
        lane: Lane[Work],
        connection: sqlite3.Connection,
        wal: Path,
        clock: Clock,
        failpoints: Failpoints,
        on_fatal: Callable[[str], None],
    ) -> None:
        self._lane = lane
        self._connection = connection
        self._wal = wal
        self._failpoints = failpoints
        self._on_fatal = on_fatal
        self._transaction = SqliteTransaction(connection, clock, failpoints)
        self._changes_copied = connection.total_changes
        self._apart: deque[Call[Work]] = deque()
        self._is_closing = False
        self.figures = Figures()
        self.spreads = {"commit_seconds": Spread(), "group_size": Spread(SIZES)}
        self.broken: str | None = None

    def serve(self) -> None:
        """Take, run, commit, answer, until `close` was asked for."""
        while not self._is_closing:
            calls = self._lane.take_group(_MOST_IN_A_GROUP, _IDLE_SECONDS)
            try:
                self._turn(calls)
                while self._apart:
                    self._run_apart(self._apart.popleft())
            except BaseException as fault:  # noqa: BLE001 -- a writer that dies in silence would hang every caller
                self._break(
                    [call for call in calls if call.state != DONE], f"the writer failed: {fault!r}", unknown=True
                )

    def _turn(self, calls: list[Call[Work]]) -> None:
        group = [call for call in calls if not call.apart]
        if group:
            self._run(group)
        self._look_after_the_log(is_idle=not calls)
        self._apart.extend(call for call in calls if call.apart)

    def close(self, transaction: Transaction) -> None:
        """Asked for as a call of its own, the last: write the marks, empty the log, let go of the file."""
        self._is_closing = True
        if self.broken is not None:
            return
        self._connection.execute("BEGIN IMMEDIATE")
        self._transaction.save_marks()
        self._connection.execute("COMMIT")
        sqlite_custody.leave(self._connection)
        self._connection.close()

    def copy(self, target: Path) -> None:
        """Asked for as a call of its own: a consistent copy of the database. Groups are served between its steps."""
        destination = sqlite3.connect(target, isolation_level=None)
        try:
            self._connection.backup(destination, pages=_PAGES_PER_COPY_STEP, progress=self._serve_between_steps)
            sqlite_custody.mark_as_backup(destination)
        finally:
            destination.close()

    def _serve_between_steps(self, status: int, remaining: int, total: int) -> None:
        self._turn(self._lane.take_group(_MOST_IN_A_GROUP, 0.0))
        if self._lane.refusal is not None:
            raise CopyBroken(self._lane.refusal)

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
            has_changed = self._connection.total_changes > before or self._transaction.has_drawn
            if has_changed:
                self._transaction.save_marks()
            self._failpoints.at("before-commit")
            committing = True
            began = monotonic()
            self._connection.execute("COMMIT")
            if has_changed:
                self.spreads["commit_seconds"].note(monotonic() - began)
                self.spreads["group_size"].note(len(calls))
        except BaseException as fault:  # noqa: BLE001 -- it belongs to a caller, who raises it
            return self._undo(calls, culprit, fault, committing)
        if has_changed:
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

    def _look_after_the_log(self, *, is_idle: bool) -> None:
        """Copy the log into the database after the answers, in small portions, so that no commit waits for much."""
        if self.broken is not None:
            return
        changes = self._connection.total_changes - self._changes_copied
        if changes >= _CHANGES_PER_CHECKPOINT or (is_idle and changes):
            self.figures.wal_bytes = self._wal.stat().st_size
            self._checkpoint("PASSIVE" if self.figures.wal_bytes < LARGE_WAL else "TRUNCATE")

    def _checkpoint(self, mode: str) -> None:
        started = monotonic()
        self._changes_copied = self._connection.total_changes
        try:
            self._connection.execute(f"PRAGMA wal_checkpoint({mode})").fetchall()
        except sqlite3.Error as fault:
            if judge(fault) is Trouble.FATAL:
                self._break([], f"SQLite: {fault}", unknown=False)
        figures = self.figures
        figures.checkpoints += 1
        figures.longest_checkpoint_seconds = max(figures.longest_checkpoint_seconds, monotonic() - started)

    def _count(self, operations: int, seconds: float) -> None:
        figures = self.figures
        figures.groups += 1
        figures.operations += operations
        figures.largest_group = max(figures.largest_group, operations)
        figures.group_seconds += seconds
        figures.longest_group_seconds = max(figures.longest_group_seconds, seconds)
