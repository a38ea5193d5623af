"""Random lives of one key over the pure core; every invariant is checked after every step."""

from itertools import count

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from app.core.instants import DAY_SECONDS, SECOND
from app.core.lease import (
    Ask,
    Broken,
    Completed,
    Granted,
    LeaseRecord,
    Lost,
    Released,
    Renewed,
    acquire,
    break_off,
    complete,
    release,
    renew,
    status,
    verify,
)

TTL = st.one_of(st.integers(1, 5), st.sampled_from([60, 43_200, 86_399, 86_400]))
FINGERPRINT = st.sampled_from([None, b"f" * 32, b"g" * 32])
RESULT = st.sampled_from([b"null", b"1", b"1.0", b'{"a":1}'])


class LeaseMachine(RuleBasedStateMachine):
    """The record under test, beside a model that remembers only grants and what ended them."""

    owners = Bundle("owners")

    def __init__(self) -> None:
        super().__init__()
        self.now = 1_800_000_000 * SECOND
        self.record: LeaseRecord | None = None
        self.fences = count(1)
        self.names = count(1)
        self.live: bytes | None = None
        self.lifecycle_end = 0
        self.result: bytes | None = None
        self.highest = 0

    @rule(step=st.one_of(st.integers(0, 3), st.integers(0, 5 * SECOND), st.sampled_from([SECOND, 43_200 * SECOND])))
    def time_passes(self, step: int) -> None:
        self.now += step

    @rule(before=st.integers(-1, 1))
    def time_comes_to_the_end_of_the_lease(self, before: int) -> None:
        if self.record is not None:
            self.now = max(self.now, self.record.lease_expires_at - before)

    @rule(before=st.integers(0, SECOND + 1))
    def time_comes_near_the_end_of_the_lifecycle(self, before: int) -> None:
        if self.record is not None:
            self.now = max(self.now, self.record.absolute_expires_at - before)

    @rule(target=owners, ttl=TTL, fingerprint=FINGERPRINT, brought=st.booleans())
    def a_new_owner_acquires(self, ttl: int, fingerprint: bytes | None, brought: bool) -> bytes:
        owner = next(self.names).to_bytes(32, "big")
        self._acquire(Ask(owner, ttl, fingerprint, brought=brought))
        return owner

    @rule(owner=owners, ttl=TTL, fingerprint=FINGERPRINT)
    def an_owner_sends_its_acquire_again(self, owner: bytes, ttl: int, fingerprint: bytes | None) -> None:
        self._acquire(Ask(owner, ttl, fingerprint, brought=True))

    @rule(owner=owners, ttl=TTL)
    def an_owner_renews(self, owner: bytes, ttl: int) -> None:
        self._lapse()
        before = self.record
        outcome = renew(before, owner, ttl, self.now)
        assert isinstance(outcome, Lost) or owner == self.live  # I5
        if isinstance(outcome, Renewed):
            assert before is not None
            assert outcome.record.fence == before.fence  # I2
            assert outcome.record.lease_expires_at > self.now
            self.record = outcome.record

    @rule(owner=owners)
    def an_owner_releases(self, owner: bytes) -> None:
        self._lapse()
        outcome = release(self.record, owner, self.now)
        if owner == self.live:
            assert isinstance(outcome, Released)
            assert not outcome.repeated
            self._end(outcome.record)
        elif isinstance(outcome, Released):
            assert outcome.repeated
            assert outcome.record is self.record  # I8

    @rule(owner=owners, result=RESULT)
    def an_owner_completes(self, owner: bytes, result: bytes) -> None:
        self._lapse()
        outcome = complete(self.record, owner, result, self.now)
        if owner == self.live:
            assert isinstance(outcome, Completed)
            self._end(outcome.record)
            self.result = result
        elif isinstance(outcome, Completed):
            assert outcome.repeated
            assert outcome.record is self.record  # I8
            assert result == self.result

    @rule(off=st.integers(-1, 1))
    def an_operator_breaks(self, off: int) -> None:
        self._lapse()
        outcome = break_off(self.record, self.highest + off, self.now)
        if isinstance(outcome, Broken):
            assert off == 0
            assert self.live is not None
            self._end(outcome.record)

    @invariant()
    def at_most_one_is_live_and_it_is_the_one_the_model_knows(self) -> None:  # I1 I5
        self._lapse()
        held = status(self.record, self.now).status == "held"
        assert held == (self.live is not None)
        assert (verify(self.record, self.highest, self.now).fence == "current") == held
        if held:
            assert self.record is not None
            assert self.record.owner_hash == self.live

    @invariant()
    def ends_are_in_order_and_the_last_one_stands(self) -> None:  # I3 I4
        if self.record is not None:
            assert self.record.granted_at < self.record.lease_expires_at <= self.record.absolute_expires_at
            assert self.record.absolute_expires_at == self.lifecycle_end

    @invariant()
    def a_result_stands_until_the_end(self) -> None:  # I6
        if self.result is not None and self.now < self.lifecycle_end:
            assert self.record is not None
            assert self.record.result == self.result

    def _acquire(self, ask: Ask) -> None:
        self._lapse()
        before, was_live = self.record, self.live
        stands = self.result is not None and self.now < self.lifecycle_end
        outcome = acquire(before, ask, lambda: next(self.fences), self.now)
        if not isinstance(outcome, Granted):
            return
        if outcome.repeated:
            assert outcome.record is before  # I8
            assert was_live == ask.owner_hash
            return
        assert was_live is None  # I1
        assert not stands  # I6
        assert outcome.record.fence > self.highest  # I2
        if outcome.record.attempt == 1:
            assert before is None or self.lifecycle_end - self.now < SECOND  # I3
            self.lifecycle_end = self.now + DAY_SECONDS * SECOND
            self.result = None
        else:
            assert before is not None
            assert before.fingerprint_hash == ask.fingerprint_hash  # I7
        self.record, self.live, self.highest = outcome.record, ask.owner_hash, outcome.record.fence

    def _end(self, record: LeaseRecord) -> None:
        self.record, self.live = record, None

    def _lapse(self) -> None:
        if self.record is not None and self.now >= self.record.lease_expires_at:
            self.live = None


LeaseMachine.TestCase.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
TestLeaseMachine = LeaseMachine.TestCase
