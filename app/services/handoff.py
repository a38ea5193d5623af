"""The use cases of the handoff. Tokens become digests here, before anything else sees them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from app import tokens
from app.core import handoff as core
from app.core.limits import Exhausted
from app.core.machine import Machine
from app.services import audit
from app.services.handoff_reads import FEED, Look, find_as_party, look, owner_hash, receiver_hash, role_of, topic
from app.services.handoff_waits import HandoffWaits, Waiter, WaitOutcome
from app.services.limits import DailyLimit
from app.services.outbox import announce
from app.services.ports import Caller, Deadlines, Seats, Signals
from app.services.refusals import Refusals
from app.services.room import Room
from app.storage import handoff as storage
from app.storage.engine import Engine, Reader, Transaction
from app.tokens import Kind

CreateOutcome = core.Created | core.OfferConflict | core.NoRoom | Exhausted
MoveOutcome = core.Moved | core.MoveRefusal | core.NotFound
_DISAGREEMENTS = (core.StateMismatch, core.TransitionNotAllowed, core.UnknownState, core.NonceConflict)


@dataclass(frozen=True, slots=True)
class Creation:
    """An outcome, and the tokens to show when it is a handoff."""

    outcome: CreateOutcome
    owner_token: str
    receiver_token: str


class _NonceTaken(Exception):
    """The same creation was committed by another process in this very moment: look again."""


class Handoffs:
    """Create, read, wait and move."""

    def __init__(
        self,
        engine: Engine,
        signals: Signals,
        deadlines: Deadlines,
        seats: Seats,
        creations: DailyLimit,
        *,
        most_live: int,
        result_url: Callable[[str], str],
        failpoint: Callable[[str], None],
    ) -> None:
        self.refusals = Refusals()
        self._engine = engine
        self._signals = signals
        self._waits = HandoffWaits(engine, signals, deadlines, seats, failpoint)
        self._creations = creations
        self._room = Room(most_live)
        self._result_url = result_url

    def create(
        self,
        *,
        payload: str,
        note: str | None,
        machine: Machine,
        ttl_seconds: int,
        title: str | None,
        audience: core.Audience,
        notify_url: str | None,
        nonce: str | None,
        owner_token: str | None,
        receiver_token: str | None,
        address: str | None,
    ) -> Creation:
        """Hand over a payload (JSON text as sent, checked). `address` is counted, None is not.

        The nonce and both tokens are given together or not at all; then the same call may be sent again.
        """
        owner = owner_token or tokens.mint(Kind.HANDOFF_OWNER)
        receiver = receiver_token or tokens.mint(Kind.HANDOFF_RECEIVER)
        creation_hash = None if nonce is None else tokens.digest("handoff-creation", owner, nonce)
        offer = core.Offer(
            handoff_id=tokens.mint_identifier(),
            owner_hash=owner_hash(owner),
            receiver_hash=receiver_hash(receiver),
            machine=machine,
            payload=payload.encode("utf-8"),
            note=note,
            title=title,
            audience=audience,
            notify_url=notify_url,
            ttl_seconds=ttl_seconds,
        )

        def operation(tx: Transaction) -> CreateOutcome:
            known = None if creation_hash is None else self._repeat(tx, creation_hash, offer)
            return known or self._make(tx, creation_hash, offer, address)

        try:
            outcome = self._engine.run(operation)
        except _NonceTaken:
            outcome = self._engine.run(operation)
        return Creation(outcome, owner, receiver)

    def live(self) -> int:
        """How many have not expired: what the limit of live handoffs counts."""
        return self._engine.read(lambda reader: storage.live(reader, reader.now())[0])

    def read(self, *, handoff_id: str, token: str) -> Look:
        """The handoff as the party with this token may see it."""
        return self._engine.read(lambda reader: look(reader, handoff_id, token))

    def read_as(self, mover: core.Mover, *, handoff_id: str) -> Look:
        """The handoff as a person may see it: an operator, or somebody who has shown the token of this role before."""

        def query(reader: Reader) -> Look:
            record = storage.find(reader, handoff_id)
            return core.NotFound() if record is None else core.look(record, mover, reader.now())

        return self._engine.read(query)

    def open(self, *, handoff_id: str, token: str) -> tuple[core.Role, core.HandoffRecord, int] | None:
        """For a follower: whose token it is, the handoff, expired or not, and the instant of the look."""

        def query(reader: Reader) -> tuple[core.Role, core.HandoffRecord, int] | None:
            record = find_as_party(reader, handoff_id, token)
            role = role_of(record, token)
            return None if role is None or record is None else (role, record, reader.now())

        return self._engine.read(query)

    def look_at(self, handoff_ids: Sequence[str]) -> tuple[dict[str, core.HandoffRecord], int]:
        """Those that exist, expired or not, in one look, and its instant: for those who have shown a token before."""

        def query(reader: Reader) -> tuple[dict[str, core.HandoffRecord], int]:
            found = {name: storage.find(reader, name) for name in filter(tokens.is_identifier, handoff_ids)}
            return {id: record for id, record in found.items() if record is not None}, reader.now()

        return self._engine.read(query)

    def wait(
        self, *, handoff_id: str, token: str, known: frozenset[int] | None, wait_seconds: int, caller: Caller
    ) -> WaitOutcome:
        """Tell of the next version that the caller does not know: see handoff_waits.py."""
        return self._waits.wait(
            handoff_id=handoff_id, token=token, known=known, wait_seconds=wait_seconds, caller=caller
        )

    def waiters(self, handoff_id: str) -> list[Waiter]:
        """Who waits for news of it on this process, the longest first."""
        return self._waits.waiters(handoff_id)

    def move(
        self, *, handoff_id: str, token: str, to: str, expected: str, nonce: str | None, note: str | None
    ) -> MoveOutcome:
        """Move it from exactly `expected` into `to`. With a nonce the same call may be sent again."""

        def operation(tx: Transaction) -> MoveOutcome:
            record = storage.lock_as_party(
                tx, handoff_id, owner_hash=owner_hash(token), receiver_hash=receiver_hash(token)
            )
            role = role_of(record, token)
            if record is None or role is None:
                return core.NotFound()
            return self._move(tx, record, core.Wish(role, expected, to, nonce, note))

        return self._counted(handoff_id, self._engine.run(operation))

    def move_as_operator(
        self, *, handoff_id: str, actor: str, to: str, expected: str, nonce: str | None, note: str | None
    ) -> MoveOutcome:
        """The same for a person signed in to the dashboard, whose name goes into the history and the audit."""
        wish = core.Wish("operator", expected, to, nonce, note, actor)

        def operation(tx: Transaction) -> MoveOutcome:
            record = storage.lock(tx, handoff_id)
            outcome = core.NotFound() if record is None else self._move(tx, record, wish)
            if isinstance(outcome, core.Moved) and not outcome.repeated:
                audit.note(tx, actor=actor, action="handoff.move", subject=handoff_id, detail=f"{expected} to {to}")
            return outcome

        return self._counted(handoff_id, self._engine.run(operation))

    def move_as_reviewer(
        self, *, handoff_id: str, role: core.Role, to: str, expected: str, nonce: str | None, note: str | None
    ) -> MoveOutcome:
        """The same for somebody who has shown the token of this role before: a handoff's tokens never change."""
        wish = core.Wish(role, expected, to, nonce, note)

        def operation(tx: Transaction) -> MoveOutcome:
            record = storage.lock(tx, handoff_id)
            return core.NotFound() if record is None else self._move(tx, record, wish)

        return self._counted(handoff_id, self._engine.run(operation))

    def _counted(self, handoff_id: str, outcome: MoveOutcome) -> MoveOutcome:
        if isinstance(outcome, core.Moved):
            self.refusals.forget(handoff_id)
        elif isinstance(outcome, _DISAGREEMENTS) and self.refusals.note(handoff_id):
            self._signals.ring([FEED])
        return outcome

    def _repeat(
        self, tx: Transaction, creation_hash: bytes, offer: core.Offer
    ) -> core.Created | core.OfferConflict | None:
        record = storage.find_creation(tx, creation_hash)
        known = core.repeat(record, offer, tx.now())
        if record is not None and known is None:
            storage.forget_creation(tx, creation_hash)
        return known

    def _make(
        self, tx: Transaction, creation_hash: bytes | None, offer: core.Offer, address: str | None
    ) -> CreateOutcome:
        no_room = self._room.take(tx)
        if no_room is not None:
            return no_room
        if address is not None:
            counted = self._creations.take_within(tx, address)
            if isinstance(counted, Exhausted):
                return counted
        record = core.create(offer, tx.now())
        if not storage.add(tx, record, creation_hash):
            raise _NonceTaken
        tx.ring(FEED)
        return core.Created(record, record.expires_at - record.created_at)

    def _move(self, tx: Transaction, record: core.HandoffRecord, wish: core.Wish) -> MoveOutcome:
        tx.failpoint("after-lock")
        outcome = core.move(record, wish, tx.now())
        tx.failpoint("after-decide")
        if isinstance(outcome, core.Moved) and not outcome.repeated:
            storage.advance(tx, outcome.record)
            self._announce(tx, outcome.record, wish)
            tx.ring(topic(record.handoff_id))
            tx.ring(FEED)
        return outcome

    def _announce(self, tx: Transaction, record: core.HandoffRecord, wish: core.Wish) -> None:
        if record.offer.notify_url is None:
            return
        announce(
            tx,
            notify_url=record.offer.notify_url,
            result_url=self._result_url(record.handoff_id),
            handoff_id=record.handoff_id,
            version=record.version,
            state=record.state,
            previous=wish.expected,
            by=wish.by,
            ended=record.is_ended,
            changed_at=record.history[-1].at,
            expires_at=record.expires_at,
        )
