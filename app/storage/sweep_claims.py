"""Freeing the space of ended claims, and names that nobody has used for 30 days.

A claim is deleted only if it still has the end that was seen: one that began a new life in between is left alone.
What the namespace has to remember of it, the end, is written first, in the order in which everybody locks. Whether a
namespace has claims is asked after its row is locked, in a statement of its own, so that a claim that is being made
at this moment is seen.
"""

from sqlalchemy import bindparam, delete, exists, select

from app.core import namespace as core
from app.core.instants import DAY_SECONDS, SECOND
from app.storage import namespace as namespaces
from app.storage.engine import Reader, Transaction
from app.storage.statement import Statement, Value
from app.storage.tables import claim, once_namespace

Ended = tuple[bytes, bytes, int]
"""Namespace digest, claim digest, `expires_at`."""

_ENDED_CLAIMS = Statement(
    select(claim.c.namespace_hash, claim.c.claim_hash, claim.c.expires_at)
    .where(claim.c.expires_at <= bindparam("now"))
    .order_by(claim.c.expires_at)
    .limit(bindparam("most"))
)
_DROP_CLAIM = Statement(
    delete(claim).where(claim.c.claim_hash == bindparam("claim_hash"), claim.c.expires_at == bindparam("expires_at"))
)
_ABANDONED = Statement(
    select(once_namespace.c.namespace_hash)
    .where(
        once_namespace.c.last_ended_at <= bindparam("ended_before"),
        ~exists().where(claim.c.namespace_hash == once_namespace.c.namespace_hash),
    )
    .order_by(once_namespace.c.last_ended_at)
    .limit(bindparam("most"))
)
_A_CLAIM = Statement(select(claim.c.claim_hash).where(claim.c.namespace_hash == bindparam("namespace_hash")).limit(1))


def ended_claims(reader: Reader, most: int) -> list[Ended]:
    """Claims that are over, the oldest first."""
    return [tuple(row) for row in reader.all(_ENDED_CLAIMS, now=reader.now(), most=most)]  # type: ignore[misc]


def drop_claims(tx: Transaction, ended: list[Ended]) -> int:
    """Delete those that have not begun anew; how many."""
    ends: dict[bytes, int] = {}
    for namespace_hash, _, expires_at in ended:
        ends[namespace_hash] = max(expires_at, ends.get(namespace_hash, 0))
    for namespace_hash in sorted(ends):
        namespaces.note_end(tx, namespace_hash, ends[namespace_hash])
    each: list[dict[str, Value]] = [
        {"claim_hash": claim_hash, "expires_at": expires_at} for _, claim_hash, expires_at in sorted(ended)
    ]
    return sum(tx.execute_each(_DROP_CLAIM, each))


def abandoned_namespaces(reader: Reader, most: int) -> list[bytes]:
    """Digests of namespaces whose last claim ended 30 days ago or more, the longest unused first."""
    before = reader.now() - core.KEPT_DAYS * DAY_SECONDS * SECOND
    return [row[0] for row in reader.all(_ABANDONED, ended_before=before, most=most)]  # type: ignore[misc]


def drop_namespaces(tx: Transaction, namespace_hashes: list[bytes]) -> int:
    """Let go of those that are still unused; how many."""
    return sum(_drop_namespace(tx, namespace_hash) for namespace_hash in sorted(namespace_hashes))


def _drop_namespace(tx: Transaction, namespace_hash: bytes) -> int:
    record = namespaces.lock(tx, namespace_hash)
    if record is None or not core.is_abandoned(record, tx.now()):
        return 0
    if tx.one(_A_CLAIM, namespace_hash=namespace_hash) is not None:
        return 0
    return namespaces.remove(tx, namespace_hash)
