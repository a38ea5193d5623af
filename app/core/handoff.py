"""A payload that passes between two parties along a declared, forward-only machine.

    create ──▶ version 1 ──move──▶ version 2 ──move──▶ … ──▶ a final state: ENDED
                   └──────────── now >= expires_at, at any version ───────────▶ EXPIRED

The whole truth of a handoff is its history: a list that only grows, one entry for the creation and one for each
move. Its length is the version, its last entry the state. A move names the state that it expects, and two moves
that expect the same one are decided one after the other under the row's lock, so the second is refused.

Invariants, named by the tests that prove them:

H1  `version == len(history)`; a committed move raises it by exactly 1 and changes no earlier entry.
H2  The history is a walk of the machine from its start: consecutive entries are joined by an arrow.
H3  A move is committed only from exactly the state that it names; of any number that name one state, one goes through.
H4  A final state is the last entry for ever.
H5  A nonce that went through means that one move, for that one mover, as long as the handoff lives: the same wish
    is answered from its history entry, to the letter; another wish with the nonce is refused.
H6  A refusal changes nothing and leaves its nonce free.
H7  `expires_at` is set by the creation and never moves. From that instant on there is only EXPIRED: no move, no
    replay, no reading.
H8  A declared permission binds both tokens. `allowed` lists exactly the moves that would go through now.
H9  `at` never runs backwards along the history, whatever the clock does.

When several refusals apply: the nonce, the unknown state, the mismatch, the transition, the permission, in this
order. The nonce comes first, for otherwise a caller whose answer was lost would be told "mismatch" of its own move.

The hard corner is what the stored answer of a move is. It needs no store of its own: state, previous, by, version,
ended and time are all in the entry, the entry never changes (H1), and the nonce lies beside it. So a replay
survives whatever the history survives, and can never tell another story than the history does.

An operator signed in to the dashboard is a third mover. Permissions say which *token* may move into a state; an
operator holds none, stands in the history by name, and may follow every arrow.
"""

from dataclasses import dataclass, replace
from typing import Literal

from app.core.instants import DAY_SECONDS, SECOND
from app.core.machine import Machine

Role = Literal["owner", "receiver"]
Mover = Literal["owner", "receiver", "operator"]
WaitReason = Literal["changed", "ended", "timeout", "shutdown"]
Audience = Literal["agent", "person"]

NONCE_SECONDS = DAY_SECONDS


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a history. `previous` is None in the first; `actor` is an operator's name, else None."""

    state: str
    previous: str | None
    by: Mover
    at: int
    note: str | None = None
    actor: str | None = None
    nonce: str | None = None


@dataclass(frozen=True, slots=True)
class Offer:
    """What the creator wishes to hand over: digests of 32 bytes, a payload as it was sent, a life of 60 to 86,400 s."""

    handoff_id: str
    owner_hash: bytes
    receiver_hash: bytes
    machine: Machine
    payload: bytes
    note: str | None = None
    title: str | None = None
    audience: Audience = "agent"
    notify_url: str | None = None
    ttl_seconds: int = DAY_SECONDS


@dataclass(frozen=True, slots=True)
class HandoffRecord:
    """What is stored of a handoff. Only the history ever changes, and only by growing."""

    offer: Offer
    created_at: int
    expires_at: int
    history: tuple[Entry, ...]

    @property
    def handoff_id(self) -> str:
        """The name, 32 hex digits. It grants nothing."""
        return self.offer.handoff_id

    @property
    def machine(self) -> Machine:
        """The machine that it moves along."""
        return self.offer.machine

    @property
    def version(self) -> int:
        """1 for a new one, one more for each move."""
        return len(self.history)

    @property
    def state(self) -> str:
        """Where it stands."""
        return self.history[-1].state

    @property
    def is_ended(self) -> bool:
        """Whether it stands in a final state."""
        return self.machine.is_final(self.state)

    def is_expired(self, now: int) -> bool:
        """Whether its life is over, ended or not."""
        return now >= self.expires_at

    def allowed(self, mover: Mover) -> tuple[str, ...]:
        """The states that this mover may move it into now, in the order of the transitions."""
        return tuple(to for to in self.machine.transitions[self.state] if _may_enter(self.machine, to, mover))


@dataclass(frozen=True, slots=True)
class Created:
    """The handoff is there, now or (`repeated`) since the same offer was sent before; `record` is as it is now."""

    record: HandoffRecord
    left: int
    """Microseconds until it expires, 0 when it has."""
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class OfferConflict:
    """The creator spent the nonce on an offer with other content."""


@dataclass(frozen=True, slots=True)
class NoRoom:
    """As many handoffs are live as may be; the soonest of them expires after so many seconds."""

    retry_after_seconds: int


@dataclass(frozen=True, slots=True)
class NotFound:
    """There is no such handoff, or the token is not of it. Nobody learns which."""


@dataclass(frozen=True, slots=True)
class Seen:
    """The handoff as one of its parties, or an operator, may see it now."""

    record: HandoffRecord
    role: Mover
    left: int
    """Microseconds until it expires, above 0."""


@dataclass(frozen=True, slots=True)
class Waited:
    """What a waiting caller is told. `has_changed`: the version is another one than the caller knew."""

    seen: Seen
    reason: WaitReason
    has_changed: bool
    waited_seconds: float


@dataclass(frozen=True, slots=True)
class Wish:
    """A move somebody wants: from exactly this state into that one."""

    by: Mover
    expected: str
    to: str
    nonce: str | None = None
    note: str | None = None
    actor: str | None = None


@dataclass(frozen=True, slots=True)
class Moved:
    """The move went through, now or (`repeated`) before. `record` is the handoff as it is now."""

    record: HandoffRecord
    version: int
    """The version that the move made."""
    repeated: bool = False

    @property
    def entry(self) -> Entry:
        """The line that the move wrote."""
        return self.record.history[self.version - 1]

    @property
    def is_ended(self) -> bool:
        """Whether the move led into a final state."""
        return self.record.machine.is_final(self.entry.state)


@dataclass(frozen=True, slots=True)
class NonceConflict:
    """This mover spent the nonce on another move."""

    record: HandoffRecord
    by: Mover


@dataclass(frozen=True, slots=True)
class UnknownState:
    """The machine has no such state."""

    record: HandoffRecord
    by: Mover
    to: str


@dataclass(frozen=True, slots=True)
class StateMismatch:
    """It does not stand where the caller believes."""

    record: HandoffRecord
    by: Mover
    expected: str


@dataclass(frozen=True, slots=True)
class TransitionNotAllowed:
    """No arrow leads there from here, perhaps because it has ended."""

    record: HandoffRecord
    by: Mover
    to: str


@dataclass(frozen=True, slots=True)
class NotPermitted:
    """The declaration leaves this move to the other party."""

    record: HandoffRecord
    by: Mover
    to: str


@dataclass(frozen=True, slots=True)
class Expired:
    """Its life is over; `record` is what it was."""

    record: HandoffRecord


MoveRefusal = NonceConflict | UnknownState | StateMismatch | TransitionNotAllowed | NotPermitted | Expired


def create(offer: Offer, now: int) -> HandoffRecord:
    """A new handoff in the start state. Its end is fixed here: creation + life."""
    first = Entry(state=offer.machine.start, previous=None, by="owner", at=now, note=offer.note)
    return HandoffRecord(offer, created_at=now, expires_at=now + offer.ttl_seconds * SECOND, history=(first,))


def repeat(record: HandoffRecord | None, offer: Offer, now: int) -> Created | OfferConflict | None:
    """Judge an offer whose nonce and owner token made `record`; None when the nonce is free.

    It is remembered for 24 hours from the creation, a shorter life of the handoff notwithstanding. The content is
    everything the creator sent but the identifier, which the server mints: the payload to the byte, the machine as
    it works, whether written out or left to the defaults.
    """
    if record is None or now >= record.created_at + NONCE_SECONDS * SECOND:
        return None
    if replace(offer, handoff_id=record.handoff_id) != record.offer:
        return OfferConflict()
    return Created(record, max(0, record.expires_at - now), repeated=True)


def look(record: HandoffRecord, role: Mover, now: int) -> Seen | Expired:
    """What a party may see now."""
    return Expired(record) if record.is_expired(now) else Seen(record, role, record.expires_at - now)


def move(record: HandoffRecord, wish: Wish, now: int) -> Moved | MoveRefusal:
    """Decide a move. Only a `Moved` that is not `repeated` has a new history entry, the last."""
    if record.is_expired(now):
        return Expired(record)
    if wish.nonce is not None:
        spent = _version_with_nonce(record, wish)
        if spent is not None:
            return _replay(record, wish, spent)
    if wish.to not in record.machine.states:
        return UnknownState(record, wish.by, wish.to)
    if wish.expected != record.state:
        return StateMismatch(record, wish.by, wish.expected)
    if wish.to not in record.machine.transitions[record.state]:
        return TransitionNotAllowed(record, wish.by, wish.to)
    if not _may_enter(record.machine, wish.to, wish.by):
        return NotPermitted(record, wish.by, wish.to)
    entry = Entry(
        state=wish.to,
        previous=record.state,
        by=wish.by,
        at=max(now, record.history[-1].at),
        note=wish.note,
        actor=wish.actor,
        nonce=wish.nonce,
    )
    after = replace(record, history=(*record.history, entry))
    return Moved(after, after.version)


def news(record: HandoffRecord, known: frozenset[int]) -> Literal["changed", "ended"] | None:
    """What a waiting caller that knows these versions is to be told; None: nothing yet, wait on.

    An ended handoff is told at once even if its version is known, for nothing else will come.
    """
    if record.is_ended:
        return "ended"
    return None if record.version in known else "changed"


def _may_enter(machine: Machine, state: str, mover: Mover) -> bool:
    return mover == "operator" or machine.who_may_enter(state) in ("any", mover)


def _version_with_nonce(record: HandoffRecord, wish: Wish) -> int | None:
    for index, entry in enumerate(record.history):
        if (entry.nonce, entry.by, entry.actor) == (wish.nonce, wish.by, wish.actor):
            return index + 1
    return None


def _replay(record: HandoffRecord, wish: Wish, version: int) -> Moved | NonceConflict:
    entry = record.history[version - 1]
    if (entry.previous, entry.state, entry.note) == (wish.expected, wish.to, wish.note):
        return Moved(record, version, repeated=True)
    return NonceConflict(record, wish.by)
