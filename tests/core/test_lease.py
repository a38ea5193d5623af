"""The lease's decisions, row by row and at every boundary. I1 to I8 are the invariants of the module's theory."""

from collections.abc import Callable
from dataclasses import replace
from itertools import count

import pytest

from app.core.instants import DAY_SECONDS, SECOND
from app.core.lease import (
    Ask,
    Broken,
    Completed,
    Conflict,
    Granted,
    Held,
    LeaseRecord,
    Lost,
    NotBroken,
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

NOW = 1_800_000_000 * SECOND + 123_456
ANN, BEN, EVE = b"a" * 32, b"b" * 32, b"e" * 32
INPUT, OTHER_INPUT = b"i" * 32, b"o" * 32


def fences(start: int = 1) -> Callable[[], int]:
    numbers = count(start)
    return lambda: next(numbers)


def no_fence() -> int:
    raise AssertionError("a fence was drawn for a refusal")


def held(owner: bytes = ANN, ttl: int = 60, *, fence: int = 1, fingerprint: bytes | None = None) -> LeaseRecord:
    outcome = acquire(None, Ask(owner, ttl, fingerprint), fences(fence), NOW)
    assert isinstance(outcome, Granted)
    return outcome.record


def completed(owner: bytes = ANN, result: bytes = b"1", fingerprint: bytes | None = None) -> LeaseRecord:
    outcome = complete(held(owner, fingerprint=fingerprint), owner, result, NOW + SECOND)
    assert isinstance(outcome, Completed)
    return outcome.record


def released(owner: bytes = ANN, fingerprint: bytes | None = None) -> LeaseRecord:
    outcome = release(held(owner, fingerprint=fingerprint), owner, NOW + SECOND)
    assert isinstance(outcome, Released)
    return outcome.record


@pytest.mark.parametrize("ttl", [1, 2, 60, 86_399, 86_400])
def test_a_free_key_is_granted_for_exactly_the_ttl_asked(ttl: int) -> None:  # I4
    record = held(ttl=ttl)
    assert record.ttl_seconds == ttl
    assert record.lease_expires_at == NOW + ttl * SECOND
    assert record.absolute_expires_at == NOW + DAY_SECONDS * SECOND
    assert (record.fence, record.attempt, record.granted_at) == (1, 1, NOW)


def test_a_held_key_is_refused_until_the_very_microsecond_of_its_end() -> None:  # I1 I3
    record = held(ttl=10)
    assert acquire(record, Ask(BEN, 5), no_fence, record.lease_expires_at - 1) == Held(record, 1)
    first = acquire(record, Ask(BEN, 5), fences(2), record.lease_expires_at)
    assert isinstance(first, Granted)
    assert (first.record.owner_hash, first.record.fence, first.record.attempt) == (BEN, 2, 2)
    assert first.record.absolute_expires_at == record.absolute_expires_at


def test_the_ttl_of_a_rival_does_not_shorten_the_lease_it_meets() -> None:
    assert isinstance(acquire(held(ttl=300), Ask(BEN, 5), no_fence, NOW + 299 * SECOND), Held)


def test_the_holder_itself_is_refused_unless_it_brings_its_token() -> None:
    assert isinstance(acquire(held(ANN), Ask(BEN, 60, brought=True), no_fence, NOW), Held)
    assert isinstance(acquire(held(ANN), Ask(ANN, 60, brought=False), no_fence, NOW), Held)


def test_the_same_acquire_sent_again_is_repeated_and_changes_nothing() -> None:  # I8
    record = held(ANN)
    assert acquire(record, Ask(ANN, 7, brought=True), no_fence, NOW + SECOND) == Granted(record, repeated=True)


def test_a_spent_token_acquires_nothing() -> None:  # I5
    ask = Ask(ANN, 60, brought=True)
    assert acquire(released(), ask, no_fence, NOW + 2 * SECOND) == Lost()
    assert acquire(completed(), ask, no_fence, NOW + 2 * SECOND) == Completed(completed())


def test_the_token_last_spent_is_lost_though_another_holds_the_key_by_now() -> None:  # I5
    taken = acquire(released(), Ask(BEN, 60), lambda: 2, NOW + 2 * SECOND)
    assert isinstance(taken, Granted)
    assert acquire(taken.record, Ask(ANN, 60, brought=True), no_fence, NOW + 3 * SECOND) == Lost()
    assert release(taken.record, ANN, NOW + 3 * SECOND) == Lost()  # and no repeat of its release any more


def test_a_lapsed_token_stays_lost_though_nobody_took_the_key() -> None:  # I5
    record = held(ANN, ttl=5)
    end = record.lease_expires_at
    assert acquire(record, Ask(ANN, 60, brought=True), no_fence, end) == Lost()
    assert renew(record, ANN, 60, end) == release(record, ANN, end) == complete(record, ANN, b"1", end) == Lost()


def test_a_lapsed_token_is_remembered_while_its_successor_holds_and_after() -> None:  # I5
    record = held(ANN, ttl=5)
    taken = acquire(record, Ask(BEN, 5), fences(2), record.lease_expires_at)
    assert isinstance(taken, Granted)
    again = Ask(ANN, 60, brought=True)
    assert acquire(taken.record, again, no_fence, record.lease_expires_at) == Lost()
    freed = release(taken.record, BEN, record.lease_expires_at)
    assert isinstance(freed, Released)
    assert acquire(taken.record, again, no_fence, taken.record.lease_expires_at) == Lost()


def test_a_broken_token_is_told_so_on_every_route() -> None:
    broken = break_off(held(ANN), 1, NOW)
    assert isinstance(broken, Broken)
    record = broken.record
    assert acquire(record, Ask(ANN, 60, brought=True), no_fence, NOW) == Lost("broken")
    assert renew(record, ANN, 60, NOW) == release(record, ANN, NOW) == Lost("broken")
    assert complete(record, ANN, b"1", NOW) == Lost("broken")


@pytest.mark.parametrize(
    ("taken_with", "asked_with"), [(None, INPUT), (INPUT, None), (INPUT, OTHER_INPUT)], ids=["new", "gone", "other"]
)
@pytest.mark.parametrize("state", ["held", "lapsed", "completed", "released"])
def test_another_fingerprint_conflicts_in_every_state(
    state: str, taken_with: bytes | None, asked_with: bytes | None
) -> None:  # I7
    makers: dict[str, Callable[..., LeaseRecord]] = {"completed": completed, "released": released}
    make = makers.get(state, held)
    record = make(ANN, fingerprint=taken_with)
    now = record.lease_expires_at if state == "lapsed" else NOW + 2 * SECOND
    assert acquire(record, Ask(BEN, 60, asked_with), no_fence, now) == Conflict(record.absolute_expires_at)


def test_a_completed_key_answers_its_result_until_the_microsecond_the_lifecycle_ends() -> None:  # I6
    record = completed(result=b'{"n":1e400}', fingerprint=INPUT)
    assert acquire(record, Ask(BEN, 60, INPUT), no_fence, record.absolute_expires_at - 1) == Completed(record)
    anew = acquire(record, Ask(BEN, 60), fences(9), record.absolute_expires_at)
    assert isinstance(anew, Granted)
    assert (anew.record.attempt, anew.record.fence, anew.record.result) == (1, 9, None)
    assert anew.record.fingerprint_hash is None


@pytest.mark.parametrize(("ttl", "granted"), [(5, 5), (86_400, 70_000)])
def test_a_renewal_replaces_the_end_and_keeps_fence_and_lifecycle(ttl: int, granted: int) -> None:  # I2 I3 I4
    record = replace(held(ttl=86_400), lease_expires_at=NOW + 80_000 * SECOND)
    now = record.absolute_expires_at - 70_000 * SECOND
    outcome = renew(record, ANN, ttl, now)
    assert isinstance(outcome, Renewed)
    assert outcome.record.ttl_seconds == granted
    assert outcome.record.lease_expires_at == now + granted * SECOND
    assert (outcome.record.fence, outcome.record.absolute_expires_at) == (record.fence, record.absolute_expires_at)


@pytest.mark.parametrize(("left", "granted"), [(SECOND - 1, None), (SECOND, 1), (2 * SECOND - 1, 1), (2 * SECOND, 2)])
def test_the_last_second_of_a_lifecycle_cannot_be_renewed_but_stays_held(left: int, granted: int | None) -> None:
    record = held(ttl=86_400)
    now = record.absolute_expires_at - left
    outcome = renew(record, ANN, 60, now)
    if granted is None:
        assert outcome == Lost()
        assert isinstance(acquire(record, Ask(BEN, 60), no_fence, now), Held)
    else:
        assert isinstance(outcome, Renewed)
        assert outcome.record.ttl_seconds == granted
        assert outcome.record.lease_expires_at <= record.absolute_expires_at


@pytest.mark.parametrize(("left", "attempt"), [(SECOND - 1, 1), (SECOND, 2)])
def test_a_free_key_in_the_last_second_begins_the_next_lifecycle(left: int, attempt: int) -> None:
    record = released()
    outcome = acquire(record, Ask(BEN, 60), fences(2), record.absolute_expires_at - left)
    assert isinstance(outcome, Granted)
    assert outcome.record.attempt == attempt
    assert outcome.record.ttl_seconds == (60 if attempt == 1 else 1)


def test_fifty_renewals_never_let_a_rival_in() -> None:
    record, now = held(ttl=3), NOW
    for _ in range(50):
        now += 2 * SECOND
        outcome = renew(record, ANN, 3, now)
        assert isinstance(outcome, Renewed)
        assert outcome.record.lease_expires_at == now + 3 * SECOND > record.lease_expires_at
        record = outcome.record
        assert isinstance(acquire(record, Ask(BEN, 60), no_fence, now), Held)


def test_a_wrong_owner_is_lost_on_every_route() -> None:  # I8
    for record in (held(ANN), None):
        assert renew(record, EVE, 60, NOW) == release(record, EVE, NOW) == complete(record, EVE, b"1", NOW) == Lost()


def test_a_release_can_be_repeated_until_somebody_acquires() -> None:
    record = released(ANN)
    assert release(record, ANN, NOW + 9 * SECOND) == Released(record, repeated=True)
    assert release(record, EVE, NOW) == Lost()
    taken = acquire(record, Ask(BEN, 60), fences(2), NOW + 9 * SECOND)
    assert isinstance(taken, Granted)
    assert release(taken.record, ANN, NOW + 9 * SECOND) == Lost()
    assert release(record, ANN, record.absolute_expires_at) == Lost()


def test_a_completion_can_be_repeated_only_with_an_equal_result() -> None:  # I6
    record = completed(ANN, b"null")
    assert complete(record, ANN, b"null", NOW + 9 * SECOND) == Completed(record, repeated=True)
    assert complete(record, ANN, b" null", NOW + 9 * SECOND) == Lost("already_completed")
    assert complete(record, BEN, b"null", NOW + 9 * SECOND) == Lost()
    assert complete(record, ANN, b"null", record.absolute_expires_at) == Lost()


def test_no_route_revives_an_ownership_that_was_given_up() -> None:  # I5
    late = NOW + 2 * SECOND
    assert release(completed(ANN), ANN, late) == renew(completed(ANN), ANN, 60, late) == Lost()
    assert complete(released(ANN), ANN, b"1", late) == renew(released(ANN), ANN, 60, late) == Lost()


def test_a_break_needs_the_fence_that_was_seen_and_a_live_holder() -> None:
    record = held(ANN, fence=7)
    assert break_off(record, 6, NOW) == NotBroken(7)
    assert break_off(record, 7, record.lease_expires_at) == NotBroken(7)
    assert break_off(None, 7, NOW) == break_off(record, 7, record.absolute_expires_at) == NotBroken(None)
    broken = break_off(record, 7, record.lease_expires_at - 1)
    assert isinstance(broken, Broken)
    assert isinstance(acquire(broken.record, Ask(BEN, 60), fences(8), NOW), Granted)


def test_status_says_held_free_or_completed_at_the_boundary() -> None:
    record = held(ttl=10)
    assert status(None, NOW).status == "free"
    assert status(record, record.lease_expires_at - 1).left == 1
    assert status(record, record.lease_expires_at - 1).status == "held"
    assert status(record, record.lease_expires_at).status == "free"
    assert status(completed(), completed().absolute_expires_at - 1).status == "completed"
    assert status(completed(), completed().absolute_expires_at).status == "free"


def test_verify_knows_current_stale_ended_and_unknown() -> None:
    record = held(ttl=10, fence=5)
    assert verify(record, 5, record.lease_expires_at - 1).fence == "current"
    assert verify(record, 5, record.lease_expires_at).fence == "ended"
    assert verify(record, 4, NOW).fence == "stale"
    assert verify(record, 6, NOW).fence == verify(None, 5, NOW).fence == "unknown"
    assert verify(completed(), 1, NOW + 2 * SECOND).fence == "ended"
    assert verify(released(), 1, NOW + 2 * SECOND).fence == "ended"


def test_a_thousand_ownerships_have_rising_fences_across_every_kind_of_end() -> None:  # I2
    record: LeaseRecord | None = None
    now, draw, seen = NOW, fences(), []
    for turn in range(1_000):
        owner = turn.to_bytes(32, "big")
        granted = acquire(record, Ask(owner, 2), draw, now)
        assert isinstance(granted, Granted)
        record = granted.record
        seen.append(record.fence)
        ends = (release(record, owner, now), break_off(record, record.fence, now), complete(record, owner, b"1", now))
        ended = ends[turn % 4] if turn % 4 < 3 else granted
        assert isinstance(ended, Released | Broken | Completed | Granted)
        record = ended.record
        now = record.absolute_expires_at if turn % 4 == 2 else record.lease_expires_at
    assert seen == sorted(set(seen))
