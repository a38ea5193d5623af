"""What an operator sees of many things at once."""

from dataclasses import dataclass

from app.core.outbox import Delivery
from app.storage import overview as rows
from app.storage import overview_claim as claim_rows
from app.storage import overview_lease as lease_rows
from app.storage import overview_outbox as outbox_rows
from app.storage.engine import Engine, Reader
from app.storage.overview import ListedHandoff, Place, Standing, Wanted
from app.storage.overview_claim import ClaimPlace, ListedClaim
from app.storage.overview_lease import LeasePlace, ListedLease
from app.storage.overview_outbox import DeliveryKind, DeliveryPlace

__all__ = [
    "ClaimPage",
    "ClaimPlace",
    "DeliveryKind",
    "DeliveryPage",
    "DeliveryPlace",
    "HandoffPage",
    "LeasePage",
    "LeasePlace",
    "ListedClaim",
    "ListedHandoff",
    "ListedLease",
    "Overview",
    "Place",
    "Standing",
    "Wanted",
]


@dataclass(frozen=True, slots=True)
class HandoffPage:
    """Some rows, the instant of the look, and the place to go on from; None at the end."""

    rows: list[ListedHandoff]
    now: int
    after: Place | None


@dataclass(frozen=True, slots=True)
class LeasePage:
    """Some leases, the instant of the look, and the place to go on from; None at the end."""

    rows: list[ListedLease]
    now: int
    after: LeasePlace | None


@dataclass(frozen=True, slots=True)
class ClaimPage:
    """Some claims, the instant of the look, and the place to go on from; None at the end."""

    rows: list[ListedClaim]
    now: int
    after: ClaimPlace | None


@dataclass(frozen=True, slots=True)
class DeliveryPage:
    """Some notices, the instant of the look, and the place to go on from; None at the end."""

    rows: list[Delivery]
    now: int
    after: DeliveryPlace | None


class Overview:
    """Lists, page by page."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def handoffs(self, wanted: Wanted, *, most: int = 50) -> HandoffPage:
        """Open ones the soonest to expire first; the others the latest first. Raises Unavailable."""

        def query(reader: Reader) -> HandoffPage:
            found = rows.handoffs(reader, wanted, most + 1)
            page = found[:most]
            last = (page[-1].expires_at, page[-1].handoff_id) if len(found) > most else None
            return HandoffPage(page, reader.now(), last)

        return self._engine.read(query)

    def leases(self, *, held: bool, after: LeasePlace | None = None, most: int = 100) -> LeasePage:
        """Live ones the soonest to end first, or ended ones the youngest lifecycle first. Raises Unavailable."""

        def query(reader: Reader) -> LeasePage:
            found = (lease_rows.held if held else lease_rows.ended)(reader, after, most + 1)
            page = found[:most]
            last = None
            if len(found) > most:
                record = page[-1].record
                last = (record.lease_expires_at if held else record.absolute_expires_at, page[-1].key_hash)
            return LeasePage(page, reader.now(), last)

        return self._engine.read(query)

    def claims(self, *, completed: bool, after: ClaimPlace | None = None, most: int = 100) -> ClaimPage:
        """Unfinished claims the oldest first, or completed ones the latest first. Raises Unavailable."""

        def query(reader: Reader) -> ClaimPage:
            found = (claim_rows.completed if completed else claim_rows.unfinished)(reader, after, most + 1)
            page = found[:most]
            last = None
            if len(found) > most:
                record = page[-1].record
                last = ((record.completed_at or 0) if completed else record.claimed_at, page[-1].claim_hash)
            return ClaimPage(page, reader.now(), last)

        return self._engine.read(query)

    def deliveries(self, kind: DeliveryKind, *, after: DeliveryPlace | None = None, most: int = 100) -> DeliveryPage:
        """Notices of a kind, those of the latest handoffs first. Raises Unavailable."""

        def query(reader: Reader) -> DeliveryPage:
            found = outbox_rows.deliveries(reader, kind, after, most + 1)
            page = found[:most]
            last = None
            if len(found) > most:
                notice = page[-1].notice
                last = (notice.expires_at, notice.handoff_id, notice.version)
            return DeliveryPage(page, reader.now(), last)

        return self._engine.read(query)

    def claim(self, claim_hash: bytes) -> tuple[ListedClaim | None, int]:
        """One claim that stands, and the instant of the look. Raises Unavailable."""

        def query(reader: Reader) -> tuple[ListedClaim | None, int]:
            found, now = claim_rows.one(reader, claim_hash), reader.now()
            return (found if found is not None and found.record.is_live(now) else None), now

        return self._engine.read(query)
