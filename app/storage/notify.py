"""Hints between processes through PostgreSQL's own LISTEN and NOTIFY.

Never inside a transaction that writes: a NOTIFY there makes all commits of the server queue up behind one lock. So one
connection of a process does nothing but send, and one nothing but listen; neither ever stands in a transaction, which
would fill the server's queue (que #229). Behind a pooler in transaction mode nothing is heard; then each change of
another process is seen by looking, within about a second.
"""

import psycopg

from app.storage.postgres_pool import Anyone

_CHANNEL = "fencepost"
MOST_BYTES = 7_900
"""The longest message; PostgreSQL takes less than 8,000 bytes."""


class ChannelAway(Exception):
    """No hint can be sent or heard now."""


class PostgresChannel:
    """Two connections, opened when they are needed and again after they were lost."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._sends: Anyone | None = None
        self._hears: Anyone | None = None

    def send(self, messages: list[str]) -> None:
        """Send each to every process that listens. Raises ChannelAway."""
        try:
            self._sends = self._sends or self._open()
            with self._sends.pipeline():
                for message in messages:
                    self._sends.execute("SELECT pg_notify(%s, %s)", (_CHANNEL, message))
        except psycopg.Error as fault:
            self._drop_sender()
            raise ChannelAway(type(fault).__name__) from None

    def listen(self) -> None:
        """Begin to listen, anew where it was lost. Raises ChannelAway."""
        try:
            self._drop_listener()
            self._hears = self._open()
            self._hears.execute(f"LISTEN {_CHANNEL}")
        except psycopg.Error as fault:
            self._drop_listener()
            raise ChannelAway(type(fault).__name__) from None

    def hear(self, seconds: float) -> list[str]:
        """What came, after at most so long; the connection is tried where nothing did. Raises ChannelAway."""
        if self._hears is None:
            raise ChannelAway("not listening")
        try:
            heard = [notice.payload for notice in self._hears.notifies(timeout=seconds, stop_after=1)]
            if not heard:
                self._hears.execute("SELECT 1")
        except psycopg.Error as fault:
            self._drop_listener()
            raise ChannelAway(type(fault).__name__) from None
        return heard

    def close(self) -> None:
        """Let go of both."""
        self._drop_sender()
        self._drop_listener()

    def _drop_sender(self) -> None:
        dropped, self._sends = self._sends, None
        if dropped is not None:
            dropped.close()

    def _drop_listener(self) -> None:
        dropped, self._hears = self._hears, None
        if dropped is not None:
            dropped.close()

    def _open(self) -> Anyone:
        return psycopg.connect(
            self._url, autocommit=True, prepare_threshold=None, connect_timeout=3, tcp_user_timeout=10_000
        )
