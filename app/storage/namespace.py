"""Who owns which once-key namespace.

Every use case of a claim reads this row and nearly none writes it, so they share its lock: many claims of one
namespace go on side by side, and only a rotation or its removal waits for them and they for it. The order is always
namespace, then claim.
"""

from sqlalchemy import bindparam, case, delete, select, update

from app.core.namespace import NamespaceRecord
from app.storage.engine import Reader, Transaction
from app.storage.statement import Row, Statement, insert_unless_taken
from app.storage.tables import once_namespace as namespace

_ROW = select(namespace.c.token_hash, namespace.c.founded_at, namespace.c.last_ended_at).where(
    namespace.c.namespace_hash == bindparam("namespace_hash")
)
SELECT = Statement(_ROW)
SHARE = Statement(_ROW.with_for_update(read=True, key_share=True))
_INSERT = Statement(lambda dialect: insert_unless_taken(dialect, namespace))
_SET_TOKEN = Statement(
    update(namespace)
    .where(namespace.c.namespace_hash == bindparam("of_namespace"))
    .values(token_hash=bindparam("new_token_hash"))
)
_ENDED = Statement(
    update(namespace)
    .where(namespace.c.namespace_hash == bindparam("of_namespace"))
    .values(
        last_ended_at=case(
            (namespace.c.last_ended_at < bindparam("ended_at"), bindparam("ended_at")), else_=namespace.c.last_ended_at
        )
    )
)
_DELETE = Statement(delete(namespace).where(namespace.c.namespace_hash == bindparam("namespace_hash")))


def share(tx: Transaction, namespace_hash: bytes) -> NamespaceRecord | None:
    """The record, which nobody changes until this transaction ends; None where nobody owns the namespace."""
    return record_of(tx.one(SHARE, namespace_hash=namespace_hash))


def lock(tx: Transaction, namespace_hash: bytes) -> NamespaceRecord | None:
    """The record, locked against every other use case."""
    return record_of(tx.lock(SELECT, namespace_hash=namespace_hash))


def find(reader: Reader, namespace_hash: bytes) -> NamespaceRecord | None:
    """The record as committed, without a lock."""
    return record_of(reader.one(SELECT, namespace_hash=namespace_hash))


def add(tx: Transaction, namespace_hash: bytes, record: NamespaceRecord) -> bool:
    """Make the owner; False when another first claim has done so (it is waited for until it is decided)."""
    added = tx.execute(
        _INSERT,
        namespace_hash=namespace_hash,
        token_hash=record.token_hash,
        founded_at=record.founded_at,
        last_ended_at=record.last_ended_at,
    )
    return added == 1


def set_token(tx: Transaction, namespace_hash: bytes, record: NamespaceRecord) -> None:
    """Write the record's token over the old one."""
    tx.write(_SET_TOKEN, of_namespace=namespace_hash, new_token_hash=record.token_hash)


def note_end(tx: Transaction, namespace_hash: bytes, ended_at: int) -> None:
    """Remember that a claim that is about to be removed had ended then."""
    tx.write(_ENDED, of_namespace=namespace_hash, ended_at=ended_at)


def remove(tx: Transaction, namespace_hash: bytes) -> int:
    """Delete a locked row."""
    return tx.execute(_DELETE, namespace_hash=namespace_hash)


def record_of(row: Row | None) -> NamespaceRecord | None:
    """The record of such a row."""
    return None if row is None else NamespaceRecord(*row)  # type: ignore[arg-type]
