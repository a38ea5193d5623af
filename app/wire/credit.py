"""Credit on the wire: what a token holds, and why a call was not paid for. Amounts are decimal text with six places."""

from typing import Annotated, assert_never

from pydantic import Field
from typing_extensions import TypedDict

from app.core import credit as core
from app.wire import errors
from app.wire.answers import Answers
from app.wire.codes import Code
from app.wire.kinds import ShownToken
from app.wire.members import Members
from app.wire.prices import usd
from app.wire.reply import Reply, refusal

CHARGED = "X-Credit-Charged"
BALANCE = "X-Credit-Balance"
_TRIAL = "/credits/trial"


class AskBalance(Members):
    """Look at an account."""

    credit_token: ShownToken = Field(description="The credit token.")


class AskBalanceByHeader(Members):
    """The same over REST, where the header X-Credit-Token does too."""

    credit_token: ShownToken | None = Field(
        default=None, description="The credit token, unless the header X-Credit-Token has it."
    )


_Usd = Annotated[str, Field(pattern=r"^[0-9]+\.[0-9]{6}$", description="US dollars as decimal text with six places.")]


class TrialAnswer(TypedDict):
    """200: the trial's token of this address."""

    credit_token: Annotated[str, Field(description="Pays for calls; a secret. The same address gets the same one.")]
    balance_usd: _Usd
    granted_usd: _Usd
    trial: Annotated[bool, Field(description="true: granted once, never refilled.")]
    exhausted: Annotated[bool, Field(description="Whether too little is left for another call.")]


class BalanceAnswer(TypedDict):
    """200: what the account was granted, spent and holds."""

    balance_usd: _Usd
    granted_usd: _Usd
    spent_usd: _Usd
    calls: Annotated[int, Field(ge=0, description="How many calls were paid for.")]


TRIAL: Answers = {200: (TrialAnswer,)}
BALANCE_OF: Answers = {200: (BalanceAnswer,)}


def trial(credit_token: str, account: core.CreditRecord, price: int) -> Reply:
    """The answer to a wish for a trial."""
    return Reply(
        200,
        {
            "credit_token": credit_token,
            "balance_usd": usd(account.balance),
            "granted_usd": usd(account.granted),
            "trial": True,
            "exhausted": account.balance < price,
        },
    )


def balance(account: core.CreditRecord | None) -> Reply:
    """What an account holds; 404 for an unknown token."""
    if account is None:
        return errors.not_found()
    return Reply(
        200,
        {
            "balance_usd": usd(account.balance),
            "granted_usd": usd(account.granted),
            "spent_usd": usd(account.spent),
            "calls": account.calls,
        },
    )


def not_sent() -> Reply:
    """400: no token to look at."""
    return refusal(
        Code.INVALID_REQUEST,
        error="credit_token is required",
        fix="Send the credit token in the header X-Credit-Token.",
        field="credit_token",
    )


def unpaid(outcome: core.Unpaid) -> Reply:
    """402 or 401: why the call was not done."""
    match outcome:
        case core.PaymentRequired(required):
            return refusal(
                Code.PAYMENT_REQUIRED,
                error=f"This call costs {usd(required)} US dollars of credit",
                members={"required_usd": usd(required), "trial": _TRIAL},
            )
        case core.InsufficientCredit(balance, required):
            return refusal(
                Code.INSUFFICIENT_CREDIT, members={"balance_usd": usd(balance), "required_usd": usd(required)}
            )
        case core.UnknownCredit():
            return refusal(Code.INVALID_CREDIT_TOKEN)
        case _:
            assert_never(outcome)


def with_charge(reply: Reply, charged: core.Charged | None) -> Reply:
    """The reply with what it cost and what is left, where calls have a price."""
    if charged is None:
        return reply
    cost = {CHARGED: usd(charged.amount), BALANCE: usd(charged.record.balance)}
    return Reply(reply.status, reply.body, {**reply.headers, **cost})
