"""The account of a credit token, found by the token's digest. Lock it before a namespace and a claim."""

from sqlalchemy import bindparam, select

from app.core.credit import CreditRecord
from app.storage.engine import Reader, Transaction
from app.storage.statement import Row, Statement, insert_if_absent, upsert
from app.storage.tables import credit_account as account

_SELECT = Statement(
    select(account.c.granted, account.c.spent, account.c.calls).where(
        account.c.account_hash == bindparam("account_hash")
    )
)
_HOLD_PLACE = Statement(lambda dialect: insert_if_absent(dialect, account, {"granted": 0, "spent": 0, "calls": 0}))
_SAVE = Statement(lambda dialect: upsert(dialect, account))


def lock(tx: Transaction, account_hash: bytes) -> CreditRecord | None:
    """The account, locked; None where nobody has that token."""
    return _record(tx.lock(_SELECT, account_hash=account_hash))


def lock_or_make(tx: Transaction, account_hash: bytes) -> CreditRecord | None:
    """The same for a use case that will save one."""
    return _record(tx.lock(_SELECT, _HOLD_PLACE, account_hash=account_hash))


def find(reader: Reader, account_hash: bytes) -> CreditRecord | None:
    """The account as committed, without a lock."""
    return _record(reader.one(_SELECT, account_hash=account_hash))


def save(tx: Transaction, account_hash: bytes, record: CreditRecord) -> None:
    """Write a locked account."""
    tx.write(_SAVE, account_hash=account_hash, granted=record.granted, spent=record.spent, calls=record.calls)


def _record(row: Row | None) -> CreditRecord | None:
    if row is None or row[0] == 0:
        return None
    return CreditRecord(*row)  # type: ignore[arg-type]
