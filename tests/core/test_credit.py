"""The ledger: integer sums, charged whole or not at all."""

from hypothesis import given
from hypothesis import strategies as st

from app.core.credit import (
    LARGEST_AMOUNT,
    MILLIONTHS,
    Charged,
    CreditRecord,
    InsufficientCredit,
    charge,
    grant,
    refund,
)


def charged(record: CreditRecord, price: int) -> CreditRecord:
    outcome = charge(record, price)
    assert isinstance(outcome, Charged)
    return outcome.record


def test_a_thousand_times_a_thousandth_is_exactly_one() -> None:
    account = grant(None, MILLIONTHS)
    for _ in range(1_000):
        account = charged(account, 1_000)
    assert account == CreditRecord(granted=MILLIONTHS, spent=MILLIONTHS, calls=1_000)
    assert account.balance == 0


def test_a_balance_one_below_the_price_is_refused_and_one_at_it_is_charged() -> None:
    assert charge(CreditRecord(9_999), 10_000) == InsufficientCredit(9_999, 10_000)
    assert charged(CreditRecord(10_000), 10_000).balance == 0
    assert charged(CreditRecord(10_001), 10_000).balance == 1


@given(
    st.integers(1, LARGEST_AMOUNT),
    st.lists(st.tuples(st.sampled_from(["grant", "charge", "refund"]), st.integers(1, LARGEST_AMOUNT)), max_size=40),
)
def test_sums_never_leave_their_bounds_whatever_is_done(first: int, steps: list[tuple[str, int]]) -> None:
    """M1, M2, M3, against a ledger that is a plain list of entries."""
    account, entries, open_charges = grant(None, first), [first], list[int]()
    for step, amount in steps:
        match step:
            case "grant":
                account = grant(account, amount)
                entries.append(amount)
            case "charge":
                match charge(account, amount):
                    case Charged(record, cost):
                        assert cost == amount
                        account = record
                        entries.append(-amount)
                        open_charges.append(amount)
                    case InsufficientCredit(balance, required):
                        assert (balance, required) == (sum(entries), amount)
                        assert balance < required
            case _ if open_charges:
                amount = open_charges.pop()
                account = refund(account, amount)
                entries.append(amount)
        assert account.balance == sum(entries) >= 0
        assert 0 <= account.spent == sum(open_charges) <= account.granted
        assert account.calls == len(open_charges)
