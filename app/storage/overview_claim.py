"""Claims in the order in which the page shows them: unfinished ones oldest first, completed ones latest first."""

from dataclasses import dataclass, fields

from sqlalchemy import BigInteger, LargeBinary, bindparam, select, tuple_

from app.core.claim import ClaimRecord
from app.storage.engine import Reader
from app.storage.statement import Row, Statement
from app.storage.tables import claim

_NAMES = [field.name for field in fields(ClaimRecord)]
_COLUMNS = (claim.c.claim_hash, claim.c.namespace, claim.c.action_key, *(claim.c[name] for name in _NAMES))
_PLACE = tuple_(bindparam("at", type_=BigInteger), bindparam("claim_hash", type_=LargeBinary))
_ONE = Statement(select(*_COLUMNS).where(claim.c.claim_hash == bindparam("claim_hash")))
_OPEN = Statement(
    select(*_COLUMNS)
    .where(
        claim.c.completed_at.is_(None),
        claim.c.expires_at > bindparam("now"),
        tuple_(claim.c.claimed_at, claim.c.claim_hash) > _PLACE,
    )
    .order_by(claim.c.claimed_at, claim.c.claim_hash)
    .limit(bindparam("most"))
)
_COMPLETED = Statement(
    select(*_COLUMNS)
    .where(
        claim.c.completed_at.is_not(None),
        claim.c.expires_at > bindparam("now"),
        tuple_(claim.c.completed_at, claim.c.claim_hash) < _PLACE,
    )
    .order_by(claim.c.completed_at.desc(), claim.c.claim_hash.desc())
    .limit(bindparam("most"))
)
_FOREVER = 1 << 62
ClaimPlace = tuple[int, bytes]


@dataclass(frozen=True, slots=True)
class ListedClaim:
    """A row of the list: which action, by its names, and the record."""

    claim_hash: bytes
    namespace: bytes
    action_key: bytes
    record: ClaimRecord


def unfinished(reader: Reader, after: ClaimPlace | None, most: int) -> list[ListedClaim]:
    """Claims that were not completed, after the place."""
    at, claim_hash = after or (-1, b"")
    return _rows(reader, _OPEN, at, claim_hash, most)


def completed(reader: Reader, after: ClaimPlace | None, most: int) -> list[ListedClaim]:
    """Claims with their result recorded, after the place."""
    at, claim_hash = after or (_FOREVER, b"\xff" * 33)
    return _rows(reader, _COMPLETED, at, claim_hash, most)


def one(reader: Reader, claim_hash: bytes) -> ListedClaim | None:
    """One action's newest claim; None where there is none."""
    row = reader.one(_ONE, claim_hash=claim_hash)
    found = None if row is None else _row(row)
    return found if found is not None and found.record.fence > 0 else None


def _rows(reader: Reader, statement: Statement, at: int, claim_hash: bytes, most: int) -> list[ListedClaim]:
    return [_row(row) for row in reader.all(statement, now=reader.now(), at=at, claim_hash=claim_hash, most=most)]


def _row(row: Row) -> ListedClaim:
    claim_hash, namespace, action_key, *values = row
    record = ClaimRecord(*values)  # type: ignore[arg-type]
    return ListedClaim(bytes(claim_hash), bytes(namespace), bytes(action_key), record)  # type: ignore[call-overload]
