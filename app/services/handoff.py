"""The use cases of the handoff. Tokens become digests here, before anything else sees them.

Whoever asks proves a token first. An unknown handoff and a wrong token take the same steps: one look for a handoff with
that digest, which finds nothing, and two comparisons in constant time, against digests of nothing.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from app import tokens
from app.clock import monotonic
from app.core import handoff as core
from app.core.instants import seconds_up
from app.core.limits import Exhausted
from app.core.machine import Machine
from app.services.limits import DailyLimit
from app.services.looks import SharedLooks
from app.services.outbox import announce
from app.services.ports import Caller, Deadlines, HungUp, Seats, Signals
from app.storage import handoff as storage
from app.storage.engine import Engine, Reader, Transaction
from app.tokens import Kind

CreateOutcome = core.Created | core.OfferConflict | core.NoRoom | Exhausted
MoveOutcome = core.Moved | core.MoveRefusal | core.NotFound
LookOutcome = core.Seen | core.Expired | core.NotFound
WaitOutcome = core.Waited | core.Expired | core.NotFound
FEED = "feed:handoffs"
MOST_WAIT_SECONDS = 25
_SHARE_OF_ROOM = 64

_NOBODY = tokens.digest("handoff-nobody"), tokens.digest("handoff-nobody")


@dataclass(frozen=True, slots=True)
class Creation:
    """An outcome, and the tokens to show when it is a handoff."""

    outcome: CreateOutcome
    owner_token: str
    receiver_token: str


class _NonceTaken(Exception):
    """The same creation was committed by another process in this very moment: look again."""


def topic(handoff_id: str) -> str:
    """The signal of one handoff."""
    return "handoff:" + handoff_id


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
        self._engine = engine
        self._looks = SharedLooks(engine, _find)
        self._signals = signals
        self._deadlines = deadlines
        self._seats = seats
        self._creations = creations
        self._most_live = most_live
        self._room = 0
        self._room_until = 0.0
        self._result_url = result_url
        self._failpoint = failpoint

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
            owner_hash=_owner_hash(owner),
            receiver_hash=_receiver_hash(receiver),
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

    def read(self, *, handoff_id: str, token: str) -> LookOutcome:
        """The handoff as the party with this token may see it."""
        return self._engine.read(lambda reader: _look(reader, handoff_id, token))

    def read_as_operator(self, *, handoff_id: str) -> LookOutcome:
        """The handoff as a person signed in to the dashboard may see it."""

        def query(reader: Reader) -> LookOutcome:
            record = storage.find(reader, handoff_id)
            return core.NotFound() if record is None else core.look(record, "operator", reader.now())

        return self._engine.read(query)

    def open(self, *, handoff_id: str, token: str) -> tuple[core.Role, core.HandoffRecord, int] | None:
        """For a follower: whose token it is, the handoff, expired or not, and the instant of the look."""

        def query(reader: Reader) -> tuple[core.Role, core.HandoffRecord, int] | None:
            record = _find_as_party(reader, handoff_id, token)
            role = _role(record, token)
            return None if role is None or record is None else (role, record, reader.now())

        return self._engine.read(query)

    def look_at(self, handoff_ids: Sequence[str]) -> tuple[dict[str, core.HandoffRecord], int]:
        """Those that exist, expired or not, in one look, and its instant: for those who have shown a token before."""

        def query(reader: Reader) -> tuple[dict[str, core.HandoffRecord], int]:
            found = {handoff_id: storage.find(reader, handoff_id) for handoff_id in handoff_ids}
            return {id: record for id, record in found.items() if record is not None}, reader.now()

        return self._engine.read(query)

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
                seen = self.read(handoff_id=handoff_id, token=token)
                if not isinstance(seen, core.Seen):
                    return seen
                begun = frozenset([seen.record.version])
            self._failpoint("after-listen")
            saw_commit, is_parked = ticket.has_seen_commit, False
            seen = self.read(handoff_id=handoff_id, token=token)
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
                    is_parked = True
                self._deadlines.at(topic(handoff_id), seen.record.expires_at)
                ticket.wait(give_up - monotonic())
                if not caller.is_open():
                    raise HungUp
                saw_commit = ticket.has_seen_commit
                seen = self._look_again(handoff_id, seen.role)
            return seen

    def move(
        self, *, handoff_id: str, token: str, to: str, expected: str, nonce: str | None, note: str | None
    ) -> MoveOutcome:
        """Move it from exactly `expected` into `to`. With a nonce the same call may be sent again."""

        def operation(tx: Transaction) -> MoveOutcome:
            record = storage.lock_as_party(
                tx, handoff_id, owner_hash=_owner_hash(token), receiver_hash=_receiver_hash(token)
            )
            role = _role(record, token)
            if record is None or role is None:
                return core.NotFound()
            return self._move(tx, record, core.Wish(role, expected, to, nonce, note))

        return self._engine.run(operation)

    def move_as_operator(
        self, *, handoff_id: str, actor: str, to: str, expected: str, nonce: str | None, note: str | None
    ) -> MoveOutcome:
        """The same for a person signed in to the dashboard, whose name goes into the history."""
        wish = core.Wish("operator", expected, to, nonce, note, actor)

        def operation(tx: Transaction) -> MoveOutcome:
            record = storage.lock(tx, handoff_id)
            return core.NotFound() if record is None else self._move(tx, record, wish)

        return self._engine.run(operation)

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
        if self._room < 1 or monotonic() >= self._room_until:
            no_room = self._count_room(tx)
            if no_room is not None:
                return no_room
        self._room -= 1
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

    def _count_room(self, tx: Transaction) -> core.NoRoom | None:
        """How many this process may create in the next second before it counts again: a small share of what is free.

        Counting every time would make each creation as slow as there are handoffs. What expires in the meantime only
        makes more room, and no other process takes more than the same share. When little is free everyone counts.
        """
        storage.lock_gate(tx)
        now = tx.now()
        live, soonest = storage.live(tx, now)
        if live >= self._most_live:
            return core.NoRoom(seconds_up((soonest or now) - now))
        self._room = max(1, (self._most_live - live) // _SHARE_OF_ROOM)
        self._room_until = monotonic() + 1.0
        return None

    def _look_again(self, handoff_id: str, role: core.Mover) -> LookOutcome:
        """What a caller who has shown its token sees by now; shared with those who were woken with it."""
        record, now = self._looks.look(handoff_id)
        return core.NotFound() if record is None else core.look(record, role, now)

    def _reason(self, record: core.HandoffRecord, known: frozenset[int], *, is_late: bool) -> core.WaitReason | None:
        """Why a caller that knows these versions is answered now; None while it has to wait on."""
        news = core.news(record, known)
        if news is not None:
            return news
        if self._signals.stopping:
            return "shutdown"
        return "timeout" if is_late else None


def _find(reader: Reader, handoff_id: str) -> tuple[core.HandoffRecord | None, int]:
    return storage.find(reader, handoff_id), reader.now()


def _look(reader: Reader, handoff_id: str, token: str) -> LookOutcome:
    record = _find_as_party(reader, handoff_id, token)
    role = _role(record, token)
    if role is None or record is None:
        return core.NotFound()
    return core.look(record, role, reader.now())


def _find_as_party(reader: Reader, handoff_id: str, token: str) -> core.HandoffRecord | None:
    return storage.find_as_party(reader, handoff_id, owner_hash=_owner_hash(token), receiver_hash=_receiver_hash(token))


def _role(record: core.HandoffRecord | None, token: str) -> core.Role | None:
    """Whose token it is; None for a wrong one and for an unknown handoff alike."""
    owner, receiver = _NOBODY if record is None else (record.offer.owner_hash, record.offer.receiver_hash)
    is_owner = tokens.same(owner, _owner_hash(token))
    is_receiver = tokens.same(receiver, _receiver_hash(token))
    if record is None:
        return None
    return "owner" if is_owner else "receiver" if is_receiver else None


def _owner_hash(token: str) -> bytes:
    return tokens.digest("handoff-owner", token)


def _receiver_hash(token: str) -> bytes:
    return tokens.digest("handoff-receiver", token)
