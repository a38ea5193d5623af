"""Prepaid credit: what an account was granted, what it spent, and whether it can pay.

    UNKNOWN ──grant──▶ ACCOUNT ──charge──▶ ACCOUNT (less)
                          ▲  └──refund──▶ ACCOUNT (as before the charge)
                          └────grant

Amounts are whole millionths of a US dollar: no floating point, so a thousand times 0.001 is 1. An account is named by
the digest of its token, which is all that opens it.

Invariants, named by the tests that prove them:

M1  0 <= spent <= granted: no charge goes past what was granted.
M2  A refused charge changes nothing.
M3  A refund takes back one charge and nothing else; n charges cost n times the price.
"""

from dataclasses import dataclass, replace

MILLIONTHS = 1_000_000
"""Of a dollar."""
TRIAL_AMOUNT = 100_000
LARGEST_AMOUNT = 10_000 * MILLIONTHS - 1


@dataclass(frozen=True, slots=True)
class CreditRecord:
    """An account: sums in millionths of a dollar, and how many calls were paid for."""

    granted: int
    spent: int = 0
    calls: int = 0

    @property
    def balance(self) -> int:
        """What is left, never below 0."""
        return self.granted - self.spent


@dataclass(frozen=True, slots=True)
class Charged:
    """The account as it is after a call, and what the call cost: 0 for one that was free of charge."""

    record: CreditRecord
    amount: int


@dataclass(frozen=True, slots=True)
class InsufficientCredit:
    """The account does not hold the price."""

    balance: int
    required: int


@dataclass(frozen=True, slots=True)
class UnknownCredit:
    """No account has this token."""


@dataclass(frozen=True, slots=True)
class PaymentRequired:
    """The call has a price, 1 or more millionths, and came without anything to pay it."""

    required: int


Unpaid = InsufficientCredit | UnknownCredit | PaymentRequired
"""Why a call that costs something was not done."""


def grant(record: CreditRecord | None, amount: int) -> CreditRecord:
    """Add to an account, or open one; `amount` from 1 to LARGEST_AMOUNT."""
    return CreditRecord(amount) if record is None else replace(record, granted=record.granted + amount)


def charge(record: CreditRecord, price: int) -> Charged | InsufficientCredit:
    """Pay for one call, whole or not at all."""
    if record.balance < price:
        return InsufficientCredit(record.balance, price)
    return Charged(replace(record, spent=record.spent + price, calls=record.calls + 1), price)


def refund(record: CreditRecord, price: int) -> CreditRecord:
    """Take one charge of this price back."""
    return replace(record, spent=record.spent - price, calls=record.calls - 1)
