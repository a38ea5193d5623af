"""The handoff over REST."""

from collections.abc import Callable

from flask import Blueprint
from werkzeug.routing import BaseConverter

from app.core.machine import RESERVED_NAMES
from app.push import guard, target
from app.services.handoff import Handoffs
from app.web.edge import Call, Edge
from app.wire import handoff as wire
from app.wire import handoff_members as members
from app.wire import tags
from app.wire.members import parse
from app.wire.reply import Reply

_CREATE_CAP = 24_576
_MOVE_CAP = 8_192


class _StateName(BaseConverter):
    """The last part of a move's path: any, but not the names of the routes beside it, which take no POST."""

    regex = rf"(?!(?:{'|'.join(RESERVED_NAMES)})\Z)[^/]+"


def blueprint(
    edge: Edge,
    handoffs: Handoffs,
    *,
    public_url: str,
    notify_secret: Callable[[str], str],
    webhooks: guard.Policy,
) -> Blueprint:
    """The routes under /services/v1/handoff.

    `notify_secret(handoff_id)` is what its webhooks are signed with, `webhooks` says where they may go.
    """
    routes = Blueprint("handoff", __name__, url_prefix="/services/v1/handoff")
    routes.record(lambda setup: setup.app.url_map.converters.update(state_name=_StateName))

    def create(call: Call) -> Reply:
        asked = parse(members.CreateHandoff, call.body)
        if asked.notify_url is not None:
            verdict = guard.judge_url(asked.notify_url, webhooks)
            if isinstance(verdict, target.Refused):
                return wire.notify_url_refused(verdict.says)
        creation = handoffs.create(
            payload=asked.payload.text,
            note=asked.note,
            machine=asked.machine,
            ttl_seconds=asked.ttl_seconds,
            title=asked.title,
            audience=asked.audience,
            notify_url=asked.notify_url,
            nonce=asked.nonce,
            owner_token=asked.owner_token,
            receiver_token=asked.receiver_token,
            address=call.address,
        )
        return wire.created(
            creation.outcome,
            owner_token=creation.owner_token,
            receiver_token=creation.receiver_token,
            public_url=public_url,
            notify_secret=notify_secret,
        )

    def read(call: Call, handoff_id: str) -> Reply:
        outcome = handoffs.read(token=call.bearer(), handoff_id=members.known_form(handoff_id))
        return wire.read(outcome, call.environ.get("HTTP_IF_NONE_MATCH"))

    def wait(call: Call, handoff_id: str, seconds: str) -> Reply:
        wait_seconds = members.wait_seconds(seconds)
        known = tags.known_versions(call.environ.get("HTTP_IF_NONE_MATCH"))
        return wire.waited(
            handoffs.wait(
                token=call.bearer(),
                handoff_id=members.known_form(handoff_id),
                known=known,
                wait_seconds=wait_seconds,
                caller=call.connection,
            )
        )

    def wait_without_seconds(call: Call, handoff_id: str) -> Reply:
        return wait(call, handoff_id, "")

    def move(call: Call, handoff_id: str, state: str) -> Reply:
        to = members.target_state(state)
        asked = parse(members.MoveHandoff, call.body)
        return wire.moved(
            handoffs.move(
                token=call.bearer(),
                handoff_id=members.known_form(handoff_id),
                to=to,
                expected=asked.expected,
                nonce=asked.nonce,
                note=asked.note,
            )
        )

    edge.route(routes, "", create, cap=_CREATE_CAP)
    edge.route(routes, "/<handoff_id>", read, method="GET")
    edge.route(routes, "/<handoff_id>/wait", wait_without_seconds, method="GET")
    edge.route(routes, "/<handoff_id>/wait/<seconds>", wait, method="GET")
    edge.route(routes, "/<handoff_id>/<state_name:state>", move, cap=_MOVE_CAP)
    return routes
