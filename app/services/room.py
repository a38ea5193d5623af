"""How many handoffs may be live at once."""

from app.clock import monotonic
from app.core import handoff as core
from app.core.instants import seconds_up
from app.storage import handoff as storage
from app.storage.engine import Transaction

_SHARE = 64
_SECONDS = 1.0


class Room:
    """Counts who is there, but not every time, for that would make each creation as slow as there are handoffs.

    A process counts under a lock that all share, at most once a second, and may then create a small share of what is
    free. What expires in the meantime only makes more room, and no other process takes more than the same share. When
    little is free everyone counts, so the limit is exact.
    """

    def __init__(self, most_live: int) -> None:
        self._most_live = most_live
        self._left = 0
        self._until = 0.0

    def take(self, tx: Transaction) -> core.NoRoom | None:
        """Take room for one; None when there was some. What a rolled back transaction took is counted anew."""
        if self._left < 1 or monotonic() >= self._until:
            storage.lock_gate(tx)
            now = tx.now()
            live, soonest = storage.live(tx, now)
            if live >= self._most_live:
                return core.NoRoom(seconds_up((soonest or now) - now))
            self._left = max(1, (self._most_live - live) // _SHARE)
            self._until = monotonic() + _SECONDS
        self._left -= 1
        return None
