"""The two addresses of the stream, and what is asked before a connection becomes a socket.

In this order, as the contract says: query string, daily limit, is it a WebSocket handshake at all, subprotocol
label, origin, room, stopping; then, for a single handoff, its token. A refusal is an ordinary JSON answer, and
nothing was upgraded. A browser sends cookies along whatever page asks, and sockets know no same-origin rule: so the
origin is checked before anything else could be believed.
"""

import re
from collections.abc import Mapping
from functools import partial
from typing import Any

from flask import Blueprint, Flask, Response, g, request

from app.push.seats import Full, Seats
from app.web.connection import Connection
from app.web.conversation import NO_COOKIES, Conversation, Desk, Rights
from app.web.edge import Call, Edge, respond
from app.web.sock import OPTIONS, SUBPROTOCOL, Library, View, add_socket, offered_labels, show_guarded_socket
from app.web.subscription import HANDOFF_ID
from app.wire import errors
from app.wire.codes import Code
from app.wire.origins import Origins
from app.wire.reply import Refused, Reply, refusal

_ADMITTED = Reply(101, {})
_STOP_RETRY_SECONDS = 2
_KEY = re.compile(r"[A-Za-z0-9+/]{21}[AQgw]==", re.ASCII)


class Gate:
    """Judges an upgrade before the 101."""

    def __init__(self, edge: Edge, seats: Seats, origins: Origins, desk: Desk) -> None:
        self._edge = edge
        self._seats = seats
        self._origins = origins
        self._desk = desk

    def guard(self, view: View, arguments: dict[str, Any], *, must_have_label: bool = True) -> Response:
        """Refuse, or take a seat and let flask-sock do the handshake and hold the conversation."""
        answer = self._edge.answer(partial(self._judge, request.environ, must_have_label, arguments))
        if answer.status_code != _ADMITTED.status:
            return answer
        g.rights = _rights(request.environ, arguments.get("handoff_id"))
        try:
            with self._seats.seat("socket"):
                show_guarded_socket(self._desk.pace.patience)
                response = view(**arguments)
        except Full as full:
            return respond(errors.too_many_waiters(full.retry_after_seconds))
        except OSError:  # the peer left before the 101: nobody reads this
            return respond(errors.unavailable(committed="no"))
        response.status_code = _ADMITTED.status
        return response

    def no_upgrade(self, **_: str) -> Response:
        """The answer to a plain GET."""
        return self._edge.answer(partial(self._refuse_plain, request.environ))

    def _judge(self, environ: Mapping[str, Any], must_have_label: bool, arguments: Mapping[str, str]) -> Reply:
        self._count(environ)
        _judge_handshake(environ)
        if must_have_label and SUBPROTOCOL not in offered_labels(environ):
            raise Refused(_invalid("The subprotocol is missing", f"Send Sec-WebSocket-Protocol: {SUBPROTOCOL}."))
        if not self._origins.allow(environ.get("HTTP_ORIGIN")):
            raise Refused(errors.origin_not_allowed())
        if self._seats.taken >= self._seats.limit:
            raise Full
        if self._desk.hub.stopping:
            raise Refused(errors.unavailable(committed="no", retry_after_seconds=_STOP_RETRY_SECONDS))
        if "handoff_id" in arguments:
            self._open(arguments["handoff_id"], _bearer(environ))
        return _ADMITTED

    def _refuse_plain(self, environ: Mapping[str, Any]) -> Reply:
        self._count(environ)
        return refusal(Code.UPGRADE_REQUIRED, headers={"Upgrade": "websocket", "Connection": "Upgrade"})

    def _open(self, handoff_id: str, token: str) -> None:
        is_well_formed = HANDOFF_ID.fullmatch(handoff_id) is not None
        if not is_well_formed or self._desk.handoffs.open(handoff_id=handoff_id, token=token) is None:
            raise Refused(errors.not_found())

    def _count(self, environ: Mapping[str, Any]) -> None:
        if environ.get("QUERY_STRING"):
            raise Refused(errors.query_not_allowed())
        self._edge.count(self._edge.client(environ))


def _judge_handshake(environ: Mapping[str, Any]) -> None:
    version = environ.get("HTTP_SEC_WEBSOCKET_VERSION", "").strip()
    if version != "13":
        raise Refused(
            refusal(
                Code.UPGRADE_REQUIRED,
                error="The version of the WebSocket protocol is 13",
                headers={"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13"},
            )
        )
    if not _KEY.fullmatch(environ.get("HTTP_SEC_WEBSOCKET_KEY", "").strip()):
        raise Refused(_invalid("Sec-WebSocket-Key must be 16 bytes in base64"))


def _invalid(error: str, fix: str | None = None) -> Reply:
    return refusal(Code.INVALID_REQUEST, error=error, fix=fix)


def _bearer(environ: Mapping[str, Any]) -> str:
    return Call(b"", environ, Connection(environ), None).bearer()


def _rights(environ: Mapping[str, Any], only_handoff: str | None) -> Rights:
    """A header that is no bearer token (a proxy's own, perhaps) is none: then each `sub` brings its token."""
    try:
        bearer = _bearer(environ)
    except Refused:
        bearer = None
    cookies = dict(request.cookies) if "HTTP_COOKIE" in environ else NO_COOKIES
    return Rights(bearer, cookies, only_handoff)


def blueprint(app: Flask, edge: Edge, seats: Seats, origins: Origins, desk: Desk) -> Blueprint:
    """/services/v1/stream and /services/v1/handoff/<id>/stream."""
    app.config["SOCK_SERVER_OPTIONS"] = OPTIONS
    gate = Gate(edge, seats, origins, desk)
    routes = Blueprint("stream", __name__, url_prefix="/services/v1")

    def converse(library: Library, **_: str) -> None:
        Conversation(desk, library, g.rights).run()

    add_socket(routes, "/stream", gate.guard, converse)
    add_socket(routes, "/handoff/<handoff_id>/stream", partial(gate.guard, must_have_label=False), converse)
    for path in ("/stream", "/handoff/<handoff_id>/stream"):
        routes.add_url_rule(path, f"plain{path.replace('/', '-')}", gate.no_upgrade, methods=["GET"])
    return routes
