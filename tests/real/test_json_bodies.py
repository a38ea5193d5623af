"""Every document of the corpus in every body: the verdict of the table, over REST and MCP, and never a 5xx."""

import json

import pytest

from app.wire.openapi import OPERATIONS, Operation
from tests.mcp.speak import headers_of
from tests.real.api import V1, Answer, Api
from tests.real.handoffs import Made, bearer, make
from tests.real.server import ENGINES, MOSTLY_SQLITE, RunningServer
from tests.wire.corpus import DOCUMENTS, TO_STORE, Verdict

JSON = {"Content-Type": "application/json"}
BODIES = [operation for operation in OPERATIONS if operation.members is not None]
TOOLS = {
    "lease_namespace": "create_lease_namespace",
    "lease_acquire": "acquire_lease",
    "lease_renew": "renew_lease",
    "lease_release": "release_lease",
    "lease_complete": "complete_lease",
    "create_handoff": "create_agent_handoff",
    "once_key_claim": "once_key_claim",
    "once_key_complete": "once_key_complete",
    "once_key_release": "once_key_release",
    "once_key_renew": "once_key_renew",
}
"""The tool of each route whose arguments are the body."""
NO_OBJECT = -32602
SHARES = 7


@pytest.fixture(scope="module", params=MOSTLY_SQLITE)
def server(request):
    with RunningServer(engine=request.param, environment={"FENCEPOST_LIMITS": "off"}) as running:
        yield running
        assert "Traceback" not in running.stderr
        assert '"level":"error"' not in running.stderr


@pytest.fixture
def api(server):
    with Api(server.port) as caller:
        yield caller


@pytest.fixture
def made(api) -> Made:
    return make(api)


def share(operation: Operation, *, whole: bool = False) -> list[tuple[bytes, Verdict]]:
    """The documents for a route: all of them on a long run and for one of the routes, else a seventh."""
    if whole or operation.name == "lease_acquire":
        return list(DOCUMENTS)
    return list(DOCUMENTS[BODIES.index(operation) % SHARES :: SHARES])


def address(operation: Operation, made: Made) -> str:
    return operation.path.replace("{handoff_id}", made.name).replace("{state}", "accepted")


def test_the_corpus_is_as_long_as_promised() -> None:
    assert len(DOCUMENTS) >= 500
    assert len({verdict for _, verdict in DOCUMENTS}) == 4
    assert len(BODIES) >= 16


def check_route(api: Api, made: Made, operation: Operation, documents: list[tuple[bytes, Verdict]]) -> None:
    path, headers = address(operation, made), JSON | bearer(made.receiver)
    empty, unknown = (api.send("POST", path, body, headers) for body in (b"{}", b'{"never":1}'))
    assert unknown["code"] == "invalid_request"
    apart = []
    for body, verdict in documents:
        answer = api.send("POST", path, body, headers if body else bearer(made.receiver))
        if len(body) > operation.cap:
            is_right = (answer.status, answer["code"]) == (413, "body_too_large")
        elif verdict == "empty":
            is_right = answer.status == empty.status and (answer.raw == empty.raw or empty.status < 300)
        elif verdict == "object":
            is_right = answer.raw == unknown.raw
        elif verdict == "no_object":
            is_right = (answer.status, answer["code"]) == (400, "invalid_request") and answer.raw != unknown.raw
        else:
            is_right = (answer.status, answer["code"]) == (400, "invalid_json")
            is_right = is_right and 0 <= answer["position"] <= len(body)
        if not is_right:
            apart.append((body[:80], verdict, answer.status, answer.raw[:200]))
    assert apart == []


@pytest.mark.parametrize("operation", BODIES, ids=lambda operation: operation.name)
def test_a_document_gets_its_verdict_from_every_body(api, made, operation) -> None:
    check_route(api, made, operation, share(operation))


@pytest.mark.long
@pytest.mark.parametrize("operation", BODIES, ids=lambda operation: operation.name)
def test_every_document_gets_its_verdict_from_every_body(api, made, operation) -> None:
    check_route(api, made, operation, share(operation, whole=True))


def by_tool(api: Api, tool: str, arguments: bytes) -> Answer:
    body = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"%b","arguments":%b}}'
    headers = JSON | headers_of("2025-11-25", "tools/call")
    return api.send("POST", "/mcp", body % (tool.encode(), arguments), headers)


def told(answer: Answer) -> tuple[object, object]:
    """The code of a refusal, however deep it is wrapped, and the whole of it where it is that of the tool."""
    error = answer.body.get("error")
    if error is None:
        structured = answer["result"]["structuredContent"]
        return structured.get("code"), structured
    return error.get("data", {}).get("code", error["code"]), None


def check_tool(api: Api, operation: Operation, documents: list[tuple[bytes, Verdict]]) -> None:
    apart = []
    for body, verdict in documents:
        if verdict == "empty" or not body.strip():  # nothing at all can stand for arguments
            continue
        by_rest = api.send("POST", operation.path, body, JSON)
        answer = by_tool(api, TOOLS[operation.name], body)
        code, structured = told(answer)
        if verdict == "no_object" or (code == NO_OBJECT and body.lstrip().startswith(b"[")):
            is_right = code == NO_OBJECT
        elif by_rest.status == 413:  # too long for the route, and already too deep for the envelope
            is_right = code in ("body_too_large", "invalid_json")
        else:
            is_right = code == by_rest["code"] and structured in (None, by_rest.body)
        if not is_right or answer.status >= 500:
            apart.append((body[:80], verdict, by_rest.raw[:200], answer.raw[:200]))
    assert apart == []


WITH_TOOL = [operation for operation in BODIES if operation.name in TOOLS]


@pytest.mark.parametrize("operation", WITH_TOOL, ids=lambda operation: operation.name)
def test_a_tool_says_of_a_document_what_its_route_says(api, operation) -> None:
    check_tool(api, operation, share(operation))


@pytest.mark.long
@pytest.mark.parametrize("operation", WITH_TOOL, ids=lambda operation: operation.name)
def test_every_tool_says_of_every_document_what_its_route_says(api, operation) -> None:
    check_tool(api, operation, share(operation, whole=True))


@pytest.fixture(scope="module", params=ENGINES)
def store(request):
    with (
        RunningServer(engine=request.param, environment={"FENCEPOST_LIMITS": "off"}) as running,
        Api(running.port) as a,
    ):
        yield a
        assert "Traceback" not in running.stderr


def test_every_good_value_is_kept_as_spelled_by_both_engines(store) -> None:
    apart = []
    ns = store.lease("namespace")["namespace"]
    first = store.post("/once-key", namespace="kept", action_key="first")
    for number, text in enumerate(TO_STORE):
        payload = store.text(f"{V1}/handoff", f'{{"payload":{text}}}')
        read = store.get(f"{V1}/handoff/{payload['handoff_id']}", bearer(payload["receiver_token"]))
        owner = store.lease("acquire", key=f"k{number}", namespace=ns)["owner_token"]
        named = json.dumps({"key": f"k{number}", "namespace": ns, "owner_token": owner})
        store.text(f"{V1}/lease/complete", f'{named[:-1]},"result":{text}}}')
        done = store.lease("acquire", key=f"k{number}", namespace=ns)
        once = {"namespace": "kept", "action_key": f"a{number}", "namespace_token": first["namespace_token"]}
        claim = store.post("/once-key", **once)["claim_token"]
        store.text("/once-key/complete", f'{json.dumps({**once, "claim_token": claim})[:-1]},"result":{text}}}')
        again = store.post("/once-key", **once)
        for what, answer, name in (("payload", read, "payload"), ("lease", done, "result"), ("once", again, "result")):
            if f'"{name}":{text}'.encode() not in answer.raw:
                apart.append((what, text[:60], answer.raw[:300]))
    assert apart == []
