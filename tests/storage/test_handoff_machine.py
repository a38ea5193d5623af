"""Random lives of handoffs through the use cases on a real SQLite file with a manual clock, restarts included.

The model is the pure core on plain values, proved in tests/core; here every answer of the service must be the one
that core gives, which shows that storage forgets nothing and invents nothing.
"""

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from app.clock import ManualClock
from app.core import handoff as core
from app.core.instants import DAY_SECONDS, SECOND
from app.core.machine import Machine, declare
from app.push.deadlines import Deadlines
from app.push.hub import Hub
from app.push.seats import Seats
from app.services import sweep
from app.services.handoff import Handoffs
from app.services.limits import DailyLimit
from app.services.sweep import Sweep
from app.storage.sqlite import SqliteEngine
from app.testmode import Failpoints
from app.web.connection import Connection
from tests.storage.shelf import PATIENT

BODY = "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG"
STATES = ["a", "b", "c", "d"]
MACHINES = [
    declare(STATES, ["d"]),
    declare(STATES, ["c", "d"], {"a": ["b", "c"], "b": ["d"]}, {"d": "owner"}),
    declare(),
]
NAMES = st.sampled_from([*STATES, "offered", "accepted", "done", "zz"])
NONCES = st.sampled_from([None, "n", "m"])
NOTES = st.sampled_from([None, "x", "\x00é"])
PICK = st.integers(0, 7)


def failpoint(name: str) -> None:
    """None is set."""


class HandoffMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="fencepost-machine-"))
        self.clock = ManualClock()
        self.model: dict[str, core.HandoffRecord] = {}
        self.tokens: dict[str, tuple[str, str]] = {}
        self.creations: dict[str, str] = {}
        self.open()

    def open(self) -> None:
        self.hub = Hub()
        self.engine = SqliteEngine(
            self.folder / "fencepost.db", clock=self.clock, **PATIENT, on_commit=self.hub.committed
        )
        self.handoffs = Handoffs(
            self.engine,
            self.hub,
            Deadlines(self.clock, self.hub),
            Seats(10),
            DailyLimit(self.engine, self.clock, "handoffs", 10_000),
            most_live=10_000,
            result_url="{}".format,
            failpoint=failpoint,
        )

    def teardown(self) -> None:
        self.engine.close()
        shutil.rmtree(self.folder)

    def chosen(self, pick: int) -> str:
        return sorted(self.model)[pick % len(self.model)]

    @rule(seconds=st.sampled_from([0, 1, 59, 60, 86_340, 86_400]), microseconds=st.integers(0, 1))
    def time_passes(self, seconds: int, microseconds: int) -> None:
        self.clock.advance(seconds, microseconds=microseconds)

    @precondition(lambda self: self.model)
    @rule(pick=PICK, before=st.sampled_from([0, 1, SECOND]))
    def time_comes_near_an_end(self, pick: int, before: int) -> None:
        self.clock.begin_at_least(self.model[self.chosen(pick)].expires_at - before)

    @rule()
    def the_server_restarts(self) -> None:
        self.engine.close()
        self.open()

    @rule()
    def the_sweep_runs(self) -> None:
        Sweep(self.engine, [sweep.HANDOFFS], Failpoints()).run()
        now = self.clock.now()
        named = set(self.creations.values())
        for name, record in list(self.model.items()):
            remembered = record.created_at + DAY_SECONDS * SECOND if name in named else 0
            if now >= max(record.expires_at, remembered):
                del self.model[name]

    @rule(machine=st.sampled_from(MACHINES), ttl=st.sampled_from([60, 61, 86_400]), note=NOTES)
    def it_is_offered(self, machine: Machine, ttl: int, note: str | None) -> None:
        self.offer(machine, ttl, note, None)

    @rule(machine=st.sampled_from(MACHINES[:2]), ttl=st.sampled_from([60, 86_400]), letter=st.sampled_from("pq"))
    def it_is_offered_with_a_nonce(self, machine: Machine, ttl: int, letter: str) -> None:
        self.offer(machine, ttl, None, letter)

    def offer(self, machine: Machine, ttl: int, note: str | None, letter: str | None) -> None:
        mine = None if letter is None else ("howner_" + (letter + BODY)[:43], "hrecv_" + (letter + BODY)[:43])
        creation = self.handoffs.create(
            payload='{"n": 1.0}',
            note=note,
            machine=machine,
            ttl_seconds=ttl,
            title=None,
            audience="agent",
            notify_url=None,
            nonce=letter,
            owner_token=mine and mine[0],
            receiver_token=mine and mine[1],
            address="here",
        )
        known = self.model.get(self.creations.get(letter, "")) if letter else None
        now = self.clock.now()
        if known is not None and now < known.created_at + DAY_SECONDS * SECOND:
            asked = replace(known.offer, machine=machine, ttl_seconds=ttl, note=note)
            assert creation.outcome == core.repeat(known, asked, now)
            return
        assert isinstance(creation.outcome, core.Created)
        record = creation.outcome.record
        assert not creation.outcome.repeated
        assert record == core.create(record.offer, now)
        self.model[record.handoff_id] = record
        self.tokens[record.handoff_id] = (creation.owner_token, creation.receiver_token)
        if letter is not None:
            self.creations[letter] = record.handoff_id

    @precondition(lambda self: self.model)
    @rule(pick=PICK, is_owner=st.booleans(), expected=NAMES, to=NAMES, nonce=NONCES, note=NOTES)
    def any_wish(self, pick: int, is_owner: bool, expected: str, to: str, nonce: str | None, note: str | None) -> None:
        self.wish(self.chosen(pick), is_owner, expected, to, nonce, note)

    @precondition(lambda self: self.model)
    @rule(pick=PICK, is_owner=st.booleans(), turn=PICK, nonce=NONCES, note=NOTES)
    def a_wish_that_may_pass(self, pick: int, is_owner: bool, turn: int, nonce: str | None, note: str | None) -> None:
        name = self.chosen(pick)
        allowed = self.model[name].allowed("owner" if is_owner else "receiver")
        if allowed:
            self.wish(name, is_owner, self.model[name].state, allowed[turn % len(allowed)], nonce, note)

    @precondition(lambda self: self.model)
    @rule(pick=PICK, turn=PICK)
    def a_move_sent_again(self, pick: int, turn: int) -> None:
        name = self.chosen(pick)
        line = self.model[name].history[turn % self.model[name].version]
        if line.previous is not None and line.by != "operator":
            self.wish(name, line.by == "owner", line.previous, line.state, line.nonce, line.note)

    @precondition(lambda self: self.model)
    @rule(pick=PICK, turn=PICK, nonce=NONCES, actor=st.sampled_from(["ann", "bob"]))
    def an_operator_moves_it(self, pick: int, turn: int, nonce: str | None, actor: str) -> None:
        name = self.chosen(pick)
        record = self.model[name]
        to = record.machine.states[turn % len(record.machine.states)]
        outcome = self.handoffs.move_as_operator(
            handoff_id=name, actor=actor, to=to, expected=record.state, nonce=nonce, note=None
        )
        self.compare(name, outcome, core.Wish("operator", record.state, to, nonce, None, actor))

    def wish(self, name: str, is_owner: bool, expected: str, to: str, nonce: str | None, note: str | None) -> None:
        token = self.tokens[name][0 if is_owner else 1]
        outcome = self.handoffs.move(handoff_id=name, token=token, to=to, expected=expected, nonce=nonce, note=note)
        self.compare(name, outcome, core.Wish("owner" if is_owner else "receiver", expected, to, nonce, note))

    def compare(self, name: str, outcome: object, wish: core.Wish) -> None:
        judged = core.move(self.model[name], wish, self.clock.now())
        assert outcome == judged
        if isinstance(judged, core.Moved):
            self.model[name] = judged.record

    @precondition(lambda self: self.model)
    @rule(pick=PICK, known=st.sampled_from([None, 1, 2, 9]))
    def somebody_looks_and_waits(self, pick: int, known: int | None) -> None:
        name = self.chosen(pick)
        versions = None if known is None else frozenset([known])
        waited = self.handoffs.wait(
            handoff_id=name, token=self.tokens[name][1], known=versions, wait_seconds=0, caller=Connection({})
        )
        record = self.model[name]
        if record.is_expired(self.clock.now()):
            assert waited == core.Expired(record)
            return
        assert isinstance(waited, core.Waited)
        news = core.news(record, versions or frozenset([record.version]))
        assert waited.reason == (news or "timeout")
        assert waited.has_changed == (known is not None and known != record.version)

    @invariant()
    def every_handoff_reads_as_the_model_says(self) -> None:
        now = self.clock.now()
        for name, (owner, receiver) in self.tokens.items():
            for token, role in ((owner, "owner"), (receiver, "receiver")):
                seen = self.handoffs.read(handoff_id=name, token=token)
                record = self.model.get(name)
                judged = core.NotFound() if record is None else core.look(record, role, now)  # type: ignore[arg-type]
                assert seen == judged


TestHandoffMachine = HandoffMachine.TestCase
TestHandoffMachine.settings = settings(max_examples=20, stateful_step_count=30, deadline=None)
