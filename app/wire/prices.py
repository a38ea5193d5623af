"""What calls cost: the one table that descriptions of tools, the OpenAPI document, the guide and refusals read.

A price is kept in whole millionths of a dollar and shown as decimal text with six places. An operation that is not in
the table is free, and nothing is said of cost.
"""

from collections.abc import Mapping
from decimal import Decimal

from app.core.credit import MILLIONTHS

Prices = Mapping[str, int]
"""Name of the operation, which is the tool's name too, to its price."""
CLAIM = "once_key_claim"
FREE: Prices = {}


def prices(once_claim: Decimal | None) -> Prices:
    """The table for these settings; empty where metering is off."""
    return FREE if once_claim is None else {CLAIM: int(once_claim * MILLIONTHS)}


def usd(amount: int) -> str:
    """Millionths of a dollar as decimal text with six places."""
    whole, part = divmod(amount, MILLIONTHS)
    return f"{whole}.{part:06d}"


def told(prices: Prices, operation: str) -> str | None:
    """The sentence that says what an operation costs; None for a free one."""
    price = prices.get(operation)
    if price is None:
        return None
    return (
        f"Each call costs {usd(price)} US dollars of credit, whatever status it answers; a refusal and a repeat with "
        "the same claim_token cost nothing. Pay with credit_token: POST /credits/trial or the tool credits_trial gives "
        "a free one, once."
    )
