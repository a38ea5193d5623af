"""Takes due notices and sends them, many at a time, none in another's way.

One greenlet looks what is due: when rung by a move, when a try has ended, and at least once a second, because a retry
comes due by itself and a ring may be lost. It begins no more than it has room for; what waits, waits in the store, so
a flood of notices costs no memory. One receiver gets at most a few of the places, so a hundred notices to a dead one
leave room for everybody else.
"""

import logging
from collections import Counter
from collections.abc import Callable, Collection
from typing import Protocol

import gevent
from gevent.pool import Pool

from app.clock import monotonic
from app.core.outbox import Again, Answered, Delivery, Notice, Over, Undelivered, word
from app.push.hub import Hub, Ticket
from app.storage.engine import Unavailable
from app.storage.outbox import TOPIC

_log = logging.getLogger("fencepost.webhook")

PLACES = 256
PER_RECEIVER = 4
_LONGEST_NAP_SECONDS = 1.0
_SHORTEST_NAP_SECONDS = 0.05
_RECORDING_TRIES = 5
_REST_PER_LOOK = 9  # looking takes at most a tenth of the time, however long the queue is


class Outbox(Protocol):
    """Where due notices come from, and where it is written what became of them."""

    def claim(self, *, room: int, per_receiver: int, sending: Collection[Notice]) -> list[Delivery]: ...

    def record(self, delivery: Delivery, result: Answered | Undelivered) -> Again | Over | None: ...


class WebhookSender:
    """The sender of one process. `send` tries once and returns what came of it, within a few seconds, always."""

    def __init__(
        self,
        outbox: Outbox,
        send: Callable[[Notice], Answered | Undelivered],
        hub: Hub,
        *,
        places: int = PLACES,
        per_receiver: int = PER_RECEIVER,
    ) -> None:
        self._outbox = outbox
        self._send = send
        self._hub = hub
        self._per_receiver = per_receiver
        self._pool = Pool(places)
        self._sending: dict[tuple[str, int], Notice] = {}
        self._ended: Ticket | None = None
        self._greenlet: gevent.Greenlet[[], None] | None = None
        self.results: Counter[str] = Counter()
        """Tries by result, for the metrics."""

    def start(self) -> None:
        """Begin to look for due notices."""
        self._greenlet = gevent.spawn(self._run)

    def stop(self, *, grace_seconds: float = 0.5) -> None:
        """Begin nothing new, give what is under way a moment, then let go of it: its claim lapses by itself."""
        if self._greenlet is not None:
            self._greenlet.kill()
            self._greenlet = None
        self._pool.join(timeout=grace_seconds)
        self._pool.kill()

    def under_way(self) -> int:
        """Tries going on now."""
        return len(self._sending)

    def _run(self) -> None:
        with self._hub.listen(TOPIC) as ticket:
            self._ended = ticket
            while not self._hub.stopping:
                began = monotonic()
                try:
                    self._begin_what_is_due()
                except Unavailable as away:
                    _log.warning("webhooks wait: %s", away.reason)
                except Exception:  # noqa: BLE001 - told in full, and the next turn tries again
                    _log.exception("the webhooks that are due could not be begun and will be tried again")
                gevent.sleep(max(_SHORTEST_NAP_SECONDS, _REST_PER_LOOK * (monotonic() - began)))
                ticket.wait(_LONGEST_NAP_SECONDS)

    def _begin_what_is_due(self) -> None:
        room = self._pool.free_count()
        if room <= 0:
            return
        sending = list(self._sending.values())
        claimed = self._outbox.claim(room=room, per_receiver=self._per_receiver, sending=sending)
        for delivery in claimed:
            self._sending[delivery.notice.handoff_id, delivery.notice.version] = delivery.notice
            self._pool.spawn(self._deliver, delivery)

    def _deliver(self, delivery: Delivery) -> None:
        try:
            result = self._send(delivery.notice)
            self.results[word(result)] += 1
            self._record(delivery, result)
        finally:
            del self._sending[delivery.notice.handoff_id, delivery.notice.version]
            if self._ended is not None:
                self._ended.ring()

    def _record(self, delivery: Delivery, result: Answered | Undelivered) -> None:
        """Tell the store, for as long as the claim lasts; else the try is repeated when the claim lapses."""
        for pause_seconds in range(_RECORDING_TRIES):
            try:
                next_step = self._outbox.record(delivery, result)
            except Unavailable as away:
                _log.warning("the result of a webhook waits: %s", away.reason)
                gevent.sleep(pause_seconds)
            else:
                _log.info("webhook try=%d result=%s next=%s", delivery.tries, word(result), _next(next_step))
                return


def _next(next_step: Again | Over | None) -> str:
    match next_step:
        case None:
            return "lapsed"
        case Again():
            return "again"
        case Over(ending):
            return ending
