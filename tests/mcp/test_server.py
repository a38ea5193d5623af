"""Methods of both eras over tools that do as they are told: results, faults, and the models of every revision."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from app.mcp import rpc
from app.mcp.messages import Request
from app.mcp.rpc import Fault
from app.mcp.server import Server
from app.mcp.tool import Asker
from app.wire import errors
from app.wire.codes import Code
from app.wire.json import RawJson, dump
from app.wire.reply import Refused, Reply, refusal
from tests.mcp import oracle


class NoCaller:
    """A connection that nobody closes."""

    def is_open(self) -> bool:
        return True

    def on_hang_up(self, wake):  # pragma: no cover - no tool here waits
        raise NotImplementedError


ASKER = Asker(NoCaller(), None, {}, lambda: "127.0.0.1")


@dataclass(frozen=True)
class Echo:
    """Answers what it was made with, or raises it."""

    made: Any
    name: str = "echo"

    def listing(self) -> dict[str, Any]:
        return {"name": self.name, "inputSchema": {"type": "object"}}

    def call(self, arguments: bytes, asker: Asker) -> Reply | Mapping[str, object]:
        if isinstance(self.made, Exception):
            raise self.made
        if self.made == "arguments":
            return Reply(200, {"got": RawJson(arguments.decode())})
        return self.made


def attempt(make):
    """As the edge does it."""
    try:
        return make()
    except Refused as refused:
        return refused.reply
    except ValueError:
        return errors.internal("req-1")


def server(made: object = None) -> Server:
    return Server([Echo(made)], version="9.9.9", instructions="Be careful.")


def ask(method: str, params: dict[str, Any] | None = None, *, newest: bool = False, made: object = None) -> Any:
    answered = server(made).answer(Request(1, method, params or {}), ASKER, attempt, is_newest_era=newest)
    return json.loads(dump(answered.members))


def call(made: object, **params: object) -> Any:
    return ask("tools/call", {"name": "echo", **params}, made=made)


def fault(method: str, params: dict[str, Any] | None = None, *, newest: bool = False, made: object = None) -> Fault:
    with pytest.raises(Fault) as caught:
        ask(method, params, newest=newest, made=made)
    return caught.value


OLD = oracle.REVISIONS[:-1]
LISTS = ["tools/list", "resources/list", "prompts/list"]


@pytest.mark.parametrize("revision", OLD)
@pytest.mark.parametrize("method", ["ping", *LISTS])
def test_the_old_era_answers_as_each_of_its_revisions_knows_it(method, revision) -> None:
    oracle.judge_result(method, revision, ask(method))


@pytest.mark.parametrize("method", ["server/discover", *LISTS])
def test_the_new_era_says_how_long_an_answer_may_be_kept_and_who_gave_it(method) -> None:
    result = ask(method, newest=True)
    oracle.judge_result(method, oracle.NEWEST, result)
    assert result["resultType"] == "complete"
    assert (result["ttlMs"] >= 0, result["cacheScope"]) == (True, "public")
    assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["version"] == "9.9.9"


@pytest.mark.parametrize("wanted", OLD)
def test_an_opening_says_who_we_are_and_what_we_offer(wanted) -> None:
    result = ask("initialize", {"protocolVersion": wanted})
    oracle.judge_result("initialize", wanted, result)
    assert (result["protocolVersion"], result["capabilities"]) == (wanted, {"tools": {}})
    assert (result["serverInfo"]["name"], result["instructions"]) == ("fencepost", "Be careful.")


def test_an_opening_without_a_revision_is_refused() -> None:
    assert fault("initialize").code == rpc.INVALID_PARAMS
    assert fault("initialize", {"protocolVersion": 1}).code == rpc.INVALID_PARAMS


@pytest.mark.parametrize("method", ["initialize", "ping", "logging/setLevel", "subscriptions/listen", "resources/read"])
def test_what_the_new_era_has_not_or_we_offer_not_is_not_found(method) -> None:
    told = fault(method, {"protocolVersion": "2025-11-25"}, newest=True)
    assert (told.code, told.http) == (rpc.METHOD_NOT_FOUND, 404)


@pytest.mark.parametrize(
    "method", ["server/discover", "logging/setLevel", "prompts/get", "completion/complete", "", "x"]
)
def test_what_the_old_era_has_not_is_not_found(method) -> None:
    assert fault(method).code == rpc.METHOD_NOT_FOUND


@pytest.mark.parametrize("newest", [False, True])
def test_a_list_is_one_page(newest) -> None:
    assert fault("tools/list", {"cursor": "x"}, newest=newest).code == rpc.INVALID_PARAMS
    assert "nextCursor" not in ask("tools/list", {"cursor": None}, newest=newest)


def test_an_unknown_tool_is_told_with_those_that_are_there() -> None:
    told = fault("tools/call", {"name": "nope"})
    assert (told.code, told.http, told.details) == (rpc.INVALID_PARAMS, 400, {"tools": ["echo"]})


@pytest.mark.parametrize("params", [{}, {"name": None}, {"name": 1}, {"name": ["echo"]}])
def test_a_call_needs_the_name_of_a_tool(params) -> None:
    assert fault("tools/call", params).code == rpc.INVALID_PARAMS


@pytest.mark.parametrize("arguments", ["[]", '"x"', "1", "true"])
def test_arguments_are_an_object(arguments) -> None:
    assert fault("tools/call", {"name": "echo", "arguments": RawJson(arguments)}).code == rpc.INVALID_PARAMS


@pytest.mark.parametrize(
    ("params", "got"),
    [({}, {}), ({"arguments": RawJson("null")}, None), ({"arguments": RawJson('{"a":1}')}, {"a": 1})],
)
def test_absent_arguments_are_none(params, got) -> None:
    assert call("arguments", **params)["structuredContent"] == {"got": got}


def test_a_result_is_the_body_as_text_and_as_structure_to_the_byte() -> None:
    body = {"ok": True, "result": RawJson('{"n": 1e400, "b": "\\u0041"}')}
    answered = server(Reply(200, body)).answer(Request(1, "tools/call", {"name": "echo"}), ASKER, attempt,
                                               is_newest_era=False)  # fmt: skip
    assert answered.members["structuredContent"] == RawJson(dump(body).decode())
    assert answered.members["content"] == [{"type": "text", "text": dump(body).decode()}]
    assert b'"structuredContent":{"ok":true,"result":{"n": 1e400, "b": "\\u0041"}}' in dump(answered.members)


STATUSES = sorted({200, 201, 402, 413, *(refusal(code).status for code in Code)} - {500})


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("revision", oracle.REVISIONS)
def test_what_an_agent_branches_on_is_a_result_and_the_rest_an_error_of_the_tool(status, revision) -> None:
    reply = Reply(status, {"ok": status < 300, "code": "c"})
    newest = revision == oracle.NEWEST
    result = ask("tools/call", {"name": "echo"}, newest=newest, made=reply)
    oracle.judge_result("tools/call", revision, result)
    assert result.get("isError", False) is (status >= 400 and status not in (403, 409))
    assert result["structuredContent"] == json.loads(result["content"][0]["text"]) == reply.body


def test_a_refusal_that_is_raised_is_one_that_is_answered() -> None:
    result = call(Refused(errors.not_found()))
    assert (result["isError"], result["structuredContent"]["code"]) == (True, "not_found")


@pytest.mark.parametrize("newest", [False, True])
def test_a_crash_tells_the_request_id_and_nothing_else(newest) -> None:
    told = fault("tools/call", {"name": "echo"}, newest=newest, made=ValueError("secret"))
    assert (told.code, told.message, told.details) == (rpc.INTERNAL_ERROR, "Internal error", {"request_id": "req-1"})


def test_a_fault_of_the_protocol_inside_a_tool_stays_one() -> None:
    told = fault("tools/call", {"name": "echo"}, made=Fault(-32021, "needs sampling", {"requiredCapabilities": {}}))
    assert (told.code, told.http) == (-32021, 400)


def test_a_tool_without_a_wire_model_may_answer_content_of_its_own() -> None:
    content = {"content": [{"type": "text", "text": "hello"}]}
    assert call(content) == content


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (errors.body_too_large(65_536), rpc.INVALID_REQUEST),
        (errors.origin_not_allowed(), rpc.INVALID_REQUEST),
        (errors.unsupported_media_type(), rpc.INVALID_REQUEST),
        (errors.internal("r"), rpc.INTERNAL_ERROR),
        (errors.rate_limited(60, limit=5), 429),
        (errors.unavailable(committed="no"), 503),
    ],
)
def test_what_the_edge_refuses_is_told_in_the_data(reply, code) -> None:
    told = rpc.fault_of(reply)
    assert (told.code, told.message, told.details) == (code, reply.body["error"], reply.body)
    assert not -32099 <= told.code <= -32000
