"""Who asks about a handoff, and what is there.

Whoever asks proves a token first. An unknown handoff and a wrong token take the same steps: one look for a handoff with
that digest, which finds nothing, and two comparisons in constant time, against digests of nothing.
"""

from app import tokens
from app.core import handoff as core
from app.storage import handoff as storage
from app.storage.engine import Reader

Look = core.Seen | core.Expired | core.NotFound
FEED = "feed:handoffs"

_NOBODY = tokens.digest("handoff-nobody"), tokens.digest("handoff-nobody")


def topic(handoff_id: str) -> str:
    """The signal of one handoff."""
    return "handoff:" + handoff_id


def find(reader: Reader, handoff_id: str) -> tuple[core.HandoffRecord | None, int]:
    """The handoff and the instant of the look, for somebody who has shown a token before."""
    return storage.find(reader, handoff_id), reader.now()


def look(reader: Reader, handoff_id: str, token: str) -> Look:
    """The handoff as the party with this token may see it."""
    record = find_as_party(reader, handoff_id, token)
    role = role_of(record, token)
    if role is None or record is None:
        return core.NotFound()
    return core.look(record, role, reader.now())


def find_as_party(reader: Reader, handoff_id: str, token: str) -> core.HandoffRecord | None:
    """The handoff, for one of its parties; None for a wrong token and for an unknown handoff alike."""
    return storage.find_as_party(reader, handoff_id, owner_hash=owner_hash(token), receiver_hash=receiver_hash(token))


def role_of(record: core.HandoffRecord | None, token: str) -> core.Role | None:
    """Whose token it is; None for somebody else's and where there is no handoff."""
    owner, receiver = _NOBODY if record is None else (record.offer.owner_hash, record.offer.receiver_hash)
    is_owner = tokens.same(owner, owner_hash(token))
    is_receiver = tokens.same(receiver, receiver_hash(token))
    if record is None:
        return None
    return "owner" if is_owner else "receiver" if is_receiver else None


def owner_hash(token: str) -> bytes:
    """What is stored of an owner's token."""
    return tokens.digest("handoff-owner", token)


def receiver_hash(token: str) -> bytes:
    """What is stored of a receiver's token."""
    return tokens.digest("handoff-receiver", token)
