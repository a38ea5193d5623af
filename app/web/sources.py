"""The use cases as the stream sees them: one look each, with its instant."""

from collections.abc import Mapping, Sequence

from app.core.handoff import Mover
from app.core.lease import Status
from app.push.sources import HandoffSeen, LeaseCause, LeaseSeen
from app.services.handoff import Handoffs
from app.services.lease import Leases


class HandoffSource:
    """Handoffs by token, and by id for those whose token was shown once."""

    def __init__(self, handoffs: Handoffs) -> None:
        self._handoffs = handoffs

    def open(self, *, handoff_id: str, token: str) -> tuple[Mover, HandoffSeen] | None:
        """Whose token it is, and the handoff, expired or not; None for an unknown one and a wrong token alike."""
        opened = self._handoffs.open(handoff_id=handoff_id, token=token)
        if opened is None:
            return None
        role, record, now = opened
        return role, HandoffSeen(record, now)

    def look(self, handoff_ids: Sequence[str]) -> Mapping[str, HandoffSeen]:
        """Those that exist."""
        records, now = self._handoffs.look_at(handoff_ids)
        return {handoff_id: HandoffSeen(record, now) for handoff_id, record in records.items()}


class LeaseSource:
    """Leases by the hexadecimal digest of their key."""

    def __init__(self, leases: Leases) -> None:
        self._leases = leases

    def look(self, digests: Sequence[str]) -> Mapping[str, LeaseSeen]:
        """One for each digest."""
        found, now = self._leases.statuses([bytes.fromhex(digest) for digest in digests])
        return {hashed.hex(): _seen(status, now) for hashed, status in found.items()}


def _seen(status: Status, now: int) -> LeaseSeen:
    record = status.record
    if record is None:
        return LeaseSeen("free", None, None, None, now)
    ends_at = {"free": None, "held": record.lease_expires_at, "completed": record.absolute_expires_at}
    cause: LeaseCause = record.cause
    if status.status == "free" and cause not in ("released", "broken"):
        cause = "lapsed"  # nobody writes that; it is so by comparison
    return LeaseSeen(status.status, record.fence, ends_at[status.status], cause, now)
