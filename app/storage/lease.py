"""The lease row: one per key, found by the key's digest."""

from dataclasses import fields
from operator import attrgetter

from sqlalchemy import bindparam, select

from app.core.instants import SECOND
from app.core.lease import LeaseRecord
from app.storage.engine import Reader, Transaction
from app.storage.statement import Row, Statement, Value, insert_if_absent, upsert
from app.storage.tables import lease

NAMES = [field.name for field in fields(LeaseRecord)]
_values = attrgetter(*NAMES)  # dataclasses.astuple copies deeply, at half the cost of the whole operation
_FENCE = NAMES.index("fence")
_NUMBERS = ("fence", "attempt", "ttl_seconds", "granted_at", "lease_expires_at", "absolute_expires_at")
_EMPTY: dict[str, Value] = {**dict.fromkeys(_NUMBERS, 0), "cause": ""}

_SELECT = Statement(select(*(lease.c[name] for name in NAMES)).where(lease.c.key_hash == bindparam("key_hash")))
_HOLD_PLACE = Statement(lambda dialect: insert_if_absent(dialect, lease, _EMPTY))
_SAVE = Statement(lambda dialect: upsert(dialect, lease))


def lock(tx: Transaction, key_hash: bytes) -> LeaseRecord | None:
    """The record of a key that exists, locked; None where there is none."""
    return _record(tx, tx.lock(_SELECT, key_hash=key_hash))


def lock_or_make(tx: Transaction, key_hash: bytes) -> LeaseRecord | None:
    """The same for a use case that will save a record: what it locks is there even for a key never seen."""
    return _record(tx, tx.lock(_SELECT, _HOLD_PLACE, key_hash=key_hash))


def find(reader: Reader, key_hash: bytes) -> LeaseRecord | None:
    """The record of a key as committed, without a lock."""
    return _record(reader, reader.one(_SELECT, key_hash=key_hash))


def save(tx: Transaction, key_hash: bytes, record: LeaseRecord) -> None:
    """Write the whole record of a locked key."""
    tx.write(_SAVE, key_hash=key_hash, **dict(zip(NAMES, _values(record), strict=True)))


def record_of(row: Row) -> LeaseRecord:
    """The record of a row that has the columns NAMES."""
    return LeaseRecord(*row)  # type: ignore[arg-type]


def _record(reader: Reader, row: Row | None) -> LeaseRecord | None:
    if row is None or row[_FENCE] == 0:
        return None
    record = record_of(row)
    reader.not_before(_last_change(record))
    return record


def _last_change(record: LeaseRecord) -> int:
    """When it was granted, renewed or completed. Whatever else ends an ownership cannot be undone by the clock."""
    renewed_at = record.lease_expires_at - record.ttl_seconds * SECOND
    return max(record.granted_at, renewed_at, record.completed_at or 0)
