"""Connections to PostgreSQL: bounded, lent to one operation at a time, and never lent again half read.

A lent connection has until an instant. Past it the socket is shut, so that whoever waits on it is told at once that the
connection is lost: a database that is frozen looks like one that is away. (A timeout thrown into the driver would leave
the protocol half read: PyMySQL #275.) After a failure nothing is remembered: the next operation connects anew, so the
process is back as soon as the database is.

Each connection owns a row of `commit_mark`, see postgres_commit.py.
"""

import os
import socket
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

import gevent
import psycopg
from psycopg import Connection
from psycopg.pq import TransactionStatus

from app.clock import monotonic
from app.storage.engine import Unavailable
from app.storage.statement import Row

Anyone = Connection[Row]
_CONNECT_SECONDS = 2
_GRACE_SECONDS = 1.0
_IDLE_SECONDS = 300.0
_OLD_SECONDS = 3600.0


class Lent:
    """A connection while one operation has it. `slot` names its row of `commit_mark`, `number` what stands there."""

    __slots__ = ("_guard", "connection", "made_at", "number", "slot", "used_at")

    def __init__(self, connection: Anyone, slot: int) -> None:
        self.connection = connection
        self.slot = slot
        self.number = 0
        self.made_at = self.used_at = monotonic()
        self._guard: Any = None

    def guard(self, seconds: float) -> None:
        """Shut the socket after this long, unless `unguard` comes first."""
        self._guard = gevent.get_hub().loop.timer(max(0.0, seconds))
        self._guard.start(self._shut, update=True)  # from now, and not from when the loop last looked at a clock

    def unguard(self) -> None:
        """The operation is over."""
        self._guard.stop()
        self._guard.close()

    def _shut(self) -> None:
        if not self.connection.closed:
            twin = socket.socket(fileno=os.dup(self.connection.pgconn.socket))
            try:
                twin.shutdown(socket.SHUT_RDWR)
            except OSError:
                return  # the other side was faster
            finally:
                twin.close()


class Pool:
    """At most `size` connections. `introduce(connection)` makes a new one known and returns its slot."""

    def __init__(self, url: str, size: int, introduce: Callable[[Anyone], int]) -> None:
        self._url = url
        self._introduce = introduce
        self._places = threading.Semaphore(size)
        self._idle: deque[Lent] = deque()
        self._size = size
        self._closed = False
        self.open = 0
        self.waiting = 0

    def take(self, give_up_at: float) -> Lent:
        """A connection until `give_up_at` (monotonic). Raises Unavailable where none was free, or psycopg's errors."""
        self.waiting += 1
        try:
            is_ours = self._places.acquire(timeout=max(0.0, give_up_at - monotonic()))
        finally:
            self.waiting -= 1
        if not is_ours:
            raise Unavailable("no connection to the database was free in time", committed="no")
        try:
            lent = self._idle_one() or self._new_one()
        except BaseException:
            self._places.release()
            raise
        lent.guard(give_up_at - monotonic() + _GRACE_SECONDS)
        return lent

    def put(self, lent: Lent) -> None:
        """Take it back; it is closed unless it is as it was."""
        lent.unguard()
        try:
            if self._is_fit(lent):
                lent.used_at = monotonic()
                self._idle.append(lent)
            else:
                self._close(lent)
        finally:
            self._places.release()

    def close(self) -> None:
        """Let go of those that nobody has; others follow as they come back."""
        self._closed = True
        while self._idle:
            self._close(self._idle.pop())

    def figures(self) -> dict[str, int]:
        """How many are open, idle, allowed, and how many operations wait for one."""
        return {"open": self.open, "idle": len(self._idle), "most": self._size, "waiting": self.waiting}

    def _idle_one(self) -> Lent | None:
        now = monotonic()
        while self._idle and self._idle[0].used_at < now - _IDLE_SECONDS:
            self._close(self._idle.popleft())
        while self._idle:
            lent = self._idle.pop()
            if not lent.connection.closed and lent.made_at > now - _OLD_SECONDS:
                return lent
            self._close(lent)
        return None

    def _new_one(self) -> Lent:
        connection = psycopg.connect(
            self._url,
            autocommit=True,
            prepare_threshold=None,
            connect_timeout=_CONNECT_SECONDS,
            tcp_user_timeout=10_000,
        )
        self.open += 1
        try:
            return Lent(connection, self._introduce(connection))
        except BaseException:
            self.open -= 1
            connection.close()
            raise

    def _is_fit(self, lent: Lent) -> bool:
        state = lent.connection.info.transaction_status
        return not self._closed and not lent.connection.closed and state == TransactionStatus.IDLE and lent.number >= 0

    def _close(self, lent: Lent) -> None:
        self.open -= 1
        lent.connection.close()
