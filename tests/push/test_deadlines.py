"""Deadlines ring at their instant, and those whose listeners left do not pile up."""

from collections.abc import Iterator

import gevent
import pytest

from app.clock import ManualClock
from app.core.instants import SECOND
from app.push.deadlines import Deadlines
from app.push.hub import Hub

YEAR = 31_536_000 * SECOND


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def hub() -> Hub:
    return Hub()


@pytest.fixture
def deadlines(clock: ManualClock, hub: Hub) -> Iterator[Deadlines]:
    made = Deadlines(clock, hub, longest_nap_seconds=0.01)
    yield made
    made.stop()


def test_a_topic_is_rung_at_its_instant_and_not_before(clock: ManualClock, hub: Hub, deadlines: Deadlines) -> None:
    with hub.listen("claim:a") as ticket:
        deadlines.at("claim:a", clock.now() + 10 * SECOND)
        clock.advance(10, microseconds=-1)
        assert ticket.wait(0.1) is False
        clock.advance(microseconds=1)
        assert ticket.wait(10) is True
    assert deadlines.kept() == 0


def test_a_hundred_thousand_short_waits_for_ends_a_year_away_leave_nothing_behind(
    clock: ManualClock, hub: Hub, deadlines: Deadlines
) -> None:
    with hub.listen("claim:kept") as ticket:
        deadlines.at("claim:kept", clock.now() + SECOND)
        for number in range(100_000):
            topic = f"claim:{number}"
            with hub.listen(topic):
                deadlines.at(topic, clock.now() + YEAR)
        assert deadlines.kept() < 5_000
        clock.advance(1)
        gevent.sleep(0)
        assert ticket.wait(10) is True


def test_deadlines_that_somebody_listens_for_are_all_kept(clock: ManualClock, hub: Hub, deadlines: Deadlines) -> None:
    tickets = [hub.listen(f"lease:{number}") for number in range(3_000)]
    for number, ticket in enumerate(tickets):
        ticket.__enter__()
        deadlines.at(f"lease:{number}", clock.now() + SECOND)
    clock.advance(1)
    assert all(ticket.wait(10) for ticket in tickets)
