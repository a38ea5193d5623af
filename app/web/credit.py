"""Credit over REST, at the root and under /services/v1. Bound only where a call has a price."""

from flask import Blueprint

from app.services.credit import Credits
from app.web.edge import Call, Edge
from app.wire import credit as wire
from app.wire.members import NoMembers, parse
from app.wire.reply import Refused, Reply

_CAP = 4_096
_PREFIXES = {"credits_root": "", "credits_v1": "/services/v1"}


def blueprints(edge: Edge, credits: Credits) -> list[Blueprint]:
    """The same routes twice, like the once-key's."""
    return [_mount(edge, credits, name, prefix) for name, prefix in _PREFIXES.items()]


def _mount(edge: Edge, credits: Credits, name: str, prefix: str) -> Blueprint:
    routes = Blueprint(name, __name__, url_prefix=prefix or None)

    def trial(call: Call) -> Reply:
        parse(NoMembers, call.body)
        return wire.trial(*credits.trial(edge.address()), credits.price)

    def balance(call: Call) -> Reply:
        asked = parse(wire.AskBalanceByHeader, call.body)
        token = asked.credit_token or call.environ.get("HTTP_X_CREDIT_TOKEN")
        if not token:
            raise Refused(wire.not_sent())
        return wire.balance(credits.balance(token))

    edge.route(routes, "/credits/trial", trial, cap=_CAP)
    edge.route(routes, "/credits/balance", balance, cap=_CAP)
    edge.route(routes, "/credits/balance", balance, method="GET")
    return routes
