"""What an operator sees of many things at once."""

from dataclasses import dataclass

from app.storage import overview as rows
from app.storage.engine import Engine, Reader
from app.storage.overview import ListedHandoff, Place, Standing, Wanted

__all__ = ["HandoffPage", "ListedHandoff", "Overview", "Place", "Standing", "Wanted"]


@dataclass(frozen=True, slots=True)
class HandoffPage:
    """Some rows, the instant of the look, and the place to go on from; None at the end."""

    rows: list[ListedHandoff]
    now: int
    after: Place | None


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
