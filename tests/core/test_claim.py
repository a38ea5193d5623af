"""The invariants O1 to O9 of app/core/claim.py at their boundaries. Time is an argument: nothing sleeps."""

from dataclasses import replace
from itertools import count

import pytest

from app.core import claim as core
from app.core.claim import (
    AlreadyCompleted,
    ClaimAsk,
    ClaimCompleted,
    ClaimConflict,
    Claimed,
    ClaimHeld,
    ClaimLost,
    ClaimNotBroken,
    ClaimRecord,
    ClaimReleased,
    ClaimRenewed,
    ClaimStatus,
    Duplicate,
    InProgress,
    NoClaim,
    NotLeased,
    ResultTooLarge,
)
from app.core.instants import SECOND

START = 1_800_000_000_000_000
A, B, C = (bytes([letter]) * 32 for letter in b"abc")
ORDER, OTHER_ORDER = bytes([1]) * 32, bytes([2]) * 32


def no_fence() -> int:
    raise AssertionError("a refusal or a repeat draws no fence")


def ask(who: bytes, ttl: int = 100, lease: int | None = None, payload: bytes | None = None) -> ClaimAsk:
    return ClaimAsk(who, ttl, lease, payload)


def claimed(
    who: bytes = A, *, ttl: int = 100, lease: int | None = None, payload: bytes | None = None, fence: int = 1
) -> ClaimRecord:
    outcome = core.claim(None, ask(who, ttl, lease, payload), lambda: fence, START)
    assert isinstance(outcome, Claimed)
    return outcome.record


def completed(result: bytes | None = b"1", *, ttl: int = 100, payload: bytes | None = None) -> ClaimRecord:
    outcome = core.complete(claimed(payload=payload), A, result, ttl, START + SECOND)
    assert isinstance(outcome, ClaimCompleted)
    return outcome.record


def test_a_first_claim_without_a_lease_is_claimed_for_its_whole_ttl() -> None:
    outcome = core.claim(None, ask(A, 100, payload=ORDER), lambda: 7, START)
    assert outcome == Claimed(
        ClaimRecord(
            claimant_hash=A,
            fence=7,
            attempt=1,
            claimed_at=START,
            changed_at=START,
            expires_at=START + 100 * SECOND,
            lease_expires_at=None,
            payload_hash=ORDER,
        )
    )
    assert isinstance(outcome, Claimed)
    assert not outcome.recovered
    assert not outcome.repeated


@pytest.mark.parametrize(("lease", "end"), [(1, 1), (99, 99), (100, 100), (101, 100), (31_536_000, 100)])
def test_o7_a_lease_is_cut_to_the_ttl(lease: int, end: int) -> None:
    assert claimed(ttl=100, lease=lease).lease_expires_at == START + end * SECOND


@pytest.mark.parametrize("after", [0, 1, SECOND, 100 * SECOND - 1])
def test_o2_an_unleased_claim_is_held_to_its_last_microsecond(after: int) -> None:
    record = claimed(ttl=100)
    outcome = core.claim(record, ask(B), no_fence, START + after)
    assert outcome == ClaimHeld(record, 100 * SECOND - after)


def test_o2_an_unleased_claim_is_free_at_its_end_and_the_next_is_no_takeover() -> None:
    outcome = core.claim(claimed(ttl=100), ask(B, 5), lambda: 2, START + 100 * SECOND)
    assert isinstance(outcome, Claimed)
    assert (outcome.record.attempt, outcome.recovered, outcome.record.fence) == (1, False, 2)
    assert outcome.record.expires_at == START + 105 * SECOND


@pytest.mark.parametrize("after", [0, 10 * SECOND - 1])
def test_o1_a_leased_claim_is_in_progress_until_its_lease_ends(after: int) -> None:
    record = claimed(lease=10)
    assert core.claim(record, ask(B), no_fence, START + after) == InProgress(record, 10 * SECOND - after)


def test_o3_a_lapsed_lease_is_taken_over_in_the_very_microsecond_of_its_end() -> None:
    record = claimed(lease=10)
    now = START + 10 * SECOND
    outcome = core.claim(record, ask(B, 5_000, 20), lambda: 2, now)
    assert outcome == Claimed(
        replace(
            record,
            claimant_hash=B,
            fence=2,
            attempt=2,
            claimed_at=now,
            changed_at=now,
            lease_expires_at=now + 20 * SECOND,
        )
    )
    assert isinstance(outcome, Claimed)
    assert outcome.recovered
    assert outcome.record.expires_at == START + 100 * SECOND


def test_o3_a_takeover_cuts_its_lease_to_the_first_end() -> None:
    outcome = core.claim(claimed(lease=10), ask(B, 5_000, 5_000), lambda: 2, START + 10 * SECOND)
    assert isinstance(outcome, Claimed)
    assert outcome.record.lease_expires_at == outcome.record.expires_at == START + 100 * SECOND


def test_o3_a_takeover_without_a_lease_is_held_to_the_first_end() -> None:
    outcome = core.claim(claimed(lease=10), ask(B), lambda: 2, START + 10 * SECOND)
    assert isinstance(outcome, Claimed)
    assert outcome.record.lease_expires_at is None
    later = core.claim(outcome.record, ask(C), no_fence, START + 100 * SECOND - 1)
    assert later == ClaimHeld(outcome.record, 1)


def test_a_takeover_takes_the_new_payload_if_one_is_given_and_keeps_the_old_one_if_not() -> None:
    at = START + 10 * SECOND
    for first, second, kept in [(None, ORDER, ORDER), (ORDER, None, ORDER), (ORDER, ORDER, ORDER), (None, None, None)]:
        outcome = core.claim(claimed(lease=10, payload=first), ask(B, payload=second), lambda: 2, at)
        assert isinstance(outcome, Claimed)
        assert outcome.record.payload_hash == kept


def test_a_third_attempt_follows_a_second() -> None:
    second = core.claim(claimed(lease=10), ask(B, lease=10), lambda: 2, START + 10 * SECOND)
    assert isinstance(second, Claimed)
    third = core.claim(second.record, ask(C, lease=10), lambda: 3, START + 20 * SECOND)
    assert isinstance(third, Claimed)
    assert (third.record.attempt, third.record.expires_at) == (3, START + 100 * SECOND)


@pytest.mark.parametrize("lease", [None, 10])
def test_o6_a_repeat_by_the_same_token_changes_nothing_and_draws_no_fence(lease: int | None) -> None:
    record = claimed(lease=lease)
    outcome = core.claim(record, ask(A, 999, 999), no_fence, START + 10 * SECOND - 1)
    assert outcome == Claimed(record, repeated=True)


def test_a_repeat_after_the_lease_lapsed_is_a_takeover_like_any_other() -> None:
    outcome = core.claim(claimed(lease=10), ask(A, lease=10), lambda: 2, START + 10 * SECOND)
    assert isinstance(outcome, Claimed)
    assert (outcome.repeated, outcome.recovered, outcome.record.fence) == (False, True, 2)


def test_a_repeated_takeover_still_says_that_somebody_was_there_before() -> None:
    taken = core.claim(claimed(lease=10), ask(B, lease=10), lambda: 2, START + 10 * SECOND)
    assert isinstance(taken, Claimed)
    again = core.claim(taken.record, ask(B, lease=10), no_fence, START + 11 * SECOND)
    assert again == Claimed(taken.record, repeated=True)
    assert isinstance(again, Claimed)
    assert again.recovered


def test_a_repeat_with_another_payload_is_a_conflict() -> None:
    record = claimed(payload=ORDER)
    outcome = core.claim(record, ask(A, payload=OTHER_ORDER), no_fence, START)
    assert outcome == ClaimConflict(replace(record, conflicts=1))


def states(payload: bytes | None) -> list[tuple[str, ClaimRecord, int]]:
    return [
        ("held", claimed(payload=payload), START),
        ("in progress", claimed(lease=10, payload=payload), START),
        ("lapsed", claimed(lease=10, payload=payload), START + 10 * SECOND),
        ("completed", completed(payload=payload), START + 2 * SECOND),
    ]


@pytest.mark.parametrize("state", range(4))
def test_o5_another_payload_is_a_conflict_in_every_state_and_only_the_count_changes(state: int) -> None:
    _, record, now = states(ORDER)[state]
    outcome = core.claim(record, ask(B, payload=OTHER_ORDER), no_fence, now)
    assert outcome == ClaimConflict(replace(record, conflicts=1))


@pytest.mark.parametrize("state", range(4))
@pytest.mark.parametrize(("stored", "sent"), [(ORDER, ORDER), (ORDER, None), (None, ORDER), (None, None)])
def test_o5_a_payload_missing_on_either_side_is_no_conflict(
    state: int, stored: bytes | None, sent: bytes | None
) -> None:
    _, record, now = states(stored)[state]
    assert not isinstance(core.claim(record, ask(B, payload=sent), lambda: 2, now), ClaimConflict)


def test_o5_an_ended_claim_binds_nobody_to_its_payload() -> None:
    outcome = core.claim(claimed(payload=ORDER), ask(B, payload=OTHER_ORDER), lambda: 2, START + 100 * SECOND)
    assert isinstance(outcome, Claimed)
    assert outcome.record.payload_hash == OTHER_ORDER


@pytest.mark.parametrize("after", [0, 100 * SECOND - 1])
def test_a_completed_claim_is_a_duplicate_until_its_new_end(after: int) -> None:
    record = completed(b'{"id": 1}', ttl=100)
    assert core.claim(record, ask(B), no_fence, START + SECOND + after) == Duplicate(record)


def test_a_completed_claim_is_free_at_its_new_end() -> None:
    outcome = core.claim(completed(ttl=100), ask(B), lambda: 2, START + 101 * SECOND)
    assert isinstance(outcome, Claimed)
    assert (outcome.record.attempt, outcome.record.completed_at, outcome.record.result) == (1, None, None)
    assert outcome.record.result_hash is None


def test_completing_restarts_the_end_from_now_even_to_an_earlier_one() -> None:
    assert completed(ttl=1).expires_at == START + 2 * SECOND
    assert completed(ttl=31_536_000).expires_at == START + 31_536_001 * SECOND


@pytest.mark.parametrize("who", [A, None])
@pytest.mark.parametrize("lease", [None, 10])
def test_an_unfinished_claim_is_completed_by_its_claimant_or_by_a_holder_that_names_none(
    who: bytes | None, lease: int | None
) -> None:
    outcome = core.complete(claimed(lease=lease), who, b"{}", 50, START + 3)
    assert isinstance(outcome, ClaimCompleted)
    assert (outcome.record.completed_at, outcome.record.result) == (START + 3, b"{}")
    assert outcome.record.expires_at == START + 3 + 50 * SECOND


def test_the_holder_of_a_lapsed_lease_that_nobody_took_may_still_complete() -> None:
    outcome = core.complete(claimed(lease=10), A, b"1", 50, START + 99 * SECOND)
    assert isinstance(outcome, ClaimCompleted)


def test_o4_a_late_claimant_cannot_complete_over_its_successor() -> None:
    taken = core.claim(claimed(A, lease=10), ask(B, lease=10), lambda: 2, START + 10 * SECOND)
    assert isinstance(taken, Claimed)
    assert core.complete(taken.record, A, b"1", 50, START + 11 * SECOND) == ClaimLost()
    done = core.complete(taken.record, B, b"2", 50, START + 11 * SECOND)
    assert isinstance(done, ClaimCompleted)
    assert core.complete(done.record, A, b"1", 50, START + 12 * SECOND) == AlreadyCompleted(done.record)


@pytest.mark.parametrize("who", [A, B, None])
@pytest.mark.parametrize("result", [None, b"2", b"1" * 16_385])
def test_o4_completing_again_answers_with_the_first_result_whatever_is_sent(
    who: bytes | None, result: bytes | None
) -> None:
    record = completed(b"1")
    assert core.complete(record, who, result, 9, START + 2 * SECOND) == AlreadyCompleted(record)


@pytest.mark.parametrize("size", [0, 1, 16_383, 16_384])
def test_a_result_of_up_to_16384_bytes_is_kept_whole(size: int) -> None:
    outcome = core.complete(claimed(), A, b"1" * size, 50, START)
    assert isinstance(outcome, ClaimCompleted)
    assert outcome.record.result == b"1" * size


def test_a_result_of_16385_bytes_is_refused_and_the_claim_stays_open() -> None:
    record = claimed()
    assert core.complete(record, A, b"1" * 16_385, 50, START) == ResultTooLarge(16_385)
    assert isinstance(core.complete(record, A, b"1", 50, START), ClaimCompleted)


def test_a_stranger_s_large_result_is_lost_before_it_is_measured() -> None:
    assert core.complete(claimed(), B, b"1" * 16_385, 50, START) == ClaimLost()


@pytest.mark.parametrize("now", [START + 100 * SECOND, START + 101 * SECOND])
@pytest.mark.parametrize("record", [None, claimed(), claimed(lease=10), claimed(lease=100)])
def test_there_is_no_claim_to_act_on_from_its_end_on(record: ClaimRecord | None, now: int) -> None:
    assert core.complete(record, A, b"1", 50, now) == NoClaim()
    assert core.release(record, A, now) == NoClaim()
    assert core.renew(record, A, 10, now) == NoClaim()
    assert core.break_off(record, 1, now) == ClaimNotBroken(None)
    assert core.status(record, now) == ClaimStatus("free", None)


def test_an_ended_completed_claim_is_no_claim_either() -> None:
    record = completed(ttl=1)
    assert core.complete(record, A, b"1", 50, START + 2 * SECOND) == NoClaim()
    assert core.release(record, A, START + 2 * SECOND) == NoClaim()
    assert core.status(record, START + 2 * SECOND) == ClaimStatus("free", None)


@pytest.mark.parametrize("who", [A, None])
@pytest.mark.parametrize(("lease", "now"), [(None, START), (10, START), (10, START + 10 * SECOND)])
def test_a_released_claim_is_free_in_the_same_microsecond(who: bytes | None, lease: int | None, now: int) -> None:
    outcome = core.release(claimed(lease=lease, payload=ORDER), who, now)
    assert isinstance(outcome, ClaimReleased)
    assert core.status(outcome.record, now) == ClaimStatus("free", None)
    assert core.release(outcome.record, who, now) == NoClaim()
    again = core.claim(outcome.record, ask(B, payload=OTHER_ORDER), lambda: 2, now)
    assert isinstance(again, Claimed)
    assert (again.recovered, again.record.fence, again.record.payload_hash) == (False, 2, OTHER_ORDER)


def test_another_claimant_releases_nothing() -> None:
    assert core.release(claimed(), B, START) == ClaimLost()


@pytest.mark.parametrize("who", [A, B, None])
def test_a_completed_claim_is_not_released(who: bytes | None) -> None:
    record = completed()
    assert core.release(record, who, START + 2 * SECOND) == AlreadyCompleted(record)


@pytest.mark.parametrize(("ttl", "left"), [(1, 1), (94, 94), (95, 95), (96, 95), (31_536_000, 95)])
def test_o7_a_renewal_replaces_the_end_and_never_passes_the_claim_s(ttl: int, left: int) -> None:
    now = START + 5 * SECOND
    outcome = core.renew(claimed(lease=10), A, ttl, now)
    assert isinstance(outcome, ClaimRenewed)
    assert outcome.record == replace(claimed(lease=10), changed_at=now, lease_expires_at=now + left * SECOND)


def test_a_lease_is_renewed_in_its_last_microsecond_and_lost_in_the_next() -> None:
    record = claimed(lease=10)
    assert isinstance(core.renew(record, A, 10, START + 10 * SECOND - 1), ClaimRenewed)
    assert core.renew(record, A, 10, START + 10 * SECOND) == ClaimLost()


def test_a_claimant_that_was_taken_over_cannot_renew_whatever_the_successor_chose() -> None:
    for lease in (None, 10):
        taken = core.claim(claimed(A, lease=10), ask(B, lease=lease), lambda: 2, START + 10 * SECOND)
        assert isinstance(taken, Claimed)
        assert core.renew(taken.record, A, 10, START + 11 * SECOND) == ClaimLost()


def test_an_unleased_claim_has_no_lease_to_renew() -> None:
    assert core.renew(claimed(), A, 10, START) == NotLeased()


def test_a_completed_claim_is_not_renewed() -> None:
    record = completed()
    for who in (A, B):
        assert core.renew(record, who, 10, START + 2 * SECOND) == AlreadyCompleted(record)


def test_an_operator_releases_only_the_claim_that_was_seen() -> None:
    record = claimed(fence=5)
    assert core.break_off(record, 4, START) == ClaimNotBroken(5)
    outcome = core.break_off(record, 5, START)
    assert isinstance(outcome, ClaimReleased)
    assert not outcome.record.is_live(START)
    done = completed()
    assert core.break_off(done, done.fence, START + 2 * SECOND) == ClaimNotBroken(done.fence)


def test_a_claim_that_reached_nobody_is_given_back() -> None:
    outcome = core.give_back(claimed(), A, START)
    assert isinstance(outcome, ClaimReleased)
    assert core.status(outcome.record, START).status == "free"
    assert core.give_back(claimed(), B, START) == ClaimLost()
    assert core.give_back(None, A, START) == ClaimLost()
    assert core.give_back(completed(), A, START + SECOND) == ClaimLost()


@pytest.mark.parametrize("lease", [None, 10])
def test_a_takeover_that_reached_nobody_is_left_to_the_next_takeover(lease: int | None) -> None:
    now = START + 10 * SECOND
    taken = core.claim(claimed(lease=10), ask(B, lease=lease), lambda: 2, now)
    assert isinstance(taken, Claimed)
    outcome = core.give_back(taken.record, B, now)
    assert isinstance(outcome, ClaimReleased)
    assert core.status(outcome.record, now).status == "lapsed"
    third = core.claim(outcome.record, ask(C), lambda: 3, now)
    assert isinstance(third, Claimed)
    assert third.recovered
    assert third.record.expires_at == START + 100 * SECOND


def test_the_status_follows_the_clock() -> None:
    leased, unleased, done = claimed(lease=10), claimed(), completed(ttl=100)
    assert core.status(None, START) == ClaimStatus("free", None)
    assert core.status(leased, START + 10 * SECOND - 1) == ClaimStatus("in_progress", leased)
    assert core.status(leased, START + 10 * SECOND) == ClaimStatus("lapsed", leased)
    assert core.status(leased, START + 100 * SECOND) == ClaimStatus("free", None)
    assert core.status(unleased, START + 100 * SECOND - 1) == ClaimStatus("held", unleased)
    assert core.status(done, START + 101 * SECOND - 1) == ClaimStatus("completed", done)


def test_o9_nothing_null_and_damage_are_three_things() -> None:
    assert completed(None).recorded() == "nothing"
    assert completed(b"null").recorded() == "result"
    assert completed(b"").recorded() == "result"
    assert replace(completed(b"[1]"), result=b"[2]").recorded() == "unreadable"
    assert replace(completed(b"[1]"), result=None).recorded() == "unreadable"


def test_no_decision_is_taken_before_the_row_s_last_change() -> None:
    done = completed(ttl=1)
    earlier = START - 5 * SECOND
    assert core.claim(done, ask(B), no_fence, earlier) == Duplicate(done)
    taken = core.claim(claimed(lease=10), ask(B, lease=10), lambda: 2, START + 10 * SECOND)
    assert isinstance(taken, Claimed)
    outcome = core.claim(taken.record, ask(C), no_fence, earlier)
    assert outcome == InProgress(taken.record, 10 * SECOND)
    renewed = core.renew(taken.record, B, 10, earlier)
    assert isinstance(renewed, ClaimRenewed)
    assert renewed.record.lease_expires_at == START + 20 * SECOND


def test_o6_fences_follow_the_drawing_through_every_way_to_a_new_claimant() -> None:
    fences = count(1)
    record: ClaimRecord | None = None
    now, seen = START, []
    for _ in range(20):
        outcome = core.claim(record, ask(A, 100, 10), lambda: next(fences), now)
        assert isinstance(outcome, Claimed)
        seen.append(outcome.record.fence)
        record = outcome.record
        now += 10 * SECOND
    assert seen == list(range(1, 21))
