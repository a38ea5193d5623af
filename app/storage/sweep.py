"""Freeing space. Nothing here decides anything: a row that the sweep has not reached yet is over all the same.

A batch is chosen by a plain read of an index and deleted under a second look at the same condition, so a key that
began a new life between the two is left alone (a sweep that deletes by key instead of by key and end would take a
live lease with it). Whatever deletes several rows takes them in the order of their keys, so that two never wait for
each other.
"""

from sqlalchemy import bindparam, delete, select

from app.storage.engine import Reader, Transaction
from app.storage.statement import Statement
from app.storage.tables import handoff, handoff_history, lease

_ENDED_LEASES = Statement(
    select(lease.c.key_hash)
    .where(lease.c.absolute_expires_at <= bindparam("now"))
    .order_by(lease.c.absolute_expires_at)
    .limit(bindparam("most"))
)
_DROP_LEASE = Statement(
    delete(lease).where(lease.c.key_hash == bindparam("key_hash"), lease.c.absolute_expires_at <= bindparam("now"))
)

_OVER_HANDOFFS = Statement(
    select(handoff.c.handoff_id)
    .where(handoff.c.removable_at <= bindparam("now"))
    .order_by(handoff.c.removable_at)
    .limit(bindparam("most"))
)
_DROP_HANDOFF = Statement(
    delete(handoff).where(handoff.c.handoff_id == bindparam("handoff_id"), handoff.c.removable_at <= bindparam("now"))
)
_DROP_HISTORY = Statement(delete(handoff_history).where(handoff_history.c.handoff_id == bindparam("handoff_id")))


def ended_leases(reader: Reader, most: int) -> list[bytes]:
    """Digests of keys whose lifecycle is over, the oldest first."""
    return [row[0] for row in reader.all(_ENDED_LEASES, now=reader.now(), most=most)]  # type: ignore[misc]


def drop_leases(tx: Transaction, key_hashes: list[bytes]) -> int:
    """Delete those whose lifecycle is over; how many."""
    now = tx.now()
    return sum(tx.execute_each(_DROP_LEASE, [{"key_hash": key_hash, "now": now} for key_hash in sorted(key_hashes)]))


def over_handoffs(reader: Reader, most: int) -> list[str]:
    """Names of handoffs that have expired and whose creation can no longer be sent again, the oldest first."""
    return [str(row[0]) for row in reader.all(_OVER_HANDOFFS, now=reader.now(), most=most)]


def drop_handoffs(tx: Transaction, handoff_ids: list[str]) -> int:
    """Delete those that still are over, with their histories; how many."""
    now, names = tx.now(), sorted(handoff_ids)
    touched = tx.execute_each(_DROP_HANDOFF, [{"handoff_id": handoff_id, "now": now} for handoff_id in names])
    dropped = [handoff_id for handoff_id, rows in zip(names, touched, strict=True) if rows]
    tx.execute_each(_DROP_HISTORY, [{"handoff_id": handoff_id} for handoff_id in dropped])
    return len(dropped)
