"""Durable counters per address and UTC day. Addresses are stored as digests."""

from sqlalchemy import bindparam, delete, select

from app.storage.engine import Transaction
from app.storage.statement import Statement, insert_if_absent, upsert
from app.storage.tables import daily_count

_SELECT = Statement(
    select(daily_count.c.used).where(
        daily_count.c.day == bindparam("day"), daily_count.c.counter_hash == bindparam("counter_hash")
    )
)
_HOLD_PLACE = Statement(lambda dialect: insert_if_absent(dialect, daily_count, {"used": 0}))
_SAVE = Statement(lambda dialect: upsert(dialect, daily_count))
_DROP_OLD = Statement(delete(daily_count).where(daily_count.c.day < bindparam("day")))


def used(tx: Transaction, counter_hash: bytes, day: int) -> int:
    """How much of the day's allowance is used or reserved; the counter is locked."""
    row = tx.lock(_SELECT, _HOLD_PLACE, counter_hash=counter_hash, day=day)
    return 0 if row is None else int(row[0])  # type: ignore[call-overload]


def save(tx: Transaction, counter_hash: bytes, day: int, count: int) -> None:
    """Store a counter."""
    tx.write(_SAVE, counter_hash=counter_hash, day=day, used=count)


def drop_before(tx: Transaction, day: int) -> int:
    """Forget the days before this one; the number of counters dropped."""
    return tx.execute(_DROP_OLD, day=day)
