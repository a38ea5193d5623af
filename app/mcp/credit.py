"""The credit tools, there only where a call has a price."""

from app.mcp.refusals import NotFoundRefusal
from app.mcp.tool import LOOKS, SETTLES, Asker, Entry, Tool
from app.mcp.words import CREDITS_BALANCE, CREDITS_TRIAL
from app.services.credit import Credits
from app.wire import credit as wire
from app.wire.members import NoMembers
from app.wire.reply import Reply

_CAP = 4_096


def tools(credits: Credits) -> list[Entry]:
    """Trial and balance."""

    def trial(_: NoMembers, asker: Asker) -> Reply:
        return wire.trial(*credits.trial(asker.origin()), credits.price)

    def balance(asked: wire.AskBalance, _: Asker) -> Reply:
        return wire.balance(credits.balance(asked.credit_token))

    return [
        Tool(
            "credits_trial",
            "Get free credit for trying calls that cost something",
            CREDITS_TRIAL,
            NoMembers,
            trial,
            wire.TRIAL,
            SETTLES,
            _CAP,
        ),
        Tool(
            "credits_balance",
            "See what a credit token holds",
            CREDITS_BALANCE,
            wire.AskBalance,
            balance,
            wire.BALANCE_OF,
            LOOKS,
            _CAP,
            (NotFoundRefusal,),
        ),
    ]
