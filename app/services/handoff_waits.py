"""Waiting for news of a handoff.

It listens before it looks, so that no move falls between the two, and it sleeps without a transaction. Those who
have shown their token once are not asked again: a handoff's tokens never change.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from app.clock import monotonic
from app.core import handoff as core
from app.services.handoff_reads import FEED, Look, find, look, topic
from app.services.looks import SharedLooks
from app.services.ports import Caller, Deadlines, HungUp, Seats, Signals
from app.storage.engine import Engine

WaitOutcome = core.Waited | core.Expired | core.NotFound
MOST_WAIT_SECONDS = 25


@dataclass(frozen=True, slots=True)
class Waiter:
    """A party that waits for news right now, on this process; `since` on the monotonic clock, in seconds."""

    role: core.Mover
    since: float


class HandoffWaits:
    """Those who wait for news of handoffs on this process."""

    def __init__(
        self,
        engine: Engine,
        signals: Signals,
        deadlines: Deadlines,
        seats: Seats,
        failpoint: Callable[[str], None],
    ) -> None:
        self._engine = engine
        self._looks = SharedLooks(engine, find)
        self._signals = signals
        self._deadlines = deadlines
        self._seats = seats
        self._failpoint = failpoint
        self._waiters: dict[str, list[Waiter]] = {}

    def wait(
        self, *, handoff_id: str, token: str, known: frozenset[int] | None, wait_seconds: int, caller: Caller
    ) -> WaitOutcome:
        """Tell of the next version that the caller does not know; None knows the one at its arrival.

        It listens before it looks, so that no move falls between the two. Without a baseline the version at its arrival
        is what it reads before the look, unless this process committed a move since it listens: that one is
        news, whatever the reading found. More than 25 seconds is 25. Raises HungUp, Full when too many wait,
        Unavailable.
        """
        arrived = monotonic()
        give_up = arrived + min(wait_seconds, MOST_WAIT_SECONDS)
        with self._signals.listen(topic(handoff_id)) as ticket, ExitStack() as parked:
            begun = known
            if begun is None:
                seen = self._look(handoff_id, token)
                if not isinstance(seen, core.Seen):
                    return seen
                begun = frozenset([seen.record.version])
            self._failpoint("after-listen")
            saw_commit, is_parked = ticket.has_seen_commit, False
            seen = self._look(handoff_id, token)
            while isinstance(seen, core.Seen):
                now = monotonic()
                if known is None and saw_commit:  # before this look, which therefore shows it
                    begun = frozenset()
                reason = self._reason(seen.record, begun, is_late=now >= give_up)
                if reason is not None:
                    return core.Waited(seen, reason, seen.record.version not in begun, now - arrived)
                if not is_parked:
                    parked.enter_context(self._seats.seat())
                    parked.enter_context(caller.on_hang_up(ticket.ring))
                    parked.enter_context(self._listed(handoff_id, Waiter(seen.role, arrived)))
                    is_parked = True
                self._deadlines.at(topic(handoff_id), seen.record.expires_at)
                ticket.wait(give_up - monotonic())
                if not caller.is_open():
                    raise HungUp
                saw_commit = ticket.has_seen_commit
                seen = self._look_again(handoff_id, seen.role)
            return seen

    def waiters(self, handoff_id: str) -> list[Waiter]:
        """Who waits for news of it on this process, the longest first."""
        return sorted(self._waiters.get(handoff_id, ()), key=lambda waiter: waiter.since)

    def _look(self, handoff_id: str, token: str) -> Look:
        return self._engine.read(lambda reader: look(reader, handoff_id, token))

    def _look_again(self, handoff_id: str, role: core.Mover) -> Look:
        """What a caller who has shown its token sees by now; shared with those who were woken with it."""
        record, now = self._looks.look(handoff_id)
        return core.NotFound() if record is None else core.look(record, role, now)

    @contextmanager
    def _listed(self, handoff_id: str, waiter: Waiter) -> Iterator[None]:
        line = self._waiters.setdefault(handoff_id, [])
        line.append(waiter)
        self._signals.ring([FEED])
        try:
            yield
        finally:
            line.remove(waiter)
            self._signals.ring([FEED])
            if not line:
                self._waiters.pop(handoff_id, None)

    def _reason(self, record: core.HandoffRecord, known: frozenset[int], *, is_late: bool) -> core.WaitReason | None:
        """Why a caller that knows these versions is answered now; None while it has to wait on."""
        news = core.news(record, known)
        if news is not None:
            return news
        if self._signals.stopping:
            return "shutdown"
        return "timeout" if is_late else None
