import json

import pytest

from app.core.instants import SECOND
from app.core.outbox import (
    LONGEST_PAUSE_SECONDS,
    PAUSES_SECONDS,
    TRIES,
    Again,
    Answered,
    Delivery,
    Notice,
    Over,
    Resent,
    TooLate,
    TriedMeanwhile,
    Undelivered,
    Underway,
    after_try,
    before_try,
    body,
    resend,
)

T0 = 1_800_000_000 * SECOND
NEVER = T0 + 86_400 * SECOND
NOTICE = Notice("0" * 32, 2, "https://hooks.example/x?key=1", b"{}", NEVER)


def after(result: Answered | Undelivered, tries: int, *, jitter: float = 0.5, expires_at: int = NEVER) -> Again | Over:
    return after_try(result, tries=tries, expires_at=expires_at, now=T0, jitter=jitter)


@pytest.mark.parametrize("tries", range(1, TRIES + 1))
@pytest.mark.parametrize("status", [200, 201, 204, 299])
def test_any_2xx_is_success_at_any_try(status: int, tries: int) -> None:
    assert after(Answered(status), tries) == Over("delivered")


@pytest.mark.parametrize("tries", range(1, TRIES + 1))
def test_gone_stops_at_once(tries: int) -> None:
    assert after(Answered(410), tries) == Over("stopped")


@pytest.mark.parametrize("status", [400, 401, 404, 409, 411, 429, 499])
def test_another_4xx_stops_at_the_second_try_but_not_at_the_first(status: int) -> None:
    assert after(Answered(status), 1) == Again(T0 + 15 * SECOND)
    for tries in range(2, TRIES + 1):
        assert after(Answered(status), tries) == Over("stopped")


@pytest.mark.parametrize(
    "result",
    [Answered(300), Answered(302), Answered(399), Answered(500), Answered(503), Answered(599), Undelivered("timeout"),
     Undelivered("refused"), Undelivered("name"), Undelivered("connection"), Undelivered("tls"), Undelivered("answer")],
)  # fmt: skip
def test_everything_else_is_tried_five_times_over_about_15_minutes(result: Answered | Undelivered) -> None:
    pauses = [after(result, tries) for tries in range(1, TRIES)]
    assert pauses == [Again(T0 + pause * SECOND) for pause in PAUSES_SECONDS]
    assert after(result, TRIES) == Over("exhausted")
    assert TRIES == 5
    assert 14 * 60 <= sum(PAUSES_SECONDS) <= 16 * 60


def test_a_pause_is_spread_by_a_fifth_to_both_sides() -> None:
    assert after(Answered(500), 2, jitter=0.0) == Again(T0 + 48 * SECOND)
    assert after(Answered(500), 2, jitter=0.999999) == Again(T0 + 72 * SECOND - 24)


def test_what_the_receiver_asks_for_is_obeyed_within_reason() -> None:
    assert after(Answered(503, 3), 1) == Again(T0 + 15 * SECOND)
    assert after(Answered(503, 120), 1) == Again(T0 + 120 * SECOND)
    assert after(Answered(429, 120), 1) == Again(T0 + 120 * SECOND)
    for asked in (LONGEST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS + 1, 10**9):
        assert after(Answered(503, asked), 1) == Again(T0 + LONGEST_PAUSE_SECONDS * SECOND)


def test_nothing_is_tried_at_or_after_the_end_of_the_handoff() -> None:
    again = T0 + 15 * SECOND
    assert after(Answered(500), 1, expires_at=again + 1) == Again(again)
    assert after(Answered(500), 1, expires_at=again) == Over("expired")
    assert before_try(tries=0, expires_at=T0 + 1, now=T0) is None
    assert before_try(tries=0, expires_at=T0, now=T0) == Over("expired")
    assert after(Answered(200), 1, expires_at=T0) == Over("delivered")


def test_a_try_that_a_crash_cut_short_counts() -> None:
    assert before_try(tries=TRIES - 1, expires_at=NEVER, now=T0) is None
    assert before_try(tries=TRIES, expires_at=NEVER, now=T0) == Over("exhausted")


def test_a_person_may_have_it_sent_once_more_while_the_handoff_lives() -> None:
    over = Delivery(NOTICE, 5, None, 0, "exhausted", "500", T0 - SECOND)
    seen = over.tried_at
    again = resend(over, seen, T0)
    assert again == Resent(Delivery(NOTICE, 0, T0, 0, None, "500", T0 - SECOND))
    assert resend(over, seen, NEVER) == TooLate()
    assert isinstance(resend(over, seen, NEVER - 1), Resent)


def test_a_wish_that_is_sent_twice_sends_nothing_twice() -> None:
    stopped = Delivery(NOTICE, 1, None, 0, "stopped", "410", T0)
    first = resend(stopped, T0, T0 + 1)
    assert isinstance(first, Resent)
    assert resend(first.delivery, T0, T0 + 2) == Resent(first.delivery, repeated=True)
    tried = Delivery(NOTICE, 1, None, 0, "delivered", "200", T0 + 3)
    assert resend(tried, T0, T0 + 4) == TriedMeanwhile()


def test_what_is_being_sent_is_not_sent_again() -> None:
    claimed = Delivery(NOTICE, 1, T0, T0 + 1)
    assert resend(claimed, None, T0) == Underway()
    assert isinstance(resend(claimed, None, T0 + 1), Resent)


@pytest.mark.parametrize(
    ("url", "receiver"),
    [
        ("https://Hooks.Example/a", "hooks.example"),
        ("https://hooks.example:8443?x", "hooks.example:8443"),
        ("http://[::1]#x", "[::1]"),
        ("http://hooks.example", "hooks.example"),
    ],
)
def test_receivers_take_turns_by_host_and_port(url: str, receiver: str) -> None:
    assert Notice("0" * 32, 2, url, b"", NEVER).receiver == receiver


def test_the_body_has_exactly_its_ten_members() -> None:
    made = body(
        handoff_id="ab" * 16,
        state="done",
        previous="working",
        by="receiver",
        version=4,
        ended=True,
        changed_at=T0 + SECOND - 1,
        result_url="https://fence.example/services/v1/handoff/" + "ab" * 16,
    )
    assert json.loads(made) == {
        "event": "agent_handoff.changed",
        "handoff_id": "ab" * 16,
        "state": "done",
        "previous": "working",
        "by": "receiver",
        "version": 4,
        "ended": True,
        "changed_at": "2027-01-15T08:00:00Z",
        "changed_at_timestamp": 1_800_000_000,
        "result_url": "https://fence.example/services/v1/handoff/" + "ab" * 16,
    }
