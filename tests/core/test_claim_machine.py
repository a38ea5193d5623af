"""Random walks over the pure claim, beside a model that knows only what callers were told.

The model keeps no record. It holds the promises that answers made (who is the claimant until when, which result
stands until when) and checks every later answer against them.
"""

from dataclasses import dataclass

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from app.core import claim as core
from app.core.instants import SECOND

TOKENS = st.sampled_from([bytes([letter]) * 32 for letter in b"abcd"])
PAYLOADS = st.sampled_from([None, bytes([1]) * 32, bytes([2]) * 32])
RESULTS = st.sampled_from([None, b"null", b"1", b"{}", b"1" * 16_384, b"1" * 16_385])
TTLS = st.sampled_from([1, 2, 5, 10, 60])


@dataclass
class Promise:
    """What the newest claimant was told, and what came of it."""

    who: bytes
    fence: int
    attempt: int
    end: int
    lease_end: int | None
    payload: bytes | None
    is_done: bool = False
    result: bytes | None = None


class ClaimMachine(RuleBasedStateMachine):
    """Claims, completions, releases, renewals and steps of the clock in any order."""

    @initialize()
    def begin(self) -> None:
        self.now = 1_800_000_000_000_000
        self.record: core.ClaimRecord | None = None
        self.promise: Promise | None = None
        self.highest_fence = 0

    def draw(self) -> int:
        self.highest_fence += 1
        return self.highest_fence

    @rule(step=st.sampled_from([0, 1, SECOND - 1, SECOND, 5 * SECOND, 60 * SECOND]))
    def advance(self, step: int) -> None:
        self.now += step

    @rule(short_by=st.sampled_from([0, 1]))
    def advance_to_the_next_end(self, short_by: int) -> None:
        if self.promise is not None:
            ends = [end for end in (self.promise.lease_end, self.promise.end) if end is not None and end > self.now]
            self.now = max(self.now, min(ends, default=self.now) - short_by)

    def live(self) -> Promise | None:
        return self.promise if self.promise is not None and self.now < self.promise.end else None

    @rule(who=TOKENS, ttl=TTLS, lease=st.none() | TTLS, payload=PAYLOADS)
    def claim(self, who: bytes, ttl: int, lease: int | None, payload: bytes | None) -> None:
        before, drawn, live = self.record, self.highest_fence, self.live()
        outcome = core.claim(before, core.ClaimAsk(who, ttl, lease, payload), self.draw, self.now)
        match outcome:
            case core.Claimed(record, repeated=False):
                takeover = live is not None
                if live is not None:
                    assert not live.is_done
                    assert live.lease_end is not None
                    assert self.now >= live.lease_end
                    assert record.expires_at == live.end
                    assert record.attempt == live.attempt + 1
                else:
                    assert record.expires_at == self.now + ttl * SECOND
                    assert record.attempt == 1
                assert outcome.recovered is takeover
                assert record.fence > drawn
                kept = payload if payload is not None or live is None else live.payload
                self.record = record
                self.promise = Promise(
                    who, record.fence, record.attempt, record.expires_at, record.lease_expires_at, kept
                )
            case core.Claimed(record, repeated=True):
                assert live is not None
                assert live.who == who
                assert not live.is_done
                assert live.lease_end is None or self.now < live.lease_end
                assert record == before
            case core.InProgress(record, left):
                assert live is not None
                assert live.lease_end is not None
                assert left == live.lease_end - self.now > 0
                assert not live.is_done
                assert live.who != who
            case core.ClaimHeld(record, left):
                assert live is not None
                assert live.lease_end is None
                assert left == live.end - self.now > 0
                assert not live.is_done
                assert live.who != who
            case core.Duplicate(record):
                assert live is not None
                assert live.is_done
                assert record.result == live.result
            case core.ClaimConflict(record):
                assert live is not None
                assert live.payload is not None
                assert payload is not None
                assert live.payload != payload
                self.record = record
        if not (isinstance(outcome, core.Claimed) and not outcome.repeated):
            assert self.highest_fence == drawn

    @rule(who=st.none() | TOKENS, result=RESULTS, ttl=TTLS)
    def complete(self, who: bytes | None, result: bytes | None, ttl: int) -> None:
        live = self.live()
        match core.complete(self.record, who, result, ttl, self.now):
            case core.NoClaim():
                assert live is None
            case core.AlreadyCompleted(record):
                assert live is not None
                assert live.is_done
                assert record.result == live.result
            case core.ClaimLost():
                assert live is not None
                assert not live.is_done
                assert who not in (None, live.who)
            case core.ResultTooLarge(size):
                assert live is not None
                assert not live.is_done
                assert size > 16_384
            case core.ClaimCompleted(record):
                assert live is not None
                assert not live.is_done
                assert who in (None, live.who)
                live.is_done, live.result, live.lease_end = True, result, None
                live.end = self.now + ttl * SECOND
                assert record.expires_at == live.end
                self.record = record

    @rule(who=st.none() | TOKENS)
    def release(self, who: bytes | None) -> None:
        live = self.live()
        match core.release(self.record, who, self.now):
            case core.NoClaim():
                assert live is None
            case core.AlreadyCompleted():
                assert live is not None
                assert live.is_done
            case core.ClaimLost():
                assert live is not None
                assert who not in (None, live.who)
            case core.ClaimReleased(record):
                assert live is not None
                assert not live.is_done
                assert who in (None, live.who)
                self.record, self.promise = record, None

    @rule(who=TOKENS, ttl=TTLS)
    def renew(self, who: bytes, ttl: int) -> None:
        live = self.live()
        match core.renew(self.record, who, ttl, self.now):
            case core.NoClaim():
                assert live is None
            case core.AlreadyCompleted():
                assert live is not None
                assert live.is_done
            case core.ClaimLost():
                assert live is not None
                assert live.who != who or (live.lease_end is not None and self.now >= live.lease_end)
            case core.NotLeased():
                assert live is not None
                assert live.lease_end is None
            case core.ClaimRenewed(record):
                assert live is not None
                assert live.who == who
                assert live.lease_end is not None
                assert self.now < live.lease_end
                live.lease_end = min(self.now + ttl * SECOND, live.end)
                assert record.lease_expires_at == live.lease_end
                assert record.fence == live.fence
                self.record = record

    @invariant()
    def the_status_is_what_was_promised(self) -> None:
        if not hasattr(self, "now"):
            return
        live, told = self.live(), core.status(self.record, self.now)
        if live is None:
            assert told == core.ClaimStatus("free", None)
        elif live.is_done:
            assert told.status == "completed"
        elif live.lease_end is None:
            assert told.status == "held"
        else:
            assert told.status == ("lapsed" if self.now >= live.lease_end else "in_progress")


TestClaimMachine = ClaimMachine.TestCase
TestClaimMachine.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
