"""POST /mcp.

Order: method (405), origin (403), what the caller accepts (406), size and media type (413, 415), daily limit (429),
then the message. Replies are JSON, never a stream, and there is no session: any process can answer any request.
Requests count like those of REST, each message of a batch as one.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

from flask import Blueprint, Response
from flask.blueprints import BlueprintSetupState
from werkzeug.routing import Rule

from app.mcp import messages, revisions, rpc
from app.mcp.messages import Message, Request, Silent, Unreadable
from app.mcp.revisions import Headers
from app.mcp.rpc import Fault
from app.mcp.server import Answered, Server
from app.mcp.tool import Asker
from app.services.ports import Caller
from app.wire import errors
from app.wire.json import dump
from app.wire.origins import Origins
from app.wire.reply import Refused, Reply, Sent

CAP = 65_536
_JSON_RANGES = frozenset({"application/json", "application/*", "*/*"})
Made = TypeVar("Made")


class Edge(Protocol):
    """What this surface needs of the edge that all surfaces share."""

    def attempt(self, make: Callable[[], Made]) -> Made | Reply: ...

    def body(self, cap: int) -> bytes: ...

    def counted(self) -> str | None: ...

    def address(self) -> str: ...

    def count(self, counted_as: str | None) -> None: ...

    def caller(self) -> Caller: ...

    def environ(self) -> Mapping[str, Any]: ...

    def send(self, status: int, content: bytes, headers: Mapping[str, str], outcome: str) -> Sent: ...

    def view(self, make: Callable[..., Sent]) -> Callable[..., Response]: ...

    def answer_directly(self, state: BlueprintSetupState, method: str, rule: str, make: Callable[[], Sent]) -> None: ...


def blueprint(edge: Edge, server: Server, origins: Origins) -> Blueprint:
    """The one route. `origins` are the web pages that may call."""
    routes = Blueprint("mcp", __name__)
    endpoint = _Endpoint(edge, server, origins)

    def answer() -> Sent:
        if edge.environ()["REQUEST_METHOD"] == "OPTIONS":
            return edge.send(200, b"", {"Allow": "OPTIONS, POST"}, "options")
        made = edge.attempt(lambda: endpoint.answer(edge.environ()))
        return endpoint.refused(made, None) if isinstance(made, Reply) else made

    def add(state: BlueprintSetupState) -> None:
        # For any method there is: a rule with a list of them would name all of it in Allow.
        state.app.url_map.add(Rule("/mcp", endpoint="mcp", methods=None))
        state.app.view_functions["mcp"] = edge.view(answer)
        edge.answer_directly(state, "POST", "/mcp", answer)

    routes.record(add)
    return routes


class _Endpoint:
    def __init__(self, edge: Edge, server: Server, origins: Origins) -> None:
        self._edge = edge
        self._server = server
        self._origins = origins

    def answer(self, environ: Mapping[str, Any]) -> Sent:
        if environ["REQUEST_METHOD"] != "POST":
            reply = errors.method_not_allowed(("POST",))
            return self._edge.send(reply.status, reply.encode(), reply.headers, "method_not_allowed")
        body = self._edge.attempt(lambda: self._admitted(environ))
        if isinstance(body, Reply):
            return self.refused(body, None)
        counted = self._edge.attempt(self._edge.counted)
        if isinstance(counted, Reply):
            return self.refused(counted, messages.id_of(body))
        headers = Headers.of(environ)
        read = messages.read(body)
        if isinstance(read, list):
            return self._batch(read, headers, counted)
        return self._one(read, headers, counted)

    def _admitted(self, environ: Mapping[str, Any]) -> bytes:
        if not self._origins.allow(environ.get("HTTP_ORIGIN")):
            raise Refused(errors.origin_not_allowed())
        if not accepts_json(environ.get("HTTP_ACCEPT")):
            raise Refused(errors.not_acceptable())
        return self._edge.body(CAP)

    def _one(self, message: Message, headers: Headers, counted: str | None) -> Sent:
        match message:
            case Silent():
                return self._edge.send(202, b"", {}, "accepted")
            case Unreadable(fault=fault, id=id_):
                # What has an id is answered as the era of the header asks; what has none is no request of any era.
                is_answer = id_ is not None and headers.version in (None, *revisions.WITH_OPENING)
                return self._fault(200 if is_answer else fault.http, id_, fault)
            case Request():
                is_newest_era = revisions.is_newest_era(headers, message)
                try:
                    if is_newest_era:
                        revisions.check(headers, message)
                    answered = self._result(message, counted, is_newest_era)
                except Fault as fault:
                    return self._fault(fault.http if is_newest_era else 200, message.id, fault)
                return self._edge.send(200, dump(rpc.result(message.id, answered.members)), {}, answered.outcome)

    def _batch(self, batch: list[Message], headers: Headers, counted: str | None) -> Sent:
        if not revisions.allows_batches(headers):
            fault = Fault(rpc.INVALID_REQUEST, "Invalid request: this revision has no batches, send one message")
            return self._fault(fault.http, None, fault)
        replies = []
        for place, message in enumerate(batch):
            if not isinstance(message, Silent):
                replies.append(self._in_batch(message, counted, is_first=place == 0))
        if not replies:
            return self._edge.send(202, b"", {}, "accepted")
        return self._edge.send(200, rpc.encode(replies), {}, "batch")

    def _in_batch(self, message: Request | Unreadable, counted: str | None, *, is_first: bool) -> dict[str, object]:
        if isinstance(message, Unreadable):
            return rpc.error(message.id, message.fault)
        try:
            if message.method == "initialize":
                raise Fault(rpc.INVALID_REQUEST, "Invalid request: an opening cannot be part of a batch")
            refused = None if is_first else self._edge.attempt(lambda: self._edge.count(counted))
            if isinstance(refused, Reply):
                raise rpc.fault_of(refused)
            return rpc.result(message.id, self._result(message, counted, False).members)
        except Fault as fault:
            return rpc.error(message.id, fault)

    def _result(self, message: Request, counted: str | None, is_newest_era: bool) -> Answered:
        asker = Asker(self._edge.caller(), counted, message.meta or {}, self._edge.address)
        return self._server.answer(message, asker, self._edge.attempt, is_newest_era=is_newest_era)

    def refused(self, reply: Reply, id_: rpc.Id | None) -> Sent:
        fault = rpc.fault_of(reply)
        return self._edge.send(reply.status, dump(rpc.error(id_, fault)), reply.headers, str(reply.body["code"]))

    def _fault(self, status: int, id_: rpc.Id | None, fault: Fault) -> Sent:
        return self._edge.send(status, dump(rpc.error(id_, fault)), {}, f"rpc{fault.code}")


def accepts_json(header: str | None) -> bool:
    """Whether an Accept header lets a JSON answer through; none lets everything."""
    if header is None or not header.strip():
        return True
    return any(_is_json(entry) for entry in header.lower().split(","))


def _is_json(entry: str) -> bool:
    media, *parameters = (part.strip() for part in entry.split(";"))
    weights = [part[2:] for part in parameters if part.startswith("q=")]
    return media in _JSON_RANGES and not any(weight.strip("0.") == "" for weight in weights)
