"""What a metered claim pays, on a real file: through waits, hang-ups and refusals."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.core import claim as core
from app.core.credit import CreditRecord, InsufficientCredit, PaymentRequired, UnknownCredit
from app.core.namespace import NamespaceForbidden, NamespaceWeak
from app.services.claim_try import ClaimAnswer
from app.services.ports import HungUp
from tests.services.oncekeys import FakeCaller, Once, once_keys

PRICE = 1_000
WHO = "clm_" + "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG"


@pytest.fixture
def once(tmp_path: Path) -> Iterator[Once]:
    with once_keys(tmp_path, price=PRICE) as running:
        yield running


def account(once: Once, amount: int) -> str:
    made = once.credits.grant(amount)
    assert isinstance(made, tuple)
    return made[0]


def held(once: Once, credit: str) -> CreditRecord:
    found = once.credits.balance(credit)
    assert found is not None
    return found


def test_a_thousand_claims_at_a_thousandth_cost_exactly_one_dollar(once: Once) -> None:
    credit = account(once, 1_000_000)
    token = once.claim("act-0", credit=credit).namespace_token
    for number in range(1, 1_000):
        assert isinstance(once.outcome(f"act-{number}", token=token, credit=credit), core.Claimed)
    assert held(once, credit) == CreditRecord(granted=1_000_000, spent=1_000_000, calls=1_000)
    assert once.outcome("act-1000", token=token, credit=credit) == InsufficientCredit(0, PRICE)
    assert once.status("act-1000", token=token).status == "free"


def test_nothing_to_pay_with_and_an_unknown_token_do_nothing(once: Once) -> None:
    assert once.outcome() == PaymentRequired(PRICE)
    assert once.outcome(credit="cred_nobody") == UnknownCredit()
    assert isinstance(once.status(), NamespaceForbidden)


def test_too_little_founds_no_namespace_and_takes_no_key(once: Once) -> None:
    credit = account(once, PRICE - 1)
    assert once.outcome(credit=credit) == InsufficientCredit(PRICE - 1, PRICE)
    assert isinstance(once.status(), NamespaceForbidden)
    assert held(once, credit) == CreditRecord(PRICE - 1)


def test_a_weak_name_and_a_repeat_cost_nothing(tmp_path: Path) -> None:
    with once_keys(tmp_path, price=PRICE, strong_names=True) as once:
        credit = account(once, PRICE)
        weak = once.claim(namespace="weak", credit=credit)
        assert isinstance(weak.outcome, NamespaceWeak)
        first = once.claim(namespace="a-strong-Name-0123", who=WHO, credit=credit)
        assert first.charged is not None
        assert first.charged.amount == PRICE
        # The account is empty now: what was paid for is still answered.
        for wait in (0, 5):
            again = once.claim(
                namespace="a-strong-Name-0123", token=first.namespace_token, who=WHO, credit=credit, wait=wait
            )
            assert isinstance(again.outcome, core.Claimed)
            assert again.outcome.repeated
            assert again.charged is not None
            assert again.charged.amount == 0
        assert held(once, credit).calls == 1


def test_a_wait_costs_one_call_whatever_it_comes_to(once: Once) -> None:
    credit = account(once, 10 * PRICE)
    token = once.claim(credit=credit).namespace_token
    assert isinstance(once.outcome(token=token, wait=1, credit=credit), core.ClaimHeld)
    assert held(once, credit).calls == 2
    answers = waiting(once, token, credit)
    once.complete(token=token, result="1")
    assert isinstance(joined(answers).outcome, core.Duplicate)
    assert held(once, credit).calls == 3
    once.claim("other", token=token, credit=credit)
    answers = waiting(once, token, credit, "other")
    once.release("other", token=token)
    assert isinstance(joined(answers).outcome, core.Claimed)
    assert held(once, credit) == CreditRecord(10 * PRICE, 5 * PRICE, 5)


def test_what_was_spent_meanwhile_is_not_told_at_the_end_of_a_wait(once: Once) -> None:
    credit = account(once, 2 * PRICE)
    token = once.claim(credit=credit).namespace_token
    answers = waiting(once, token, credit)
    once.claim("other", token=token, credit=credit)
    once.release(token=token)
    assert joined(answers).outcome == InsufficientCredit(0, PRICE)
    assert once.status(token=token).status == "free"


def test_a_claim_that_is_given_back_to_a_caller_who_left_is_refunded(once: Once) -> None:
    credit = account(once, 2 * PRICE)
    token = once.claim(credit=credit).namespace_token

    class Leaving(FakeCaller):
        """Gone by the time its claim is committed."""

        def is_open(self) -> bool:
            return held(once, credit).calls < 2

    caught: list[BaseException] = []

    def call() -> None:
        try:
            once.claim(token=token, wait=20, credit=credit, caller=Leaving())
        except HungUp as gone:
            caught.append(gone)

    caller = threading.Thread(target=call)
    caller.start()
    stand_in_line(once)
    once.release(token=token)
    caller.join(30)
    assert len(caught) == 1
    assert once.status(token=token).status == "free"
    assert held(once, credit) == CreditRecord(2 * PRICE, PRICE, 1)


def test_a_trial_is_one_per_address_and_needs_the_servers_key(tmp_path: Path) -> None:
    with once_keys(tmp_path, price=PRICE) as once:
        token, opened = once.credits.trial("192.0.2.7")
        assert token.startswith("cred_trial_")
        assert opened == CreditRecord(100_000)
        once.claim(credit=token)
        again, left = once.credits.trial("192.0.2.7")
        assert (again, left.balance) == (token, 100_000 - PRICE)
        assert once.credits.trial("192.0.2.8")[0] != token
        other_key = type(once.credits)(once.engine, price=PRICE, server_key=b"another key")
        assert other_key.trial("192.0.2.7")[0] != token


def test_a_grant_adds_to_a_known_token_only(once: Once) -> None:
    credit = account(once, 5)
    assert once.credits.grant(7, credit) == (credit, CreditRecord(12))
    assert once.credits.grant(7, "cred_nobody") == UnknownCredit()
    assert once.credits.balance("cred_nobody") is None


def stand_in_line(once: Once, action_key: str = "charge-1042") -> None:
    from app.services.action import action_of, topic

    place = topic(action_of("billing", action_key).claim_hash)
    for _ in range(3_000):
        if once.lines.length(place):
            return
        threading.Event().wait(0.01)
    raise AssertionError("nobody stands in line")


def waiting(
    once: Once, token: str | None, credit: str, action_key: str = "charge-1042"
) -> tuple[threading.Thread, list[ClaimAnswer]]:
    answers: list[ClaimAnswer] = []
    caller = threading.Thread(
        target=lambda: answers.append(once.claim(action_key, token=token, wait=20, credit=credit))
    )
    caller.start()
    stand_in_line(once, action_key)
    return caller, answers


def joined(call: tuple[threading.Thread, list[ClaimAnswer]]) -> ClaimAnswer:
    caller, answers = call
    caller.join(30)
    [answer] = answers
    return answer
