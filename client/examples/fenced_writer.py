"""A writer whose late write is refused: the fence goes into the same statement as the write.

    FENCEPOST_NAMESPACE=ns_… python client/examples/fenced_writer.py stock.db 'a new value'
    FENCEPOST_NAMESPACE=ns_… python client/examples/fenced_writer.py 'postgresql://…' 'a new value'

A lease alone cannot stop a writer that was paused after its last look at the clock. The row remembers the highest
fence that wrote it, and takes nothing from a lower one.
"""

import os
import sqlite3
import sys
from typing import Any

import fencepost

TABLE = "CREATE TABLE IF NOT EXISTS stock (item TEXT PRIMARY KEY, value TEXT NOT NULL, fence BIGINT NOT NULL)"
WRITE = """
INSERT INTO stock (item, value, fence) VALUES ({0}, {0}, {0})
ON CONFLICT (item) DO UPDATE SET value = excluded.value, fence = excluded.fence WHERE stock.fence <= excluded.fence
"""


class StaleFence(Exception):
    """A later holder has written already."""


def connect(place: str) -> tuple[Any, str]:
    """A connection and how its parameters are written."""
    if place.startswith("postgresql:"):
        import psycopg

        return psycopg.connect(place), "%s"
    return sqlite3.connect(place, timeout=30), "?"


def write(place: str, item: str, value: str, fence: int) -> None:
    """One write, in one transaction. Raises StaleFence and changes nothing when it comes too late."""
    connection, mark = connect(place)
    try:
        cursor = connection.cursor()
        cursor.execute(TABLE)
        cursor.execute(WRITE.format(mark), (item, value, fence))
        if cursor.rowcount != 1:
            raise StaleFence(f"fence {fence} is older than what is stored")
        connection.commit()
    finally:
        connection.close()


def main(place: str, value: str) -> int:
    """Write under a lease."""
    namespace = os.environ["FENCEPOST_NAMESPACE"]
    with fencepost.Client() as fp, fp.lease("stock:apples", namespace=namespace, ttl=10, wait=30) as lease:
        write(place, "apples", value, lease.fencing_token)
        print(f"written with fence {lease.fencing_token}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
