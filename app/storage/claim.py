"""The claim row: one per action, found by the digest of namespace and action key."""

from dataclasses import dataclass, fields
from operator import attrgetter

from sqlalchemy import bindparam, exists, select

from app.core.claim import ClaimRecord
from app.core.namespace import NamespaceRecord
from app.storage import namespace as namespaces
from app.storage.engine import Lock, Reader, Transaction
from app.storage.statement import Row, Statement, insert_if_absent, upsert
from app.storage.tables import claim, once_namespace

_NAMES = [field.name for field in fields(ClaimRecord)]
_values = attrgetter(*_NAMES)  # dataclasses.astuple copies deeply, at half the cost of the whole operation
_FENCE = _NAMES.index("fence")
_EMPTY = {"namespace_hash": b"", "namespace": b"", "action_key": b"", "claimant_hash": b""}
_ZERO = dict.fromkeys(("fence", "attempt", "claimed_at", "changed_at", "expires_at", "conflicts"), 0)

_SELECT = Statement(select(*(claim.c[name] for name in _NAMES)).where(claim.c.claim_hash == bindparam("claim_hash")))
_SELECT_OF_OWNER = Statement(
    select(*(claim.c[name] for name in _NAMES)).where(
        claim.c.claim_hash == bindparam("claim_hash"),
        exists().where(
            once_namespace.c.namespace_hash == bindparam("namespace_hash"),
            once_namespace.c.token_hash == bindparam("token_hash"),
        ),
    )
)
_SELECT_ACTION = Statement(
    select(claim.c.namespace_hash, claim.c.namespace, claim.c.action_key).where(
        claim.c.claim_hash == bindparam("claim_hash")
    )
)
_A_LIVE_ONE = Statement(
    select(claim.c.claim_hash)
    .where(claim.c.namespace_hash == bindparam("namespace_hash"), claim.c.expires_at > bindparam("now"))
    .limit(1)
)
_HOLD_PLACE = Statement(lambda dialect: insert_if_absent(dialect, claim, {**_EMPTY, **_ZERO}))
_SAVE = Statement(lambda dialect: upsert(dialect, claim))


@dataclass(frozen=True, slots=True)
class Action:
    """Which action: its digest, its namespace's digest, and both names as UTF-8 for those who look at the claim."""

    claim_hash: bytes
    namespace_hash: bytes
    namespace: bytes
    action_key: bytes


def lock(tx: Transaction, claim_hash: bytes) -> ClaimRecord | None:
    """The record of an action's newest claim, locked; None where there is none. Lock the namespace first."""
    return _record(tx.lock(_SELECT, claim_hash=claim_hash))


def lock_or_make(tx: Transaction, claim_hash: bytes) -> ClaimRecord | None:
    """The same for a use case that will save a record: what it locks is there even for an action never claimed."""
    return _record(tx.lock(_SELECT, _HOLD_PLACE, claim_hash=claim_hash))


def find(reader: Reader, claim_hash: bytes) -> ClaimRecord | None:
    """The record as committed, without a lock."""
    return _record(reader.one(_SELECT, claim_hash=claim_hash))


def lock_as_owner(
    tx: Transaction, action: Action, token_hash: bytes | None
) -> tuple[NamespaceRecord | None, ClaimRecord | None]:
    """The namespace's lock shared and then, only for its owner, the claim locked, in one trip."""
    found, claims = tx.trip(
        namespaces.SHARE,
        Lock(_SELECT_OF_OWNER),
        namespace_hash=action.namespace_hash,
        claim_hash=action.claim_hash,
        token_hash=token_hash or b"",
    )
    return namespaces.record_of(_first(found)), _record(_first(claims))


def look_up(reader: Reader, action: Action) -> tuple[NamespaceRecord | None, ClaimRecord | None]:
    """Both as committed, without a lock."""
    found, claims = reader.together(
        namespaces.SELECT, _SELECT, namespace_hash=action.namespace_hash, claim_hash=action.claim_hash
    )
    return namespaces.record_of(_first(found)), _record(_first(claims))


def action(reader: Reader, claim_hash: bytes) -> Action | None:
    """The names of the action with this digest, while its claim is stored."""
    row = reader.one(_SELECT_ACTION, claim_hash=claim_hash)
    return None if row is None else Action(claim_hash, *row)  # type: ignore[arg-type]


def is_any_live(tx: Transaction, namespace_hash: bytes, now: int) -> bool:
    """Whether some action of the namespace has a live claim."""
    return tx.one(_A_LIVE_ONE, namespace_hash=namespace_hash, now=now) is not None


def save(tx: Transaction, action: Action, record: ClaimRecord) -> None:
    """Write the whole record of a locked action."""
    tx.write(
        _SAVE,
        claim_hash=action.claim_hash,
        namespace_hash=action.namespace_hash,
        namespace=action.namespace,
        action_key=action.action_key,
        **dict(zip(_NAMES, _values(record), strict=True)),
    )


def _first(rows: list[Row]) -> Row | None:
    return rows[0] if rows else None


def _record(row: Row | None) -> ClaimRecord | None:
    if row is None or row[_FENCE] == 0:
        return None
    return ClaimRecord(*row)  # type: ignore[arg-type]
