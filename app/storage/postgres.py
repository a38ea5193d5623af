"""PostgreSQL 14 or newer: any number of processes and machines, one row lock for each decision.

READ COMMITTED is enough: lock first, then read, then decide, then write. A connection that is lost before COMMIT was
sent has done nothing, and the operation simply runs again. One that is lost at COMMIT leaves it unknown: the database
is asked what became of the transaction, by its id, before anybody is answered.
"""

from collections.abc import Callable
from typing import TypeVar

import gevent
import psycopg
from psycopg import errors
from psycopg_pool import ConnectionPool, PoolTimeout

from app.clock import RisingOffset, monotonic, no_offset
from app.storage.engine import Reader, Transaction, Unavailable
from app.storage.postgres_start import prepare, raise_epoch
from app.storage.postgres_transaction import Anyone, PostgresReader, PostgresTransaction, TimelineChanged
from app.testmode import Failpoints

T = TypeVar("T")

_AGAIN = (errors.SerializationFailure, errors.DeadlockDetected)
_PAUSE_SECONDS = 0.05
_ASK_SECONDS = 3.0


class _RunAgain(Exception):
    """Nothing was committed and another try may succeed."""


class PostgresEngine:
    """The Engine of the port on a PostgreSQL database.

    `on_commit(topics)` is called after each commit, before the caller is answered. `connections` is the most that this
    process keeps open.
    """

    def __init__(
        self,
        url: str,
        *,
        offset: Callable[[], int] = no_offset,
        failpoints: Failpoints | None = None,
        on_commit: Callable[[list[str]], None] | None = None,
        deadline_seconds: float = 3.0,
        connections: int = 10,
        allow_weak_durability: bool = False,
    ) -> None:
        self._offset = RisingOffset(offset)
        self._failpoints = failpoints or Failpoints()
        self._on_commit = on_commit
        self._deadline_seconds = deadline_seconds
        self._started = prepare(url, allow_weak_durability=allow_weak_durability)
        self._pool: ConnectionPool[Anyone] = ConnectionPool(
            url,
            min_size=1,
            max_size=connections,
            timeout=deadline_seconds,
            kwargs={"autocommit": True, "prepare_threshold": None, "connect_timeout": 3, "tcp_user_timeout": 10_000},
            open=True,
        )

    def run(self, operation: Callable[[Transaction], T], *, urgent: bool = False) -> T:
        """As the port says; `urgent` has no meaning here, for there is no queue."""
        give_up_at = monotonic() + self._deadline_seconds
        while True:
            try:
                value, topics = self._attempt(operation)
            except _RunAgain as fault:
                if monotonic() >= give_up_at:
                    raise Unavailable(str(fault), committed="no") from None
                gevent.sleep(_PAUSE_SECONDS)
                continue
            if self._on_commit is not None and topics:
                self._on_commit(topics)
            self._failpoints.at("after-commit")
            return value

    def read(self, query: Callable[[Reader], T]) -> T:
        """As the port says."""
        give_up_at = monotonic() + self._deadline_seconds
        while True:
            try:
                with self._pool.connection() as connection:
                    return query(PostgresReader(connection, self._offset))
            except PoolTimeout:
                raise Unavailable("no connection to the database was free in time", committed="no") from None
            except (psycopg.OperationalError, psycopg.InterfaceError) as fault:
                if monotonic() >= give_up_at:
                    raise Unavailable(_said(fault), committed="no") from None
                gevent.sleep(_PAUSE_SECONDS)

    def report(self) -> dict[str, object]:
        """As the port says."""
        figures = self._pool.get_stats()
        problems = [] if figures.get("pool_size", 0) else ["the database cannot be reached"]
        return {**self._started, "pool": figures, "problems": problems}

    def close(self) -> None:
        """As the port says."""
        self._pool.close()

    def _attempt(self, operation: Callable[[Transaction], T]) -> tuple[T, list[str]]:
        try:
            with self._pool.connection() as connection:
                tx = PostgresTransaction(connection, self._offset, self._failpoints, self._deadline_seconds)
                value = self._operate(operation, tx)
                if tx.has_written:
                    self._failpoints.at("before-commit")
                    self._commit(connection, tx)
                return value, tx.topics
        except PoolTimeout:
            raise Unavailable("no connection to the database was free in time", committed="no") from None

    def _operate(self, operation: Callable[[Transaction], T], tx: PostgresTransaction) -> T:
        try:
            return operation(tx)
        except TimelineChanged:
            tx.roll_back()
            with self._pool.connection() as apart:
                raise_epoch(apart)
            raise _RunAgain("the database was promoted") from None
        except errors.LockNotAvailable:
            tx.roll_back()
            raise Unavailable("another operation held the row for too long", committed="no") from None
        except _AGAIN as fault:
            tx.roll_back()
            raise _RunAgain(_said(fault)) from None
        except (psycopg.OperationalError, psycopg.InterfaceError) as fault:
            raise _RunAgain(_said(fault)) from None
        except BaseException:
            tx.roll_back()
            raise

    def _commit(self, connection: Anyone, tx: PostgresTransaction) -> None:
        try:
            tx.commit()
        except _AGAIN as fault:
            raise _RunAgain(_said(fault)) from None
        except (psycopg.OperationalError, psycopg.InterfaceError) as fault:
            connection.close()
            if not self._was_committed(tx.transaction_id):
                raise _RunAgain(_said(fault)) from None

    def _was_committed(self, transaction_id: str | None) -> bool:
        """What became of a transaction whose COMMIT got no answer. Raises Unavailable when nobody can say."""
        give_up_at = monotonic() + _ASK_SECONDS
        while monotonic() < give_up_at and transaction_id is not None:
            try:
                with self._pool.connection() as connection:
                    found = connection.execute("SELECT pg_xact_status(%s::xid8)", (transaction_id,)).fetchone()
            except (psycopg.Error, PoolTimeout):
                gevent.sleep(_PAUSE_SECONDS)
                continue
            match found:
                case ("committed",):
                    return True
                case ("aborted",):
                    return False
            gevent.sleep(_PAUSE_SECONDS)
        raise Unavailable("the connection was lost at the commit", committed="unknown")


def _said(fault: Exception) -> str:
    """The kind of fault, without what the driver says of hosts and statements."""
    return f"the database said {type(fault).__name__}"
