"""Completion racing takeover on the real engine, at the very microsecond of the lapse and beside it.

Each round starts two callers on a barrier: the first claimant completes with its claim token while a rival tries to
take over. Whoever the engine's queue lets go first, one of them is right: either the result of the first stands and
the rival is told, or the rival took over and the first is told that it lost.
"""

from collections import Counter
from pathlib import Path

import gevent
import pytest
from gevent.event import Event

from app import tokens
from app.core import claim as core
from app.tokens import Kind
from tests.services.oncekeys import Once, once_keys


def race(once: Once, token: str, number: int, start: Event) -> str:
    """One round on an action of its own; who won."""
    action = f"action-{number}"
    one, two = tokens.mint(Kind.CLAIMANT), tokens.mint(Kind.CLAIMANT)
    first = once.won(action, token=token, who=one, lease=10)
    once.clock.advance(10, microseconds=-(number % 2))

    def complete() -> object:
        start.wait()
        return once.complete(action, token=token, who=one, result='"first"')

    def take_over() -> object:
        start.wait()
        return once.outcome(action, token=token, who=two, lease=10)

    callers = [complete, take_over] if number % 4 < 2 else [take_over, complete]
    greenlets = {caller.__name__: gevent.spawn(caller) for caller in callers}
    gevent.sleep(0)
    start.set()
    completed, taken = greenlets["complete"].get(timeout=30), greenlets["take_over"].get(timeout=30)
    start.clear()
    match completed, taken:
        case core.ClaimCompleted(record), core.Duplicate(seen):
            assert record.result == seen.result == b'"first"'
            winner = "completion"
        case core.ClaimCompleted(), core.InProgress():
            assert number % 2, "in the microsecond of the lapse nobody is in progress"
            winner = "completion"
        case core.ClaimLost(), core.Claimed(record):
            assert number % 2 == 0, "before the lapse nobody takes over"
            assert record.fence > first.fence
            done = once.complete(action, token=token, who=two, result='"second"')
            assert isinstance(done, core.ClaimCompleted)
            winner = "takeover"
        case _:
            raise AssertionError((completed, taken))
    stands = b'"first"' if winner == "completion" else b'"second"'
    for who in (one, two, None):
        late = once.complete(action, token=token, who=who, result='"late"')
        assert isinstance(late, core.AlreadyCompleted)
        assert late.record.result == stands
    duplicate = once.outcome(action, token=token)
    assert isinstance(duplicate, core.Duplicate)
    assert duplicate.record.result == stands
    return winner


def races(folder: Path, rounds: int) -> Counter[str]:
    with once_keys(folder) as once:
        token = once.claim("founding", ttl=31_536_000).namespace_token
        assert token is not None
        start = Event()
        return Counter(race(once, token, number, start) for number in range(rounds))


def test_o4_a_completion_and_a_takeover_never_both_win(tmp_path: Path) -> None:
    won = races(tmp_path, 300)
    assert won["completion"] > 0
    assert won["takeover"] > 0


@pytest.mark.long
@pytest.mark.timeout(600)
def test_o4_a_completion_and_a_takeover_never_both_win_ten_thousand_times(tmp_path: Path) -> None:
    won = races(tmp_path, 10_000)
    assert won["completion"] > 1_000
    assert won["takeover"] > 1_000


def test_o3_of_many_takeovers_in_the_microsecond_of_the_lapse_one_wins(tmp_path: Path) -> None:
    with once_keys(tmp_path) as once:
        token = once.claim("founding").namespace_token
        for number in range(20):
            once.won(f"action-{number}", token=token, lease=10)
        once.clock.advance(10)
        for number in range(20):
            rivals = [gevent.spawn(once.outcome, f"action-{number}", token=token, lease=10) for _ in range(20)]
            outcomes = [rival.get(timeout=30) for rival in rivals]
            kinds = Counter(type(outcome).__name__ for outcome in outcomes)
            assert kinds == {"Claimed": 1, "InProgress": 19}
