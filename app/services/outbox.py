"""The use cases of webhooks: announce a move, take what is due, write down what came of it, send once more.

Who sends is in `app/push`; here is what it needs of the store.
"""

from collections import Counter
from collections.abc import Callable, Collection

from app.core import outbox as core
from app.core.instants import SECOND
from app.core.outbox import (
    Again,
    Answered,
    Delivery,
    NoNotice,
    Notice,
    Over,
    Resent,
    TooLate,
    TriedMeanwhile,
    Undelivered,
    Underway,
)
from app.services import audit
from app.services.handoff_reads import FEED
from app.storage import outbox as rows
from app.storage.engine import Engine, Reader, Transaction
from app.tokens import random_fraction

CLAIM_SECONDS = 20


def announce(
    tx: Transaction,
    *,
    notify_url: str,
    result_url: str,
    handoff_id: str,
    version: int,
    state: str,
    previous: str,
    by: str,
    ended: bool,
    changed_at: int,
    expires_at: int,
) -> None:
    """In a move's transaction: keep the message about it, which tells no more than this. Instants in microseconds."""
    body = core.body(
        handoff_id=handoff_id,
        state=state,
        previous=previous,
        by=by,
        version=version,
        ended=ended,
        changed_at=changed_at,
        result_url=result_url,
    )
    rows.append(tx, Notice(handoff_id, version, notify_url, body, expires_at))


class Outbox:
    """What senders and operators do with notices. `fraction` draws the jitter, a number in [0, 1)."""

    def __init__(self, engine: Engine, *, fraction: Callable[[], float] = random_fraction) -> None:
        self._engine = engine
        self._fraction = fraction

    def claim(self, *, room: int, per_receiver: int, sending: Collection[Notice]) -> list[Delivery]:
        """Begin up to `room` tries, at most `per_receiver` for one receiver together with those under way.

        `sending` lists what this process has under way; none of it is begun again. Each is this process's own for 20
        seconds. A notice whose time or tries are used up is closed on the way. Raises Unavailable.
        """
        under_way = {(notice.handoff_id, notice.version) for notice in sending}
        receivers = Counter(notice.receiver for notice in sending)

        def choose(reader: Reader) -> list[Delivery]:
            busy = receivers.copy()
            chosen: list[Delivery] = []
            for delivery in rows.due(reader, per_receiver=per_receiver, most=room + per_receiver * len(busy)):
                notice = delivery.notice
                is_free = busy[notice.receiver] < per_receiver and len(chosen) < room
                if is_free and (notice.handoff_id, notice.version) not in under_way:
                    busy[notice.receiver] += 1
                    chosen.append(delivery)
            return chosen

        def operation(tx: Transaction) -> list[Delivery]:
            return [mine for delivery in choose(tx) if (mine := _begin(tx, delivery)) is not None]

        # The look before saves a write transaction, and its sync, each time there is nothing that may be begun.
        return self._engine.run(operation) if self._engine.read(choose) else []

    def record(self, delivery: Delivery, result: Answered | Undelivered) -> Again | Over | None:
        """Write down what a claimed try came to; what follows, or None for a lapsed claim. Raises Unavailable."""
        jitter = self._fraction()

        def operation(tx: Transaction) -> Again | Over | None:
            now = tx.now()
            next_step = core.after_try(
                result, tries=delivery.tries, expires_at=delivery.notice.expires_at, now=now, jitter=jitter
            )
            is_ours = rows.settle(tx, delivery, now=now, result=core.word(result), next_step=next_step)
            tx.ring(FEED)
            return next_step if is_ours else None

        return self._engine.run(operation)

    def resend(
        self, *, handoff_id: str, version: int, seen_tried_at: int | None, actor: str
    ) -> Resent | NoNotice | TooLate | TriedMeanwhile | Underway:
        """A person wants this notice sent once more. The audit has a line of it exactly when it will be.

        `seen_tried_at` is the instant of the last try that they saw, None for no try. Raises Unavailable.
        """

        def operation(tx: Transaction) -> Resent | NoNotice | TooLate | TriedMeanwhile | Underway:
            delivery = rows.lock(tx, handoff_id, version)
            if delivery is None:
                return NoNotice()
            outcome = core.resend(delivery, seen_tried_at, tx.now())
            if isinstance(outcome, Resent) and not outcome.repeated:
                rows.reopen(tx, outcome.delivery)
                audit.note(tx, actor=actor, action="notice.resend", subject=handoff_id, detail=f"version {version}")
                tx.ring(FEED)
            return outcome

        return self._engine.run(operation)

    def of_handoff(self, handoff_id: str) -> list[Delivery]:
        """All notices of a handoff, in the order of its moves: for the dashboard."""
        return self._engine.read(lambda reader: rows.of_handoff(reader, handoff_id))

    def counts(self) -> dict[str, int]:
        """How many notices there are: `waiting`, `delivered`, `stopped`, `exhausted`, `expired`."""
        return self._engine.read(rows.counts)


def _begin(tx: Transaction, delivery: Delivery) -> Delivery | None:
    now = tx.now()
    over = core.before_try(tries=delivery.tries, expires_at=delivery.notice.expires_at, now=now)
    if over is None:
        return rows.claim(tx, delivery, until=now + CLAIM_SECONDS * SECOND)
    rows.give_up(tx, delivery, over)
    return None
