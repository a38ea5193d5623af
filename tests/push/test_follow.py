"""A follower tells each entry that its client lacks, in order, once, whatever signals came or did not."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.handoff import HandoffRecord, Moved, Offer, Wish, create, move
from app.core.instants import SECOND
from app.core.machine import Machine, declare
from app.push.follow import Change, End, HandoffFollower, LeaseFollower, Live, Snapshot, Step
from app.push.sources import HandoffSeen, LeaseSeen

NOW = 1_800_000_000 * SECOND


def record(version: int, states: int = 12) -> HandoffRecord:
    """A handoff that has come so far."""
    machine = declare([f"s{number}" for number in range(states)])
    assert isinstance(machine, Machine)
    made = create(Offer("0" * 32, b"", b"", machine, b"1", ttl_seconds=60), NOW)
    for number in range(version - 1):
        moved = move(made, Wish("owner", f"s{number}", f"s{number + 1}"), NOW)
        assert isinstance(moved, Moved)
        made = moved.record
    return made


def seen(version: int, now: int = NOW, states: int = 12) -> HandoffSeen:
    return HandoffSeen(record(version, states), now)


@pytest.mark.parametrize(
    ("after", "version", "steps"),
    [
        (None, 3, [Snapshot(False), Live(3)]),
        (0, 3, [Change(1), Change(2), Change(3), Live(3)]),
        (2, 3, [Change(3), Live(3)]),
        (3, 3, [Live(3)]),
        (4, 3, [Snapshot(True), Live(3)]),
    ],
)
def test_the_first_look_brings_what_is_lacking_and_goes_live(
    after: int | None, version: int, steps: list[Step]
) -> None:
    follower = HandoffFollower(after)
    assert follower.steps(seen(version)) == steps
    assert follower.steps(seen(version)) == []
    assert not follower.is_over


@given(st.integers(0, 12), st.lists(st.integers(0, 5), max_size=20))
def test_every_version_is_told_once_however_signals_merge(after: int, strides: list[int]) -> None:
    follower, version, told = HandoffFollower(after), max(1, after), []
    for stride in strides:
        version = min(12, version + stride)
        told += [step.version for step in follower.steps(seen(version)) if isinstance(step, Change)]
    assert told == list(range(after + 1, version + 1)) if strides else told == []


def test_the_end_is_told_last_and_only_once() -> None:
    follower = HandoffFollower(10)
    assert follower.steps(seen(12)) == [Change(11), Change(12), Live(12), End("ended")]
    assert follower.is_over
    assert follower.steps(seen(12)) == []


def test_an_expired_handoff_tells_its_changes_but_no_contents() -> None:
    over = NOW + 60 * SECOND
    assert HandoffFollower(None).steps(seen(2, over)) == [Live(2), End("expired")]
    assert HandoffFollower(1).steps(seen(2, over)) == [Change(2), Live(2), End("expired")]
    assert HandoffFollower(1).steps(seen(2, over - 1)) == [Change(2), Live(2)]
    assert HandoffFollower(1).steps(seen(2, over, states=2)) == [Change(2), Live(2), End("ended")]


def test_what_the_sweep_took_had_expired() -> None:
    follower = HandoffFollower(1)
    follower.steps(seen(1))
    assert follower.steps(None) == [End("expired")]


def test_a_history_that_shrank_is_a_reset() -> None:
    follower = HandoffFollower(1)
    follower.steps(seen(5))
    assert follower.steps(seen(3)) == [Snapshot(True)]
    assert follower.steps(seen(4)) == [Change(4)]


def test_a_lease_is_told_at_first_without_a_cause_and_then_only_when_it_changed() -> None:
    follower = LeaseFollower()
    held = LeaseSeen("held", 7, NOW, "granted", NOW - 5)
    assert follower.tell(held) == (True, None)
    assert follower.tell(replace(held, now=NOW - 3)) == (False, "granted")
    assert follower.tell(replace(held, ends_at=NOW + 1, cause="renewed")) == (True, "renewed")
    assert follower.tell(LeaseSeen("free", 7, None, "lapsed", NOW + 2)) == (True, "lapsed")


def test_time_left_is_counted_on_from_the_look() -> None:
    look = HandoffSeen(record(1), NOW)
    assert look.left() <= 60 * SECOND
    assert replace(look, seen_at=look.seen_at - 10).left() <= 50 * SECOND
    assert replace(look, seen_at=look.seen_at - 100).left() == 0
    assert LeaseSeen("completed", 7, NOW + 5, "completed", NOW).left() is None
