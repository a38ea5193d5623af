"""What tells that a row has changed, for many rows in one query: only on PostgreSQL, where others change them too."""

from collections.abc import Mapping, Sequence
from typing import Literal

from sqlalchemy import ARRAY, LargeBinary, String, any_, bindparam, select

from app.storage.engine import Reader
from app.storage.statement import Row, Statement
from app.storage.tables import claim, handoff, lease

Kind = Literal["lease", "handoff", "claim"]

_HASHES = any_(bindparam("keys", type_=ARRAY(LargeBinary)))
_LEASES = Statement(
    select(lease.c.key_hash, lease.c.fence, lease.c.lease_expires_at, lease.c.completed_at, lease.c.cause).where(
        lease.c.key_hash == _HASHES
    )
)
_CLAIMS = Statement(
    select(claim.c.claim_hash, claim.c.fence, claim.c.changed_at, claim.c.expires_at).where(
        claim.c.claim_hash == _HASHES
    )
)
_HANDOFFS = Statement(
    select(handoff.c.handoff_id, handoff.c.version).where(
        handoff.c.handoff_id == any_(bindparam("keys", type_=ARRAY(String)))
    )
)


def marks(reader: Reader, kind: Kind, keys: Sequence[str]) -> Mapping[str, Row]:
    """By key, as it stands in a topic: what differs after every change. A row that is not there has none."""
    if kind == "handoff":
        return {str(row[0]): row for row in reader.all(_HANDOFFS, keys=list(keys))}
    hashes = [bytes.fromhex(key) for key in keys]
    rows = reader.all(_LEASES if kind == "lease" else _CLAIMS, keys=hashes)
    return {row[0].hex(): row for row in rows if isinstance(row[0], bytes)}
