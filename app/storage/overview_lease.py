"""Leases in the order in which the page shows them: live ones the soonest to end first, ended ones the latest first."""

from dataclasses import dataclass

from sqlalchemy import BigInteger, LargeBinary, bindparam, case, select, true, tuple_

from app.core.lease import LeaseRecord
from app.storage.engine import Reader
from app.storage.lease import NAMES, record_of
from app.storage.statement import Row, Statement
from app.storage.tables import lease

_COLUMNS = (lease.c.key_hash, *(lease.c[name] for name in NAMES))
# As one comparison: SQLite takes an OR apart, leaves the order of the index aside and sorts all rows.
_PLACE = tuple_(bindparam("at", type_=BigInteger), bindparam("key_hash", type_=LargeBinary))
_HELD = Statement(
    select(*_COLUMNS)
    .where(
        lease.c.owner_hash.is_not(None),
        lease.c.lease_expires_at > bindparam("now"),
        tuple_(lease.c.lease_expires_at, lease.c.key_hash) > _PLACE,
    )
    .order_by(lease.c.lease_expires_at, lease.c.key_hash)
    .limit(bindparam("most"))
)
_ENDED = Statement(
    select(*_COLUMNS)
    .where(
        lease.c.fence > 0,
        lease.c.absolute_expires_at > bindparam("now"),
        case((lease.c.owner_hash.is_(None), true()), else_=lease.c.lease_expires_at <= bindparam("now")),
        tuple_(lease.c.absolute_expires_at, lease.c.key_hash) < _PLACE,
    )
    .order_by(lease.c.absolute_expires_at.desc(), lease.c.key_hash.desc())
    .limit(bindparam("most"))
)
_LAPSED = Statement(
    select(*_COLUMNS)
    .where(
        lease.c.owner_hash.is_not(None),
        lease.c.lease_expires_at <= bindparam("now"),
        lease.c.lease_expires_at > bindparam("since"),
        lease.c.absolute_expires_at > bindparam("now"),
    )
    .order_by(lease.c.lease_expires_at.desc(), lease.c.key_hash.desc())
    .limit(bindparam("most"))
)
_FOREVER = 1 << 62
LeasePlace = tuple[int, bytes]


@dataclass(frozen=True, slots=True)
class ListedLease:
    """A row of the list: the key's digest, which says nothing of the key, and the record."""

    key_hash: bytes
    record: LeaseRecord


def held(reader: Reader, after: LeasePlace | None, most: int) -> list[ListedLease]:
    """Live leases after the place."""
    at, key_hash = after or (-1, b"")
    return _rows(reader, _HELD, at, key_hash, most)


def ended(reader: Reader, after: LeasePlace | None, most: int) -> list[ListedLease]:
    """Keys whose lifecycle runs but that nobody holds, the youngest lifecycle first."""
    at, key_hash = after or (_FOREVER, b"\xff" * 33)
    return _rows(reader, _ENDED, at, key_hash, most)


def lapsed(reader: Reader, since: int, most: int) -> list[ListedLease]:
    """Keys whose owner let the lease lapse after this instant, and that nobody took since: the latest first."""
    found = reader.all(_LAPSED, now=reader.now(), since=since, most=most)
    return [_row(row) for row in found]


def _rows(reader: Reader, statement: Statement, at: int, key_hash: bytes, most: int) -> list[ListedLease]:
    found = reader.all(statement, now=reader.now(), at=at, key_hash=key_hash, most=most)
    return [_row(row) for row in found]


def _row(row: Row) -> ListedLease:
    return ListedLease(bytes(row[0]), record_of(row[1:]))  # type: ignore[call-overload]
