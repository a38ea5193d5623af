"""PostgreSQL 14 or newer: any number of processes and machines, one row lock for each decision.

READ COMMITTED is enough: lock first, then read, then decide, then write. A connection that is lost before COMMIT was
sent has done nothing, and the operation simply runs again. One that is lost at COMMIT leaves it unknown: what became of
it is read back (postgres_commit.py) before anybody is answered.
"""

from collections.abc import Callable, Mapping
from typing import TypeVar

import gevent
import psycopg
from psycopg import errors

from app.clock import DatabaseClock, monotonic
from app.spread import Spread
from app.storage import postgres_commit
from app.storage.engine import Reader, Transaction, Unavailable
from app.storage.postgres_pool import Anyone, Lent, Pool
from app.storage.postgres_reads import PostgresReader
from app.storage.postgres_start import prepare, raise_epoch
from app.storage.postgres_transaction import PostgresTransaction, TimelineChanged
from app.storage.turns import Turns
from app.testmode import Failpoints

T = TypeVar("T")

_COLLIDED = (errors.SerializationFailure, errors.DeadlockDetected)
# What a server says that was demoted, is starting or stopping, or has no room.
_AWAY = (
    psycopg.OperationalError,
    psycopg.InterfaceError,
    errors.ReadOnlySqlTransaction,
    errors.ObjectNotInPrerequisiteState,
)
_PAUSE_SECONDS = 0.05
_ASK_SECONDS = 3.0


class _RunAgain(Exception):
    """Nothing was committed and another try may succeed."""


class PostgresEngine:
    """The Engine of the port on a PostgreSQL database.

    `on_commit(topics)` is called after each commit, before the caller is answered. `connections` is the most that this
    process keeps open. `clock` is told the database's clock with every answer, and knows it in between.
    """

    def __init__(
        self,
        url: str,
        *,
        clock: DatabaseClock | None = None,
        failpoints: Failpoints | None = None,
        on_commit: Callable[[list[str]], None] | None = None,
        deadline_seconds: float = 3.0,
        connections: int = 10,
        allow_weak_durability: bool = False,
    ) -> None:
        self._clock = clock or DatabaseClock()
        self._failpoints = failpoints or Failpoints()
        self._on_commit = on_commit
        self._deadline_seconds = deadline_seconds
        self._started = prepare(url, allow_weak_durability=allow_weak_durability)
        self.identity = str(self._started["identity"])
        """What tells this database from others."""
        self._pool = Pool(url, connections, _introduce)
        self._turns = Turns()
        self._away: str | None = None
        self.trips = 0
        """Round trips to the database so far."""
        self.spreads: Mapping[str, Spread] = {"commit_seconds": Spread()}
        self.read(lambda reader: reader.now())

    def run(self, operation: Callable[[Transaction], T], *, urgent: bool = False) -> T:
        """As the port says; `urgent` has no meaning here, for there is no queue."""
        give_up_at = monotonic() + self._deadline_seconds
        while True:
            tx = PostgresTransaction(
                self._pool,
                self._turns,
                self._clock,
                self._failpoints,
                give_up_at=give_up_at,
                patience_seconds=max(0.05, give_up_at - monotonic()),
                on_trip=self._count_trip,
            )
            try:
                value = self._attempt(operation, tx)
            except _RunAgain as fault:
                self._pause(fault, give_up_at)
                continue
            self._away = None
            if self._on_commit is not None and tx.topics:
                self._on_commit(tx.topics)
            self._failpoints.at("after-commit")
            return value

    def read(self, query: Callable[[Reader], T]) -> T:
        """As the port says."""
        give_up_at = monotonic() + self._deadline_seconds
        while True:
            try:
                lent = self._pool.take(give_up_at)
                try:
                    value = query(PostgresReader(lent.connection, self._clock, self._count_trip))
                except gevent.GreenletExit:
                    lent.connection.close()
                    raise
                finally:
                    self._pool.put(lent)
            except _AWAY as fault:
                self._pause(_RunAgain(_said(fault)), give_up_at)
            else:
                self._away = None
                return value

    def report(self) -> dict[str, object]:
        """As the port says."""
        problems = [] if self._away is None else [f"the database cannot be reached: {self._away}"]
        return {**self._started, "pool": self._pool.figures(), "trips": self.trips, "problems": problems}

    def close(self) -> None:
        """As the port says."""
        self._pool.close()

    def _attempt(self, operation: Callable[[Transaction], T], tx: PostgresTransaction) -> T:
        try:
            value = self._operate(operation, tx)
            if not tx.has_changed:
                self._let_go(tx)
                return value
            self._failpoints.at("before-commit")
            lost = self._commit(tx)
        finally:
            tx.leave()
        if lost is not None and not self._was_committed(lost):
            raise _RunAgain("the connection was lost at the commit")
        return value

    def _operate(self, operation: Callable[[Transaction], T], tx: PostgresTransaction) -> T:
        try:
            return operation(tx)
        except TimelineChanged:
            tx.abandon()
            tx.leave()
            self._raise_epoch()
            raise _RunAgain("the database was promoted") from None
        except errors.LockNotAvailable:
            tx.roll_back()
            raise Unavailable("another operation held the row for too long", committed="no") from None
        except _COLLIDED as fault:
            tx.roll_back()
            raise _RunAgain(_said(fault)) from None
        except _AWAY as fault:
            tx.abandon()
            raise _RunAgain(_said(fault)) from None
        except Exception:
            self._let_go(tx)
            raise
        except BaseException:  # it may have struck between a question and its answer
            tx.abandon()
            raise

    def _let_go(self, tx: PostgresTransaction) -> None:
        """Undo what came to nothing. That the connection is lost takes nothing from what was decided."""
        try:
            tx.roll_back()
        except _AWAY:
            tx.abandon()

    def _commit(self, tx: PostgresTransaction) -> Lent | None:
        """Commit; the connection if it was lost over that, so that nobody knows yet."""
        began = monotonic()
        try:
            tx.commit()
            self.spreads["commit_seconds"].note(monotonic() - began)
        except _COLLIDED as fault:
            tx.roll_back()
            raise _RunAgain(_said(fault)) from None
        except _AWAY as fault:
            if fault.sqlstate is not None and not tx.is_lost:
                tx.abandon()  # the server refused, and told so
                raise _RunAgain(_said(fault)) from None
            tx.abandon()
            return tx.leave()
        return None

    def _was_committed(self, lost: Lent) -> bool:
        """What became of a commit that got no answer. Raises Unavailable when nobody can say."""
        give_up_at = monotonic() + _ASK_SECONDS
        while monotonic() < give_up_at:
            self._count_trip()
            try:
                lent = self._pool.take(give_up_at)
                try:
                    found = postgres_commit.was_committed(lent.connection, lost.slot, lost.number)
                finally:
                    self._pool.put(lent)
            except (*_AWAY, Unavailable):
                gevent.sleep(_PAUSE_SECONDS)
                continue
            if found is None:
                break
            return found
        raise Unavailable("the connection was lost at the commit", committed="unknown")

    def _raise_epoch(self) -> None:
        lent = self._pool.take(monotonic() + self._deadline_seconds)
        try:
            raise_epoch(lent.connection)
        except _AWAY as fault:
            raise _RunAgain(_said(fault)) from None
        finally:
            self._pool.put(lent)

    def _pause(self, fault: _RunAgain, give_up_at: float) -> None:
        self._away = str(fault)
        if monotonic() + _PAUSE_SECONDS >= give_up_at:
            raise Unavailable(str(fault), committed="no") from None
        gevent.sleep(_PAUSE_SECONDS)

    def _count_trip(self) -> None:
        self.trips += 1


def _introduce(connection: Anyone) -> int:
    """A new connection may lead to another cluster than the last one did: look, before it is used."""
    raise_epoch(connection)
    return postgres_commit.make_slot(connection)


def _said(fault: Exception) -> str:
    """The kind of fault, without what the driver says of hosts and statements."""
    return f"the database said {type(fault).__name__}"
