"""Once-keys on PostgreSQL: two connections that really block each other, in the order namespace, then claim."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from app import tokens
from app.clock import DatabaseClock, ManualClock
from app.core import claim as core
from app.core.instants import DAY_SECONDS, SECOND
from app.core.namespace import NamespaceForbidden, NamespaceRecord
from app.push.deadlines import Deadlines
from app.push.hub import Hub
from app.push.line import Lines
from app.push.seats import Seats
from app.services.action import action_of
from app.services.claim import Claims, Rotated
from app.services.sweep import CLAIMS, NAMESPACES
from app.services.waiting import Waiting
from app.storage import claim as storage
from app.storage import namespace as namespaces
from app.storage.engine import Transaction
from app.storage.postgres import PostgresEngine
from tests.real.cluster import shared_cluster
from tests.services.oncekeys import FakeCaller

pytestmark = pytest.mark.postgres

BLOCKED_SECONDS = 0.5
PATIENCE_SECONDS = 30.0


class Offset:
    """How far the deciding clock runs ahead, in microseconds."""

    ahead = 0

    def __call__(self) -> int:
        return self.ahead


@pytest.fixture
def offset() -> Offset:
    return Offset()


@pytest.fixture
def engine(offset: Offset) -> Iterator[PostgresEngine]:
    opened = PostgresEngine(shared_cluster().database(), clock=DatabaseClock(offset), deadline_seconds=PATIENCE_SECONDS)
    yield opened
    opened.close()


@pytest.fixture
def claims(engine: PostgresEngine) -> Claims:
    hub = Hub()
    return Claims(engine, Waiting(Lines(hub), Deadlines(ManualClock(), hub), Seats(10)))


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(16) as threads:
        yield threads


def claim(claims: Claims, action_key: str = "one", token: str | None = None, **more: Any) -> Any:
    members: dict[str, Any] = {"namespace": "billing", "namespace_token": token, "payload_sha256": None}
    members |= {"ttl_seconds": 100, "lease_ttl_seconds": None, "claim_token": None, "wait_seconds": 0}
    return claims.claim(action_key=action_key, **{**members, **more}, caller=FakeCaller())


class Paused:
    """A transaction that has done its first step and waits to be let go."""

    def __init__(self, pool: ThreadPoolExecutor, engine: PostgresEngine, step: Callable[[Transaction], object]) -> None:
        self._reached, self._go = threading.Event(), threading.Event()

        def operation(tx: Transaction) -> None:
            step(tx)
            self._reached.set()
            assert self._go.wait(PATIENCE_SECONDS)

        self._future = pool.submit(engine.run, operation)
        assert self._reached.wait(PATIENCE_SECONDS)

    def let_go(self) -> None:
        self._go.set()
        self._future.result(PATIENCE_SECONDS)


def is_blocked(future: "Future[Any]") -> bool:
    try:
        future.result(BLOCKED_SECONDS)
    except TimeoutError:
        return True
    return False


def test_claims_of_one_namespace_do_not_wait_for_each_other(
    claims: Claims, engine: PostgresEngine, pool: ThreadPoolExecutor
) -> None:
    token = claim(claims, "founding").namespace_token
    action = action_of("billing", "one")

    def hold(tx: Transaction) -> None:
        namespaces.share(tx, action.namespace_hash)
        storage.lock_or_make(tx, action.claim_hash)

    holder = Paused(pool, engine, hold)
    other = pool.submit(claim, claims, "two", token).result(PATIENCE_SECONDS)
    assert isinstance(other.outcome, core.Claimed)
    same = pool.submit(claim, claims, "one", token)
    assert is_blocked(same)
    holder.let_go()
    same.result(PATIENCE_SECONDS)


def test_a_claim_waits_for_a_rotation_and_then_needs_the_new_token(
    claims: Claims, engine: PostgresEngine, pool: ThreadPoolExecutor
) -> None:
    token = claim(claims, "founding").namespace_token
    action = action_of("billing", "one")
    holder = Paused(pool, engine, lambda tx: namespaces.lock(tx, action.namespace_hash))
    waiting = pool.submit(claim, claims, "one", token)
    assert is_blocked(waiting)
    holder.let_go()
    assert isinstance(waiting.result(PATIENCE_SECONDS).outcome, core.Claimed)
    rotated = claims.rotate_token(namespace="billing", namespace_token=token)
    assert isinstance(rotated, Rotated)
    assert claim(claims, "two", token).outcome == NamespaceForbidden()
    assert isinstance(claim(claims, "two", rotated.namespace_token).outcome, core.Claimed)


def test_n4_the_sweep_sees_a_claim_that_is_being_made(
    claims: Claims, engine: PostgresEngine, pool: ThreadPoolExecutor, offset: Offset
) -> None:
    token = claim(claims, "founding").namespace_token
    offset.ahead = (100 + 30 * DAY_SECONDS) * SECOND
    assert engine.run(lambda tx: CLAIMS.drop(tx, CLAIMS.choose(tx, 10))) == 1
    chosen = engine.read(lambda reader: NAMESPACES.choose(reader, 10))
    assert len(chosen) == 1
    action = action_of("billing", "one")

    def make(tx: Transaction) -> None:
        namespaces.share(tx, action.namespace_hash)
        record = storage.lock_or_make(tx, action.claim_hash)
        outcome = core.claim(record, core.ClaimAsk(bytes(32)), tx.next_fence, tx.now())
        assert isinstance(outcome, core.Claimed)
        storage.save(tx, action, outcome.record)

    making = Paused(pool, engine, make)
    sweeping = pool.submit(engine.run, lambda tx: NAMESPACES.drop(tx, chosen))
    assert is_blocked(sweeping)
    making.let_go()
    assert sweeping.result(PATIENCE_SECONDS) == 0
    status = claims.status(namespace="billing", action_key="one", namespace_token=token)
    assert isinstance(status, core.ClaimStatus)
    assert status.status == "held"


def test_n2_a_first_claim_waits_for_another_that_is_not_decided_yet(
    claims: Claims, engine: PostgresEngine, pool: ThreadPoolExecutor
) -> None:
    namespace_hash = action_of("billing", "one").namespace_hash
    record = NamespaceRecord(bytes(32), 1, 1)
    founding = Paused(pool, engine, lambda tx: namespaces.add(tx, namespace_hash, record))
    late = pool.submit(claim, claims, "one")
    assert is_blocked(late)
    founding.let_go()
    assert late.result(PATIENCE_SECONDS).outcome == NamespaceForbidden()


def test_of_many_first_claims_one_founds_and_of_many_takeovers_one_wins(
    claims: Claims, pool: ThreadPoolExecutor, offset: Offset
) -> None:
    barrier = threading.Barrier(12)

    def together(**members: Any) -> Any:
        barrier.wait(PATIENCE_SECONDS)
        return claim(claims, **members)

    first = [future.result() for future in [pool.submit(together, lease_ttl_seconds=10) for _ in range(12)]]
    assert Counter(type(answer.outcome).__name__ for answer in first) == {"Claimed": 1, "NamespaceForbidden": 11}
    (token,) = [answer.namespace_token for answer in first if answer.namespace_token is not None]
    fences = [answer.outcome.record.fence for answer in first if isinstance(answer.outcome, core.Claimed)]
    for attempt in range(2, 6):
        offset.ahead += 10 * SECOND
        futures = [pool.submit(together, token=token, lease_ttl_seconds=10) for _ in range(12)]
        answers = [future.result(PATIENCE_SECONDS) for future in futures]
        kinds = Counter(type(answer.outcome).__name__ for answer in answers)
        assert kinds == {"Claimed": 1, "InProgress": 11}
        (won,) = [answer.outcome.record for answer in answers if isinstance(answer.outcome, core.Claimed)]
        assert won.attempt == attempt
        fences.append(won.fence)
    assert fences == sorted(set(fences))


def test_o4_a_completion_and_a_takeover_never_both_win(
    claims: Claims, pool: ThreadPoolExecutor, offset: Offset
) -> None:
    token = claim(claims, "founding", ttl_seconds=31_536_000).namespace_token
    winners: Counter[str] = Counter()
    for number in range(60):
        action, one, two = f"action-{number}", tokens.mint(tokens.Kind.CLAIMANT), tokens.mint(tokens.Kind.CLAIMANT)
        claim(claims, action, token, claim_token=one, lease_ttl_seconds=10)
        offset.ahead += 10 * SECOND
        barrier = threading.Barrier(2)

        def complete(action: str = action, one: str = one, barrier: threading.Barrier = barrier) -> Any:
            barrier.wait(PATIENCE_SECONDS)
            return claims.complete(
                namespace="billing",
                action_key=action,
                namespace_token=token,
                claim_token=one,
                result='"first"',
                ttl_seconds=100_000,
            )

        def take_over(action: str = action, two: str = two, barrier: threading.Barrier = barrier) -> Any:
            barrier.wait(PATIENCE_SECONDS)
            return claim(claims, action, token, claim_token=two, lease_ttl_seconds=10).outcome

        completing, taking = pool.submit(complete), pool.submit(take_over)
        match completing.result(PATIENCE_SECONDS), taking.result(PATIENCE_SECONDS):
            case core.ClaimCompleted(record), core.Duplicate(seen):
                assert record.result == seen.result == b'"first"'
                winners["completion"] += 1
            case core.ClaimLost(), core.Claimed(record):
                assert record.attempt == 2
                winners["takeover"] += 1
            case other:
                raise AssertionError(other)
    assert sum(winners.values()) == 60
