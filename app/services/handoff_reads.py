"""Who asks about a handoff, and what is there.

Whoever asks proves a token first. An unknown handoff and a wrong token take the same steps: one look for the pair of
digests, two comparisons in constant time, against digests of nothing where there is no handoff.
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
    role = role_of(reader, handoff_id, token)
    record = None if role is None else storage.find(reader, handoff_id)
    if role is None or record is None:
        return core.NotFound()
    return core.look(record, role, reader.now())


def role_of(reader: Reader, handoff_id: str, token: str) -> core.Role | None:
    """Whose token it is; None for a wrong one and for an unknown handoff alike."""
    found = storage.keys(reader, handoff_id)
    owner, receiver = found or _NOBODY
    is_owner = tokens.same(owner, owner_hash(token))
    is_receiver = tokens.same(receiver, receiver_hash(token))
    if found is None:
        return None
    return "owner" if is_owner else "receiver" if is_receiver else None


def owner_hash(token: str) -> bytes:
    """What is stored of an owner's token."""
    return tokens.digest("handoff-owner", token)


def receiver_hash(token: str) -> bytes:
    """What is stored of a receiver's token."""
    return tokens.digest("handoff-receiver", token)
