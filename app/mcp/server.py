"""The methods of both eras, as functions of a request.

The list of tools is written once, when the server is made: it is the same for everybody, in the same order, for as long
as the process lives, so clients may keep it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from app.mcp import revisions, rpc
from app.mcp.messages import Request
from app.mcp.rpc import Fault
from app.mcp.tool import Asker, Entry, result_of
from app.wire.json import RawJson, dump
from app.wire.reply import Reply

Result = dict[str, object]
Attempt = Callable[[Callable[[], object]], object]
"""Runs something and gives what it makes, or a Reply for the refusal or fault that it ends in."""

_KEPT: Result = {"ttlMs": 300_000, "cacheScope": "public"}
"""How long clients may keep a list or a description, and that it is the same for everybody."""
_SERVER_KEY = "io.modelcontextprotocol/serverInfo"


class Answered(NamedTuple):
    """A result, and the word for the log."""

    members: Result
    outcome: str = "ok"


class Server:
    """Answers requests. `instructions` is what a model is told about the whole."""

    def __init__(self, tools: Sequence[Entry], *, version: str, instructions: str) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._listed = [RawJson(dump(tool.listing()).decode()) for tool in tools]
        self._identity = {"name": "fencepost", "title": "Fencepost", "version": version}
        self._meta = RawJson(dump({_SERVER_KEY: self._identity}).decode())
        self._instructions = instructions
        self._lists: dict[str, Result] = {
            "tools/list": {"tools": self._listed},
            "resources/list": {"resources": []},
            "prompts/list": {"prompts": []},
        }

    def answer(self, request: Request, asker: Asker, attempt: Attempt, *, is_newest_era: bool) -> Answered:
        """The result of a request. Raises Fault."""
        made = self._call(request, asker, attempt) if request.method == "tools/call" else None
        if not is_newest_era:
            return made or Answered(self._in_session(request))
        members, outcome = made or Answered(self._stand_alone(request))
        own = members.get("_meta")
        meta = {_SERVER_KEY: self._identity, **own} if isinstance(own, Mapping) else self._meta
        return Answered({"resultType": "complete", **members, "_meta": meta}, outcome)

    def _stand_alone(self, request: Request) -> Result:
        if request.method == "server/discover":
            about = {"supportedVersions": list(revisions.ALL), "capabilities": {"tools": {}}}
            return {**about, "instructions": self._instructions, **_KEPT}
        return {**self._list(request), **_KEPT}

    def _in_session(self, request: Request) -> Result:
        if request.method == "ping":
            return {}
        if request.method == "initialize":
            wanted = request.params.get("protocolVersion")
            if not isinstance(wanted, str):
                raise Fault(rpc.INVALID_PARAMS, "params.protocolVersion must be a string")
            agreed = {"protocolVersion": revisions.agreed(wanted), "capabilities": {"tools": {}}}
            return {**agreed, "serverInfo": self._identity, "instructions": self._instructions}
        return self._list(request)

    def _list(self, request: Request) -> Result:
        if request.method not in self._lists:
            raise Fault(rpc.METHOD_NOT_FOUND, "Method not found")
        if request.params.get("cursor") is not None:
            raise Fault(rpc.INVALID_PARAMS, "There is no such cursor: every list is one page")
        return self._lists[request.method]

    def _call(self, request: Request, asker: Asker, attempt: Attempt) -> Answered:
        name, arguments = request.params.get("name"), request.params.get("arguments")
        if not isinstance(name, str):
            raise Fault(rpc.INVALID_PARAMS, "params.name must be a string")
        tool = self._tools.get(name)
        if tool is None:
            raise Fault(rpc.INVALID_PARAMS, "Unknown tool", {"tools": list(self._tools)})
        text = arguments.text if isinstance(arguments, RawJson) else "{}"
        if not text.startswith("{") and text != "null":
            raise Fault(rpc.INVALID_PARAMS, "params.arguments must be an object")
        return _answered(attempt(lambda: _faithful(tool, text.encode("utf-8"), asker)))


def _faithful(tool: Entry, arguments: bytes, asker: Asker) -> object:
    """A fault of the protocol as a value, so that it is not taken for a crash."""
    try:
        return tool.call(arguments, asker)
    except Fault as fault:
        return fault


def _answered(made: object) -> Answered:
    if isinstance(made, Fault):
        raise made
    if isinstance(made, Reply):
        if made.status == 500:
            raise Fault(rpc.INTERNAL_ERROR, "Internal error", {"request_id": made.body["request_id"]})
        return Answered(result_of(made), str(made.body.get("code") or made.body.get("status") or "ok"))
    assert isinstance(made, Mapping)
    return Answered(dict(made))
