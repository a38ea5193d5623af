"""A random walk over one handoff: every wish there is, true and stale, from every mover, across its end.

The walk keeps a plain model (a list of lines) beside the record and checks the invariants of `app.core.handoff`
after each step.
"""

from dataclasses import replace
from itertools import pairwise

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from app.core.handoff import Expired, HandoffRecord, Moved, Mover, Offer, Wish, create, move, news
from app.core.instants import SECOND
from app.core.machine import Machine, Who, declare

STATES = ["a", "b", "c", "d", "e"]
T0 = 1_800_000_000 * SECOND
NAMES = st.sampled_from([*STATES, "zz"])
MOVERS = st.sampled_from([("owner", None), ("receiver", None), ("operator", "ann"), ("operator", "bob")])
NONCES = st.sampled_from([None, "n1", "n2"])
NOTES = st.sampled_from([None, "x"])
WISHES = st.builds(
    lambda mover, expected, to, nonce, note: Wish(mover[0], expected, to, nonce, note, mover[1]),
    MOVERS, NAMES, NAMES, NONCES, NOTES,
)  # fmt: skip


@st.composite
def machines(draw: st.DrawFn) -> Machine:
    """Machines of five states with random arrows, kept when they are well formed."""
    transitions = draw(st.dictionaries(st.sampled_from(STATES[:4]), st.lists(st.sampled_from(STATES), min_size=1)))
    who: list[Who] = ["owner", "receiver", "any"]
    permissions = draw(st.dictionaries(st.sampled_from(STATES[1:]), st.sampled_from(who)))
    machine = declare(STATES, draw(st.sampled_from([["e"], ["d", "e"]])), transitions, permissions)
    return machine if isinstance(machine, Machine) else _plain(declare(STATES, None, None, permissions))


def _plain(machine: object) -> Machine:
    assert isinstance(machine, Machine)
    return machine


class Walk(RuleBasedStateMachine):
    """One handoff from its creation to past its end."""

    record: HandoffRecord

    @initialize(machine=machines())
    def offer(self, machine: Machine) -> None:
        self.now = T0
        self.record = create(Offer("0" * 32, b"o", b"r", machine, b"1", ttl_seconds=60), T0)
        self.before = self.record
        self.committed: dict[tuple[object, ...], Moved] = {}

    @rule(microseconds=st.sampled_from([0, 1, SECOND, 29 * SECOND]))
    def time_passes(self, microseconds: int) -> None:
        self.now += microseconds

    @rule(wish=WISHES)
    def any_wish(self, wish: Wish) -> None:
        self.try_to(wish)

    @rule(mover=MOVERS, nonce=NONCES, note=NOTES, pick=st.integers(0, 4))
    def a_wish_that_may_pass(self, mover: tuple[Mover, str | None], nonce: str | None, note: str | None, pick: int):
        allowed = self.record.allowed(mover[0])
        if allowed:
            to = allowed[pick % len(allowed)]
            self.try_to(Wish(mover[0], self.record.state, to, nonce, note, mover[1]))

    @rule(pick=st.integers(0, 11))
    def a_wish_sent_again(self, pick: int) -> None:
        sent = [wish for wish in self.committed if wish[3] is not None]
        if sent:
            self.try_to(Wish(*sent[pick % len(sent)]))  # type: ignore[arg-type]

    def try_to(self, wish: Wish) -> None:
        self.before = self.record
        key = (wish.by, wish.expected, wish.to, wish.nonce, wish.note, wish.actor)
        mine = (wish.by, wish.actor, wish.nonce)
        spent = wish.nonce is not None and any((k[0], k[5], k[3]) == mine for k in self.committed)
        outcome = move(self.record, wish, self.now)
        if self.now >= self.record.expires_at:
            assert outcome == Expired(self.record)  # H7
        elif spent:
            self.check_replay(outcome, key)
        elif isinstance(outcome, Moved):
            assert not outcome.repeated
            assert wish.expected == self.before.state  # H3
            assert wish.to in self.before.allowed(wish.by)  # H8
            self.committed[key] = outcome
            self.record = outcome.record
        else:
            assert wish.expected != self.record.state or wish.to not in self.record.allowed(wish.by)  # H8
            assert outcome.record is self.record  # H6

    def check_replay(self, outcome: object, key: tuple[object, ...]) -> None:
        if key in self.committed:
            first = self.committed[key]
            assert outcome == replace(first, record=self.record, repeated=True)  # H5
            assert isinstance(outcome, Moved)
            assert outcome.entry == first.entry
        else:
            assert not isinstance(outcome, Moved)  # H5
            assert type(outcome).__name__ == "NonceConflict"

    @invariant()
    def the_history_only_grows(self) -> None:
        old, new = self.before.history, self.record.history
        assert new[: len(old)] == old  # H1
        assert len(new) - len(old) in (0, 1)
        assert self.record.version == len(new) == 1 + len(self.committed)

    @invariant()
    def the_history_is_a_walk_of_the_machine(self) -> None:
        lines = self.record.history
        assert lines[0].previous is None
        assert lines[0].state == self.record.machine.start
        for earlier, later in pairwise(lines):
            assert later.previous == earlier.state
            assert later.state in self.record.machine.transitions[earlier.state]  # H2, and H4: final ones have none
            assert later.at >= earlier.at  # H9

    @invariant()
    def a_waiting_caller_is_never_left_behind(self) -> None:
        known = frozenset([self.before.version])
        if self.record.version != self.before.version:
            assert news(self.record, known) is not None


TestWalk = Walk.TestCase
TestWalk.settings = settings(max_examples=150, stateful_step_count=30, deadline=None)
