"""What needs a person right now, in one look."""

from dataclasses import dataclass

from app.core.handoff import HandoffRecord
from app.core.instants import SECOND
from app.core.outbox import Delivery
from app.services.handoff import Handoffs
from app.services.refusals import Burst
from app.storage import handoff as handoffs
from app.storage import overview, overview_lease, overview_outbox
from app.storage.engine import Engine, Reader
from app.storage.overview import ListedHandoff, Wanted
from app.storage.overview_lease import ListedLease

SOON_SECONDS = 900
LAPSED_SECONDS = 3_600
MOST_HANDOFFS = 50
MOST_OTHERS = 10


@dataclass(frozen=True, slots=True)
class Agenda:
    """Everything that asks for somebody, and the instant of the look.

    `handoffs` are those for people and those that expire within a quarter of an hour, by time left; `has_more` of them.
    `refused` are handoffs whose moves are refused in bursts. `lapsed` are leases that were lost within the hour, and
    that nobody took since. `decided` is the handoff for a person that moved last.
    """

    handoffs: list[ListedHandoff]
    has_more: bool
    refused: list[tuple[HandoffRecord, Burst]]
    lapsed: list[ListedLease]
    failing: list[Delivery]
    decided: HandoffRecord | None
    now: int

    @property
    def is_empty(self) -> bool:
        """Whether nobody is needed."""
        return not (self.handoffs or self.refused or self.lapsed or self.failing)


class Agendas:
    """Makes it."""

    def __init__(self, engine: Engine, of_handoffs: Handoffs) -> None:
        self._engine = engine
        self._handoffs = of_handoffs

    def look(self) -> Agenda:
        """What there is now. Raises Unavailable."""
        bursts = self._handoffs.refusals.bursts(MOST_OTHERS)
        return self._engine.read(lambda reader: _agenda(reader, bursts))


def _agenda(reader: Reader, bursts: list[Burst]) -> Agenda:
    now = reader.now()
    people = overview.handoffs(reader, Wanted("open", "person"), MOST_HANDOFFS + 1)
    agents = overview.handoffs(reader, Wanted("open", "agent"), MOST_HANDOFFS + 1)
    soon = [row for row in agents if row.expires_at - now <= SOON_SECONDS * SECOND]
    rows = sorted([*people, *soon], key=lambda row: (row.expires_at, row.handoff_id))
    refused = [(handoffs.find(reader, burst.handoff_id), burst) for burst in bursts]
    decided = overview.last_decided(reader)
    return Agenda(
        handoffs=rows[:MOST_HANDOFFS],
        has_more=len(rows) > MOST_HANDOFFS,
        refused=[(record, burst) for record, burst in refused if record is not None and not record.is_expired(now)],
        lapsed=overview_lease.lapsed(reader, now - LAPSED_SECONDS * SECOND, MOST_OTHERS),
        failing=overview_outbox.deliveries(reader, "failing", None, MOST_OTHERS),
        decided=None if decided is None else handoffs.find(reader, decided),
        now=now,
    )
