"""Random lives of two keys through the use cases on a real SQLite file with a manual clock, restarts included.

The model is the pure core on plain values, proved in tests/core; here every answer of the service must be the one
that core gives, which shows that storage forgets nothing and invents nothing.
"""

import shutil
import tempfile
from itertools import count
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from app import tokens
from app.clock import ManualClock
from app.core import lease as core
from app.core.instants import SECOND
from app.push.deadlines import Deadlines
from app.push.hub import Hub
from app.push.line import Lines
from app.push.seats import Seats
from app.services import sweep
from app.services.lease import Leases, key_hash
from app.services.sweep import Sweep
from app.services.waiting import Waiting
from app.storage.sqlite import SqliteEngine
from app.testmode import Failpoints
from app.web.connection import Connection
from tests.storage.shelf import PATIENT

KEYS = st.sampled_from(["one", "two"])
TTL = st.sampled_from([1, 2, 60, 86_400])
FINGERPRINT = st.sampled_from([None, "f", "g"])


class EngineMachine(RuleBasedStateMachine):
    owners = Bundle("owners")

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="fencepost-machine-"))
        self.clock = ManualClock()
        self.names = count(1)
        self.model: dict[str, core.LeaseRecord | None] = {"one": None, "two": None}
        self.highest = 0
        self.open()

    def open(self) -> None:
        hub = Hub()
        self.engine = SqliteEngine(self.folder / "fencepost.db", clock=self.clock, **PATIENT, on_commit=hub.ring)
        self.leases = Leases(self.engine, Waiting(Lines(hub), Deadlines(self.clock, hub), Seats(10)))

    def teardown(self) -> None:
        self.engine.close()
        shutil.rmtree(self.folder)

    @rule(seconds=st.sampled_from([0, 1, 2, 59, 60, 86_399, 86_400]), microseconds=st.integers(0, 1))
    def time_passes(self, seconds: int, microseconds: int) -> None:
        self.clock.advance(seconds, microseconds=microseconds)

    @rule(key=KEYS, before=st.sampled_from([0, 1, SECOND - 1, SECOND]))
    def time_comes_near_the_end_of_a_lifecycle(self, key: str, before: int) -> None:
        record = self.model[key]
        if record is not None:
            self.clock.begin_at_least(record.absolute_expires_at - before)

    @rule()
    def the_server_restarts(self) -> None:
        self.engine.close()
        self.open()

    @rule()
    def the_sweep_runs(self) -> None:
        Sweep(self.engine, [sweep.LEASES], Failpoints()).run()
        for key, record in self.model.items():
            if record is not None and record.is_over(self.clock.now()):
                self.model[key] = None

    @rule(target=owners, key=KEYS, ttl=TTL, fingerprint=FINGERPRINT)
    def a_new_owner_acquires(self, key: str, ttl: int, fingerprint: str | None) -> str:
        token = f"own_{next(self.names):06d}abcdefghijklmnopqrstuvwxyz0123456789A"
        self.acquire(key, token, ttl, fingerprint)
        return token

    @rule(key=KEYS, token=owners, ttl=TTL, fingerprint=FINGERPRINT)
    def an_owner_acquires_again(self, key: str, token: str, ttl: int, fingerprint: str | None) -> None:
        self.acquire(key, token, ttl, fingerprint)

    @rule(key=KEYS, token=owners, ttl=TTL)
    def an_owner_renews(self, key: str, token: str, ttl: int) -> None:
        expected = core.renew(self.model[key], owner(token), ttl, self.clock.now())
        assert self.leases.renew(key=key, namespace=None, owner_token=token, ttl_seconds=ttl) == expected
        self.keep(key, expected)

    @rule(key=KEYS, token=owners)
    def an_owner_releases(self, key: str, token: str) -> None:
        expected = core.release(self.model[key], owner(token), self.clock.now())
        assert self.leases.release(key=key, namespace=None, owner_token=token) == expected
        self.keep(key, expected)

    @rule(key=KEYS, token=owners, result=st.sampled_from(["null", "1", "1.0", '{"b":1,"a":1e400}']))
    def an_owner_completes(self, key: str, token: str, result: str) -> None:
        expected = core.complete(self.model[key], owner(token), result.encode(), self.clock.now())
        assert self.leases.complete(key=key, namespace=None, owner_token=token, result=result) == expected
        self.keep(key, expected)

    @rule(key=KEYS, off=st.integers(-1, 1))
    def an_operator_breaks(self, key: str, off: int) -> None:
        record = self.model[key]
        fence = max(1, (record.fence if record else 1) + off)
        expected = core.break_off(record, fence, self.clock.now())
        assert self.leases.break_off(hashed=key_hash(key, None), fence=fence) == expected
        self.keep(key, expected)

    @invariant()
    def a_stranger_sees_what_core_says(self) -> None:
        for key, record in self.model.items():
            now = self.clock.now()
            assert self.leases.status(key=key, namespace=None) == core.status(record, now)
            for fence in {self.highest, max(1, self.highest - 1)} - {0}:
                seen = self.leases.verify(key=key, namespace=None, fence=fence)
                assert seen == core.verify(record, fence, now)

    def acquire(self, key: str, token: str, ttl: int, fingerprint: str | None) -> None:
        hashed = None if fingerprint is None else tokens.digest("lease-fingerprint", fingerprint)
        ask = core.Ask(owner(token), ttl, hashed, brought=True)
        seen = self.leases.acquire(
            key=key,
            namespace=None,
            ttl_seconds=ttl,
            fingerprint=fingerprint,
            owner_token=token,
            wait_seconds=0,
            holder=None,
            caller=Connection({}),
        ).outcome
        drawn = seen.record.fence if isinstance(seen, core.Granted) else 0
        expected = core.acquire(self.model[key], ask, lambda: drawn, self.clock.now())
        assert seen == expected
        if isinstance(expected, core.Granted) and not expected.repeated:
            assert drawn > self.highest  # I2, across restarts and the sweep
            self.highest = drawn
        self.keep(key, expected)

    def keep(self, key: str, outcome: object) -> None:
        if isinstance(outcome, core.Granted | core.Renewed | core.Released | core.Completed | core.Broken):
            self.model[key] = outcome.record


def owner(token: str) -> bytes:
    return tokens.digest("lease-owner", token)


EngineMachine.TestCase.settings = settings(max_examples=25, stateful_step_count=30, deadline=None)
TestEngineMachine = EngineMachine.TestCase
