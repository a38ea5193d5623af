"""One operation of a process at a time for each row that it locks.

A row that is fought over by a thousand callers of this process would otherwise hold every connection, each waiting in
the database for the same lock, and callers of other rows would find none free. Here they wait without a connection.
"""

import threading
from collections.abc import Hashable

from app.clock import monotonic


class Turns:
    """Who may lock which row now, in this process."""

    def __init__(self) -> None:
        self._rows: dict[Hashable, tuple[threading.Semaphore, int]] = {}
        self._guard = threading.Lock()

    def take(self, row: Hashable, give_up_at: float) -> bool:
        """Wait for the turn until `give_up_at` (monotonic); False when it did not come."""
        with self._guard:
            turn, wanting = self._rows.get(row) or (threading.Semaphore(), 0)
            self._rows[row] = turn, wanting + 1
        is_ours = False
        try:
            is_ours = bool(turn.acquire(timeout=max(0.0, give_up_at - monotonic())))
        finally:
            if not is_ours:
                self._leave(row)
        return is_ours

    def give(self, row: Hashable) -> None:
        """The next one's turn."""
        turn, _ = self._rows[row]
        turn.release()
        self._leave(row)

    def __len__(self) -> int:
        """How many rows somebody has or wants."""
        return len(self._rows)

    def _leave(self, row: Hashable) -> None:
        with self._guard:
            turn, wanting = self._rows[row]
            if wanting == 1:
                del self._rows[row]
            else:
                self._rows[row] = turn, wanting - 1
