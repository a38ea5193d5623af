"""Once-keys over a real SQLite file: what the pure rules become with rows, locks and lines around them."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import gevent
import pytest

from app import tokens
from app.core import claim as core
from app.core.instants import DAY_SECONDS
from app.core.namespace import NamespaceForbidden, NamespaceWeak
from app.services.action import action_of
from app.services.claim import Rotated
from app.services.ports import HungUp
from app.services.sweep import CLAIMS, NAMESPACES, Sweep
from app.storage import namespace as namespaces
from app.testmode import Failpoints
from app.tokens import Kind
from tests.services.oncekeys import FakeCaller, Once, once_keys

THIRTY_DAYS = 30 * DAY_SECONDS


@pytest.fixture
def once(tmp_path: Path) -> Iterator[Once]:
    with once_keys(tmp_path) as keys:
        yield keys


@pytest.fixture
def token(once: Once) -> str:
    """The token of the namespace `billing`, founded by a claim of another action."""
    answer = once.claim("founding")
    assert answer.namespace_token is not None
    return answer.namespace_token


def sweep(once: Once) -> dict[str, int]:
    return Sweep(once.engine, [CLAIMS, NAMESPACES], Failpoints()).run()


def test_the_first_claim_gets_the_namespace_s_token_and_the_next_one_needs_it(once: Once) -> None:
    first = once.claim("a")
    assert isinstance(first.outcome, core.Claimed)
    assert first.namespace_token is not None
    assert tokens.is_well_formed(Kind.ONCE_NAMESPACE, first.namespace_token)
    assert tokens.is_well_formed(Kind.CLAIMANT, first.claim_token)
    assert once.outcome("b") == NamespaceForbidden()
    assert once.outcome("b", token="wrong") == NamespaceForbidden()
    second = once.claim("b", token=first.namespace_token)
    assert isinstance(second.outcome, core.Claimed)
    assert second.namespace_token is None


def test_a_first_claim_may_bring_the_namespace_s_token_and_repeat_itself(once: Once) -> None:
    mine, who = tokens.mint(Kind.ONCE_NAMESPACE), tokens.mint(Kind.CLAIMANT)
    first = once.claim(token=mine, who=who)
    assert first.namespace_token == mine
    again = once.claim(token=mine, who=who)
    assert isinstance(first.outcome, core.Claimed)
    assert again.outcome == core.Claimed(first.outcome.record, repeated=True)
    assert again.namespace_token is None


@pytest.mark.parametrize(
    "bad", ["", "x", "nst_" + "a" * 43, "nst_" + "abcdefghijklmnopqrstuvwxyz0123456789-_ABCDE"[:42]]
)
def test_n1_a_malformed_token_founds_nothing(once: Once, bad: str) -> None:
    assert once.outcome(token=bad) == NamespaceForbidden()
    assert once.claim().namespace_token is not None


def test_n1_only_a_claim_makes_an_owner(once: Once) -> None:
    shown = tokens.mint(Kind.ONCE_NAMESPACE)
    refusals = [
        once.complete(token=shown),
        once.release(token=shown),
        once.renew(token=shown, who="clm"),
        once.status(token=shown),
        once.claims.rotate_token(namespace="billing", namespace_token=shown),
    ]
    assert refusals == [NamespaceForbidden()] * 5
    assert once.claim().namespace_token is not None


def test_n2_of_a_hundred_first_claims_one_creates_the_namespace_and_wins(once: Once) -> None:
    answers = [greenlet.get() for greenlet in [gevent.spawn(once.claim) for _ in range(100)]]
    kinds = Counter(type(answer.outcome).__name__ for answer in answers)
    assert kinds == {"Claimed": 1, "NamespaceForbidden": 99}
    assert [answer.namespace_token is not None for answer in answers].count(True) == 1


@pytest.mark.parametrize(("lease", "refused"), [(None, "ClaimHeld"), (10, "InProgress")])
def test_o1_of_a_hundred_claims_by_holders_one_wins(once: Once, token: str, lease: int | None, refused: str) -> None:
    greenlets = [gevent.spawn(once.outcome, token=token, lease=lease) for _ in range(100)]
    kinds = Counter(type(greenlet.get()).__name__ for greenlet in greenlets)
    assert kinds == {"Claimed": 1, refused: 99}


def test_o2_a_thousand_claims_of_an_abandoned_unleased_action_are_all_held(once: Once, token: str) -> None:
    once.won(token=token, ttl=1_000)
    for _ in range(1_000):
        assert isinstance(once.outcome(token=token), core.ClaimHeld)
        once.clock.advance(0.9)


def test_the_same_action_in_two_namespaces_is_two_actions(once: Once, token: str) -> None:
    first = once.won(token=token)
    other = once.claim(namespace="shipping")
    assert isinstance(other.outcome, core.Claimed)
    assert other.outcome.record.fence != first.fence
    once.complete(token=token, result="1")
    assert isinstance(once.status(namespace="shipping", token=other.namespace_token), core.ClaimStatus)
    assert once.status(namespace="shipping", token=other.namespace_token).status == "held"
    assert once.status(namespace="shipping", token=token) == NamespaceForbidden()


def test_names_that_run_together_are_still_two_actions(once: Once) -> None:
    assert action_of("a", "bc").claim_hash != action_of("ab", "c").claim_hash
    assert action_of("a\u00e9", "b").claim_hash != action_of("ae\u0301", "b").claim_hash


def test_a_takeover_keeps_the_end_and_raises_the_fence(once: Once, token: str) -> None:
    first = once.won(token=token, lease=10)
    once.clock.advance(10)
    second = once.claim(token=token, lease=10)
    assert isinstance(second.outcome, core.Claimed)
    assert second.outcome.recovered
    assert second.outcome.record.expires_at == first.expires_at
    assert second.outcome.record.fence > first.fence
    assert second.namespace_token is None


def test_o4_a_late_claimant_with_its_token_cannot_complete_over_the_second(once: Once, token: str) -> None:
    one, two = tokens.mint(Kind.CLAIMANT), tokens.mint(Kind.CLAIMANT)
    once.won(token=token, lease=10, who=one)
    once.clock.advance(10)
    once.won(token=token, lease=10, who=two)
    assert once.complete(token=token, who=one, result="1") == core.ClaimLost()
    assert isinstance(once.complete(token=token, who=two, result="2"), core.ClaimCompleted)
    late = once.complete(token=token, who=one, result="1")
    assert isinstance(late, core.AlreadyCompleted)
    assert late.record.result == b"2"


def test_a_fence_never_goes_back_through_release_end_and_sweep(once: Once, token: str) -> None:
    fences = []
    for _ in range(5):
        fences.append(once.won(token=token, ttl=10).fence)
        once.release(token=token)
        fences.append(once.won(token=token, ttl=10).fence)
        once.clock.advance(10)
        sweep(once)
    assert fences == sorted(set(fences))


def test_another_payload_is_refused_and_counted(once: Once, token: str) -> None:
    once.won(token=token, payload="aBc")
    assert isinstance(once.outcome(token=token, payload="AbC"), core.ClaimHeld)
    for counted in (1, 2):
        outcome = once.outcome(token=token, payload="other")
        assert isinstance(outcome, core.ClaimConflict)
        assert outcome.record.conflicts == counted


def test_a_rotated_token_stops_at_once_and_claims_go_on(once: Once, token: str) -> None:
    record = once.won(token=token)
    assert once.claims.rotate_token(namespace="billing", namespace_token="wrong") == NamespaceForbidden()
    assert once.claims.rotate_token(namespace="billing", namespace_token=None) == NamespaceForbidden()
    rotated = once.claims.rotate_token(namespace="billing", namespace_token=token)
    assert isinstance(rotated, Rotated)
    assert tokens.is_well_formed(Kind.ONCE_NAMESPACE, rotated.namespace_token)
    assert once.status(token=token) == NamespaceForbidden()
    assert once.complete(token=token) == NamespaceForbidden()
    assert once.outcome(token=token) == NamespaceForbidden()
    assert once.status(token=rotated.namespace_token) == core.ClaimStatus("held", record)


def test_looking_changes_nothing(once: Once, token: str) -> None:
    record = once.won(token=token, lease=10)
    groups = once.engine.report()["operations"]
    for _ in range(3):
        assert once.status(token=token) == core.ClaimStatus("in_progress", record)
        assert once.status("never", token=token) == core.ClaimStatus("free", None)
    assert once.engine.report()["operations"] == groups


def test_strong_names_are_asked_of_new_namespaces_only(tmp_path: Path) -> None:
    with once_keys(tmp_path) as lenient:
        token = lenient.claim(namespace="old").namespace_token
    with once_keys(tmp_path, strong_names=True) as strict:
        assert isinstance(strict.outcome("b", namespace="old", token=token), core.Claimed)
        weak = strict.claim(namespace="new")
        assert weak.outcome == NamespaceWeak()
        assert weak.namespace_token is None
        assert weak.suggested_name is not None
        assert weak.suggested_name.startswith("new-")
        assert isinstance(strict.outcome(namespace=weak.suggested_name), core.Claimed)
        assert strict.claim(namespace="x" * 128).suggested_name is not None
        assert len(strict.claim(namespace="x" * 128).suggested_name or "") <= 128


def test_an_operator_releases_an_abandoned_claim_by_its_fence(once: Once, token: str) -> None:
    record = once.won(token=token)
    hashed = action_of("billing", "charge-1042").claim_hash
    assert once.claims.break_off(claim_hash=hashed, fence=record.fence + 1) == core.ClaimNotBroken(record.fence)
    assert isinstance(once.claims.break_off(claim_hash=hashed, fence=record.fence), core.ClaimReleased)
    assert once.claims.break_off(claim_hash=bytes(32), fence=1) == core.ClaimNotBroken(None)
    again = once.won(token=token)
    assert (again.attempt, again.fence > record.fence) == (1, True)


def test_a_namespace_whose_row_was_lost_is_nobody_s_until_its_claims_have_ended(once: Once, token: str) -> None:
    once.won(token=token, ttl=1_000)
    once.complete(token=token, result='"secret"', ttl=1_000)
    once.engine.run(lambda tx: namespaces.remove(tx, action_of("billing", "").namespace_hash))
    assert once.outcome(token=token) == NamespaceForbidden()
    assert once.outcome("another action") == NamespaceForbidden()
    once.clock.advance(1_000)
    assert once.claim().namespace_token is not None


def test_what_is_stored_holds_no_token(once: Once, tmp_path: Path) -> None:
    mine, who = tokens.mint(Kind.ONCE_NAMESPACE), tokens.mint(Kind.CLAIMANT)
    once.won(token=mine, who=who, payload="the-payload-digest")
    rotated = once.claims.rotate_token(namespace="billing", namespace_token=mine)
    assert isinstance(rotated, Rotated)
    stored = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"charge-1042" in stored
    for secret in (mine, who, rotated.namespace_token, "the-payload-digest"):
        assert secret.encode("ascii") not in stored


# ------------------------------------------------------------------------------------------------------- sweep


def test_the_sweep_removes_what_is_over_and_nothing_else(once: Once, token: str) -> None:
    once.won("short", token=token, ttl=10)
    once.won("long", token=token, ttl=11)
    once.clock.advance(10)
    assert sweep(once)["claims"] == 1
    assert once.status("long", token=token).status == "held"
    assert once.status("short", token=token).status == "free"
    assert sweep(once) == {"claims": 0, "namespaces": 0, "daily_counts": 0}


def test_the_sweep_leaves_a_claim_alone_that_began_anew_after_it_looked(once: Once, token: str) -> None:
    once.won(token=token, ttl=10)
    once.clock.advance(10)
    ended = once.engine.read(lambda reader: CLAIMS.choose(reader, 10))
    assert len(ended) == 1
    record = once.won(token=token, ttl=10)
    assert once.engine.run(lambda tx: CLAIMS.drop(tx, ended)) == 0
    assert once.status(token=token) == core.ClaimStatus("held", record)


def test_n4_a_namespace_is_dropped_thirty_days_after_its_last_claim_ended(once: Once) -> None:
    token = once.claim(ttl=10).namespace_token
    once.clock.advance(10)
    assert sweep(once)["claims"] == 1
    once.clock.advance(THIRTY_DAYS - 1)
    assert sweep(once)["namespaces"] == 0
    assert once.outcome("b") == NamespaceForbidden()
    once.clock.advance(1)
    assert sweep(once)["namespaces"] == 1
    assert once.status(token=token) == NamespaceForbidden()
    assert once.claim().namespace_token is not None


def test_n4_ownership_counts_from_the_end_and_not_from_the_sweep(once: Once) -> None:
    once.claim(ttl=10)
    once.clock.advance(10 + THIRTY_DAYS)
    assert sweep(once) == {"claims": 1, "namespaces": 1, "daily_counts": 0}


def test_n4_a_namespace_with_a_claim_is_kept_however_old_it_is(once: Once) -> None:
    token = once.claim(ttl=10).namespace_token
    once.won("b", token=token, ttl=THIRTY_DAYS * 3)
    once.clock.advance(THIRTY_DAYS * 2)
    assert sweep(once) == {"claims": 1, "namespaces": 0, "daily_counts": 0}
    assert once.status("b", token=token).status == "held"


def test_n4_a_released_claim_counts_as_ended_when_it_was_released(once: Once) -> None:
    token = once.claim(ttl=THIRTY_DAYS * 3).namespace_token
    once.clock.advance(5)
    once.release(token=token)
    once.clock.advance(THIRTY_DAYS - 1)
    assert sweep(once) == {"claims": 1, "namespaces": 0, "daily_counts": 0}
    once.clock.advance(1)
    assert sweep(once)["namespaces"] == 1


def test_n4_a_namespace_that_gets_a_claim_after_the_sweep_looked_is_kept(once: Once) -> None:
    token = once.claim(ttl=10).namespace_token
    once.clock.advance(10 + THIRTY_DAYS)
    once.engine.run(lambda tx: CLAIMS.drop(tx, CLAIMS.choose(tx, 10)))
    chosen = once.engine.read(lambda reader: NAMESPACES.choose(reader, 10))
    assert len(chosen) == 1
    once.won("b", token=token)
    assert once.engine.run(lambda tx: NAMESPACES.drop(tx, chosen)) == 0
    assert once.status("b", token=token).status == "held"


# ----------------------------------------------------------------------------------------------------- waiting


def parked(once: Once, count: int, action_key: str = "charge-1042") -> None:
    """Wait until so many callers stand in line."""
    topic = "claim:" + action_of("billing", action_key).claim_hash.hex()
    with gevent.Timeout(10):
        while once.lines.length(topic) < count:
            gevent.sleep(0.005)


def test_a_waiting_caller_gets_the_result_when_it_is_completed(once: Once, token: str) -> None:
    once.won(token=token)
    waiting = [gevent.spawn(once.outcome, token=token, wait=25) for _ in range(5)]
    parked(once, 5)
    once.complete(token=token, result='{"id": 4817}')
    for greenlet in waiting:
        outcome = greenlet.get(timeout=10)
        assert isinstance(outcome, core.Duplicate)
        assert outcome.record.result == b'{"id": 4817}'


def test_a_release_lets_the_first_in_line_claim_and_the_others_wait_on(once: Once, token: str) -> None:
    once.won(token=token)
    waiting = [gevent.spawn(once.outcome, token=token, wait=25) for _ in range(3)]
    parked(once, 3)
    once.release(token=token)
    first = waiting[0].get(timeout=10)
    assert isinstance(first, core.Claimed)
    assert not first.recovered
    parked(once, 2)
    once.complete(token=token, result="1")
    assert all(isinstance(greenlet.get(timeout=10), core.Duplicate) for greenlet in waiting[1:])


def test_a_lapse_lets_the_first_in_line_take_over(once: Once, token: str) -> None:
    first = once.won(token=token, lease=10)
    waiting = [gevent.spawn(once.outcome, token=token, lease=10, wait=25) for _ in range(2)]
    parked(once, 2)
    once.clock.advance(10)
    taken = waiting[0].get(timeout=10)
    assert isinstance(taken, core.Claimed)
    assert taken.recovered
    assert taken.record.expires_at == first.expires_at
    assert waiting[1].dead is False
    gevent.killall(waiting)


def test_the_end_of_an_unleased_claim_lets_the_first_in_line_claim(once: Once, token: str) -> None:
    once.won(token=token, ttl=10)
    waiting = gevent.spawn(once.outcome, token=token, wait=25)
    parked(once, 1)
    once.clock.advance(10)
    outcome = waiting.get(timeout=10)
    assert isinstance(outcome, core.Claimed)
    assert not outcome.recovered


def test_a_caller_that_hung_up_is_passed_over(once: Once, token: str) -> None:
    once.won(token=token)
    gone = FakeCaller()
    waiting = [
        gevent.spawn(once.outcome, token=token, wait=25, caller=gone),
        gevent.spawn(once.outcome, token=token, wait=25),
    ]
    parked(once, 2)
    gone.hang_up()
    with pytest.raises(HungUp):
        waiting[0].get(timeout=10)
    once.release(token=token)
    assert isinstance(waiting[1].get(timeout=10), core.Claimed)


def test_a_rotation_tells_those_who_wait_with_the_old_token_at_their_next_look(once: Once, token: str) -> None:
    once.won(token=token)
    waiting = gevent.spawn(once.outcome, token=token, wait=25)
    parked(once, 1)
    rotated = once.claims.rotate_token(namespace="billing", namespace_token=token)
    assert isinstance(rotated, Rotated)
    once.complete(token=rotated.namespace_token, result="1")
    assert waiting.get(timeout=10) == NamespaceForbidden()


def test_a_wait_that_ends_without_news_says_what_stands(once: Once, token: str) -> None:
    record = once.won(token=token, lease=10)
    outcome = once.outcome(token=token, wait=1)
    assert outcome == core.InProgress(record, 10_000_000)
