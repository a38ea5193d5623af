"""Freeing space. Nothing here decides anything: a row that the sweep has not reached yet is over all the same.

A batch is chosen by a plain read of an index and deleted under a second look at the same condition, so a key that
began a new life between the two is left alone (a sweep that deletes by key instead of by key and end would take a
live lease with it).
"""

from sqlalchemy import bindparam, delete, select

from app.storage.engine import Reader, Transaction
from app.storage.statement import Statement
from app.storage.tables import lease

_ENDED_LEASES = Statement(
    select(lease.c.key_hash)
    .where(lease.c.absolute_expires_at <= bindparam("now"))
    .order_by(lease.c.absolute_expires_at)
    .limit(bindparam("most"))
)
_DROP_LEASE = Statement(
    delete(lease).where(lease.c.key_hash == bindparam("key_hash"), lease.c.absolute_expires_at <= bindparam("now"))
)


def ended_leases(reader: Reader, most: int) -> list[bytes]:
    """Digests of keys whose lifecycle is over, the oldest first."""
    return [row[0] for row in reader.all(_ENDED_LEASES, now=reader.now(), most=most)]  # type: ignore[misc]


def drop_leases(tx: Transaction, key_hashes: list[bytes]) -> int:
    """Delete those whose lifecycle is over; how many."""
    now = tx.now()
    return sum(tx.execute(_DROP_LEASE, key_hash=key_hash, now=now) for key_hash in key_hashes)
