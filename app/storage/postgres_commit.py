"""What became of a commit whose answer was lost.

`pg_xact_status` cannot be trusted with that: after a crash the id of a transaction that never reached the disk is given
to another one, and whoever asks then is told of the other's commit. So each connection has a row of `commit_mark`,
which belongs to nobody else, and each transaction counts its number up by one as the last thing before COMMIT, in the
same trip. Reading that row back tells whether the commit happened, on any engine that has rows.

Whoever reads it back first *closes* the row: the number becomes -1 unless the commit had counted it up. A transaction
whose last bytes are still on their way, behind a broken connection, finds the row closed, breaks the column's NOT NULL,
and is rolled back. So "it did not happen" stays true, and the operation may be run again. While the old transaction is
at its commit its row lock makes the reader wait for how it ends.
"""

from psycopg import sql

from app.storage.postgres_pool import Anyone
from app.tokens import random_bytes

_MAKE = sql.SQL("INSERT INTO commit_mark (slot, number, used_at) VALUES (%(slot)s, 0, clock_timestamp())")
_COUNT = sql.SQL(
    "UPDATE commit_mark SET number = CASE WHEN number = %(before)s THEN %(number)s END, used_at = clock_timestamp()"
    " WHERE slot = %(slot)s"
)
_PATIENCE = sql.SQL("SELECT set_config('lock_timeout', '1s', true)")
_CLOSE = sql.SQL("UPDATE commit_mark SET number = -1 WHERE slot = %(slot)s AND number = %(before)s")
_READ = sql.SQL("SELECT number FROM commit_mark WHERE slot = %(slot)s")
_DROP_OLD = sql.SQL("DELETE FROM commit_mark WHERE used_at < clock_timestamp() - interval '1 day'")


def make_slot(connection: Anyone) -> int:
    """A row of this connection's own; its name."""
    slot = int.from_bytes(random_bytes(8), "big") >> 1
    connection.execute(_MAKE, {"slot": slot})
    return slot


def count(connection: Anyone, slot: int, number: int) -> None:
    """Inside the transaction, before COMMIT: this is the connection's commit with this number, from 1."""
    connection.execute(_COUNT, {"slot": slot, "before": number - 1, "number": number})


def was_committed(connection: Anyone, slot: int, number: int) -> bool | None:
    """Over another connection: whether that commit happened. False: and it never will. None: nobody can say."""
    of_slot = {"slot": slot, "before": number - 1}
    with connection.transaction():
        connection.execute(_PATIENCE)
        if connection.execute(_CLOSE, of_slot).rowcount == 1:
            return False
        found = connection.execute(_READ, of_slot).fetchone()
    return None if found is None else {number: True, -1: False}.get(int(str(found[0])))


def drop_old(connection: Anyone) -> int:
    """Forget the rows of connections that are long gone (a connection lives for an hour); how many."""
    return connection.execute(_DROP_OLD).rowcount
