"""The port between the use cases and a database.

`run` gives an operation a transaction and returns its value only after the commit is durable; the topics the
operation rang are signalled between the two. `read` looks without locks. The database's own clock, or the one
clock of the embedded engine, is read inside: time is a part of what the store knows.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar

from app.spread import Spread
from app.storage.statement import Row, Statement, Value

T = TypeVar("T")


class Unavailable(Exception):
    """The database is away, stuck or too busy.

    `committed` says what is known of the operation: "no" when nothing was written, "unknown" when the answer to
    a commit did not come in time. A repeat-safe call may simply be sent again.
    """

    def __init__(self, reason: str, *, committed: Literal["no", "unknown"], retry_after_seconds: int = 1) -> None:
        super().__init__(reason)
        self.reason = reason
        self.committed: Literal["no", "unknown"] = committed
        self.retry_after_seconds = retry_after_seconds


@dataclass(frozen=True, slots=True)
class Lock:
    """A step of a trip: lock the row that `select` names, as `Transaction.lock` does."""

    select: Statement
    insert: Statement | None = None


class Reader(Protocol):
    """Plain reads of committed state."""

    def one(self, statement: Statement, **parameters: Value) -> Row | None:
        """The first row, or None."""
        ...

    def all(self, statement: Statement, **parameters: Value) -> list[Row]:
        """Every row."""
        ...

    def together(self, *statements: Statement, **parameters: Value) -> list[list[Row]]:
        """The rows of each, in one trip to the database where it is far away. All take these parameters."""
        ...

    def now(self) -> int:
        """The deciding instant, microseconds since the epoch, read at this call."""
        ...

    def not_before(self, instant: int) -> None:
        """Never answer less than this from `now()`: the last change of the row, should the clock step back."""
        ...


class Transaction(Reader, Protocol):
    """A write transaction. An operation may be run again after a rollback: it must act only through this."""

    def execute(self, statement: Statement, **parameters: Value) -> int:
        """Run it; the number of rows touched."""
        ...

    def write(self, statement: Statement, **parameters: Value) -> None:
        """Run it where nobody asks how many rows it touched; it may travel together with what follows."""
        ...

    def execute_each(self, statement: Statement, parameters: Sequence[dict[str, Value]]) -> list[int]:
        """Run it once with each of these, in this order and in one trip; the number of rows each touched."""
        ...

    def lock(self, select: Statement, insert: Statement | None = None, **parameters: Value) -> Row | None:
        """The row that `select` names, locked until the end of the transaction; None where there is none.

        A missing row cannot be locked on PostgreSQL, so an operation that may create it passes `insert`, which puts
        an empty row in its place and does nothing on conflict; it takes the same parameters. An engine that needs
        no such row does not run it. `select` is written without FOR UPDATE; the engine adds what its database needs.
        After this call `now()` is an instant at which the lock was held.
        """
        ...

    def trip(self, *steps: Statement | Lock, **parameters: Value) -> list[list[Row]]:
        """Read and lock in this order, in one trip, all with these parameters; the rows of each step.

        A read sees what was committed when it ran: one that stands behind a lock sees what the lock protects.
        """
        ...

    def next_fence(self) -> int:
        """Draw the next fencing token: epoch * 2**40 + count. Call it only while the key's row is locked."""
        ...

    def ring(self, topic: str) -> None:
        """Signal this topic once the transaction is durable, and not at all if it is rolled back."""
        ...

    def failpoint(self, name: str) -> None:
        """Let a test stop here; `after-lock` and `after-decide` are called by use cases. Nothing outside test mode."""
        ...


class Engine(Protocol):
    """A store of one kind."""

    def run(self, operation: Callable[[Transaction], T], *, urgent: bool = False) -> T:
        """Run a write operation and return its value after the commit is durable.

        `urgent` puts it before operations that are still queued: for the first in a line of waiting callers.
        Raises Unavailable; whatever the operation raises comes through after a rollback of that operation alone.
        """
        ...

    def read(self, query: Callable[[Reader], T]) -> T:
        """Run a query against committed state. Raises Unavailable."""
        ...

    @property
    def spreads(self) -> Mapping[str, Spread]:
        """`commit_seconds`: how long commits took; `group_size`: how many operations were committed together."""
        ...

    def report(self) -> dict[str, object]:
        """Figures for readiness and the health page: engine, version, durability, queue, problems."""
        ...

    def close(self) -> None:
        """Finish what is queued, then let go of the database."""
        ...
