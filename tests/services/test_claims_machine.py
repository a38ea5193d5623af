"""Random walks over once-keys on the real SQLite engine with a manual clock, beside the pure rules in a dictionary.

Restarts, sweeps, rotations and stale tokens come in between. Every outcome has to be the one that core decides from
what the model holds, to the microsecond; fences have to rise through everything.
"""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from app import tokens
from app.core import claim as core
from app.core.instants import DAY_SECONDS, SECOND
from app.core.namespace import NamespaceForbidden
from app.services.claim import Rotated
from app.services.sweep import CLAIMS, NAMESPACES, Sweep
from app.testmode import Failpoints
from app.tokens import Kind
from tests.services.oncekeys import Once, once_keys

NAMESPACE_NAMES = ["billing", "shipping"]
ACTIONS = st.tuples(st.sampled_from(NAMESPACE_NAMES), st.sampled_from(["one", "two"]))
WHO = st.integers(0, 3)
TOKENS = st.sampled_from(["right", "right", "right", "right", "missing", "stale", "wrong"])
TTLS = st.sampled_from([1, 5, 10, 60])
PAYLOADS = st.sampled_from([None, "a", "A", "b"])
RESULTS = st.sampled_from([None, "null", "0", '{"a": 1e2}', "1" * 16_385])


class OnceMachine(RuleBasedStateMachine):
    """Two namespaces of two actions, four claimants."""

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="fencepost-machine-"))
        self.claimants = [tokens.mint(Kind.CLAIMANT) for _ in range(4)]
        self.records: dict[tuple[str, str], core.ClaimRecord] = {}
        self.owners: dict[str, str] = {}
        self.stale: dict[str, str] = {}
        self.ended: dict[str, int] = {}
        self.highest_fence = 0
        self.stack = ExitStack()
        self.once: Once = self.stack.enter_context(once_keys(self.folder))

    def teardown(self) -> None:
        if hasattr(self, "stack"):
            self.stack.close()
            shutil.rmtree(self.folder)

    @property
    def now(self) -> int:
        return self.once.clock.now()

    def token(self, namespace: str, which: str) -> str | None:
        match which:
            case "right":
                return self.owners.get(namespace)
            case "stale":
                return self.stale.get(namespace, "stale")
            case "wrong":
                return tokens.mint(Kind.ONCE_NAMESPACE)
            case _:
                return None

    def may_enter(self, namespace: str, token: str | None) -> bool:
        return token is not None and self.owners.get(namespace) == token

    @rule(step=st.sampled_from([1, SECOND - 1, SECOND, 5 * SECOND, 61 * SECOND, 31 * DAY_SECONDS * SECOND]))
    def advance(self, step: int) -> None:
        self.once.clock.advance(microseconds=step)

    @rule(action=ACTIONS, short_by=st.sampled_from([0, 1]))
    def advance_to_an_end(self, action: tuple[str, str], short_by: int) -> None:
        record = self.records.get(action)
        if record is not None:
            ends = [end for end in (record.lease_expires_at, record.expires_at) if end is not None and end > self.now]
            self.once.clock.advance(microseconds=max(0, min(ends, default=self.now) - short_by - self.now))

    @rule(action=ACTIONS, which=TOKENS, who=WHO, ttl=TTLS, lease=st.none() | TTLS, payload=PAYLOADS)
    def claim(
        self, action: tuple[str, str], which: str, who: int, ttl: int, lease: int | None, payload: str | None
    ) -> None:
        namespace, key = action
        token = self.token(namespace, which)
        is_founding = namespace not in self.owners and token != "stale"
        answer = self.once.claim(
            key, namespace=namespace, token=token, ttl=ttl, lease=lease, payload=payload, who=self.claimants[who]
        )
        if not is_founding and not self.may_enter(namespace, token):
            assert answer.outcome == NamespaceForbidden()
            assert answer.namespace_token is None
            return
        assert (answer.namespace_token is not None) is is_founding
        if answer.namespace_token is not None:
            self.owners[namespace] = answer.namespace_token
            self.ended[namespace] = self.now
        ask = core.ClaimAsk(
            tokens.digest("once-claimant", self.claimants[who]),
            ttl,
            lease,
            None if payload is None else tokens.digest("once-payload", payload.lower()),
        )
        fence = answer.outcome.record.fence if isinstance(answer.outcome, core.Claimed) else 0
        expected = core.claim(self.records.get(action), ask, lambda: fence, self.now)
        assert answer.outcome == expected
        if isinstance(expected, core.Claimed) and not expected.repeated:
            assert fence > self.highest_fence
            self.highest_fence = fence
        if isinstance(expected, core.Claimed | core.ClaimConflict):
            self.records[action] = expected.record

    def decided(self, action: tuple[str, str], token: str | None, outcome: Any, expected: Any) -> None:
        if not self.may_enter(action[0], token):
            assert outcome == NamespaceForbidden()
            return
        assert outcome == expected
        if isinstance(expected, core.ClaimCompleted | core.ClaimReleased | core.ClaimRenewed):
            self.records[action] = expected.record

    @rule(action=ACTIONS, which=TOKENS, who=st.none() | WHO, result=RESULTS, ttl=TTLS)
    def complete(self, action: tuple[str, str], which: str, who: int | None, result: str | None, ttl: int) -> None:
        token, claimant = self.token(action[0], which), None if who is None else self.claimants[who]
        outcome = self.once.complete(action[1], namespace=action[0], token=token, who=claimant, result=result, ttl=ttl)
        hashed = None if claimant is None else tokens.digest("once-claimant", claimant)
        kept = None if result is None else result.encode()
        self.decided(action, token, outcome, core.complete(self.records.get(action), hashed, kept, ttl, self.now))

    @rule(action=ACTIONS, which=TOKENS, who=st.none() | WHO)
    def release(self, action: tuple[str, str], which: str, who: int | None) -> None:
        token, claimant = self.token(action[0], which), None if who is None else self.claimants[who]
        outcome = self.once.release(action[1], namespace=action[0], token=token, who=claimant)
        hashed = None if claimant is None else tokens.digest("once-claimant", claimant)
        self.decided(action, token, outcome, core.release(self.records.get(action), hashed, self.now))

    @rule(action=ACTIONS, which=TOKENS, who=WHO, ttl=TTLS)
    def renew(self, action: tuple[str, str], which: str, who: int, ttl: int) -> None:
        token, claimant = self.token(action[0], which), self.claimants[who]
        outcome = self.once.renew(action[1], namespace=action[0], token=token, who=claimant, lease=ttl)
        hashed = tokens.digest("once-claimant", claimant)
        self.decided(action, token, outcome, core.renew(self.records.get(action), hashed, ttl, self.now))

    @rule(action=ACTIONS, which=TOKENS)
    def status(self, action: tuple[str, str], which: str) -> None:
        token = self.token(action[0], which)
        outcome = self.once.status(action[1], namespace=action[0], token=token)
        self.decided(action, token, outcome, core.status(self.records.get(action), self.now))

    @rule(namespace=st.sampled_from(NAMESPACE_NAMES), which=TOKENS)
    def rotate(self, namespace: str, which: str) -> None:
        token = self.token(namespace, which)
        outcome = self.once.claims.rotate_token(namespace=namespace, namespace_token=token)
        if token is None or not self.may_enter(namespace, token):
            assert outcome == NamespaceForbidden()
            return
        assert isinstance(outcome, Rotated)
        self.stale[namespace], self.owners[namespace] = token, outcome.namespace_token

    @rule()
    def restart(self) -> None:
        clock = self.once.clock
        self.stack.close()
        self.once = self.stack.enter_context(once_keys(self.folder, clock=clock))

    @rule()
    def sweep(self) -> None:
        removed = Sweep(self.once.engine, [CLAIMS, NAMESPACES], Failpoints()).run()
        over = [action for action, record in self.records.items() if not record.is_live(self.now)]
        assert removed["claims"] == len(over)
        for action in over:
            self.ended[action[0]] = max(self.ended[action[0]], self.records.pop(action).expires_at)
        unused = [name for name in self.unused() if self.now >= self.ended[name] + 30 * DAY_SECONDS * SECOND]
        assert removed["namespaces"] == len(unused)
        for name in unused:
            self.stale[name] = self.owners.pop(name)

    def unused(self) -> Iterator[str]:
        for name in self.owners:
            if not any(namespace == name for namespace, _ in self.records):
                yield name


TestOnceMachine = OnceMachine.TestCase
TestOnceMachine.settings = settings(max_examples=25, stateful_step_count=30, deadline=None)
