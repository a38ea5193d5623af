"""`fencepost-server credits grant`: give credit where claims have a price."""

import argparse
import sys

from app.core.credit import MILLIONTHS
from app.settings import Settings, StartRefused
from app.settings.parse import dollars


def add_parsers(credits: argparse.ArgumentParser) -> None:
    """The verb below `credits`."""
    what = credits.add_subparsers(metavar="WHAT", dest="what", required=True)
    grant = what.add_parser("grant", help="open an account with so many US dollars, and print its token")
    grant.add_argument("amount", metavar="DOLLARS", help="such as 5 or 0.250000")
    grant.add_argument(
        "--add", action="store_true", help="add to the account whose token is read from standard input instead"
    )


def run(settings: Settings, given: argparse.Namespace) -> list[str]:
    """Do it; the lines to say. Raises StartRefused with what is wrong."""
    from app.cli.reach import done
    from app.wire.prices import usd

    if settings.price_once_claim is None:
        raise StartRefused("Nothing has a price here: FENCEPOST_PRICE_ONCE_CLAIM is not set, so nothing was granted.")
    asked: dict[str, object] = {"verb": "credits grant", "amount": _amount(given.amount)}
    if given.add:
        asked["credit_token"] = sys.stdin.readline().strip()
    answer = done(settings, asked)
    held = f"It holds {usd(answer['balance'])} US dollars."
    return [held] if given.add else [str(answer["credit_token"]), f"{held} The token is shown only now."]


def _amount(text: str) -> int:
    try:
        amount = dollars(text)
    except ValueError as fault:
        raise StartRefused(f"The amount must be {fault}.") from None
    if amount is None:
        raise StartRefused("The amount must be more than 0.")
    return int(amount * MILLIONTHS)
