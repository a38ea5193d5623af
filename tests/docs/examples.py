"""The examples of the OpenAPI document: what a real server answered, one for each answer of each route.

`python -m tests.docs.examples` asks a server and writes them; a test asks again and compares (plain.py), and another
checks each against its schema. They come from the same table as the comparison of tools with REST.
"""

import json
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from jsonschema import Draft202012Validator

from app.wire.openapi import EXAMPLES, OPERATIONS, V1, Operation, answers_of
from app.wire.schema import output_schema
from tests.real.api import Answer, Api
from tests.real.mcpcases import CASES, Case, World, after, own, rest, without
from tests.real.server import RunningServer

ROOT = Path(__file__).resolve().parents[2]
PUBLIC = "http://fencepost.example.com"
_ROUTE_OF_TOOL = {
    "create_lease_namespace": "lease_namespace",
    "check_lease": "lease_status",
    "create_agent_handoff": "create_handoff",
    "advance_agent_handoff": "move_handoff",
}


class Asked(NamedTuple):
    """One call: which operation it was of, the body that was sent, what came back, and a word for it."""

    operation: str
    outcome: str
    body: Mapping[str, Any]
    answer: Answer


class Noting(Api):
    """A caller that remembers the body that it sent last."""

    sent: bytes | None = None

    def send(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        self.sent = body
        return super().send(method, path, body, headers)


def _operation_of(tool: str, arguments: Mapping[str, Any]) -> str:
    if tool == "read_agent_handoff":
        return "wait_for_handoff" if "wait_seconds" in arguments else "read_handoff"
    if tool.endswith("_lease"):
        return _ROUTE_OF_TOOL.get(tool) or f"lease_{tool.removesuffix('_lease')}"
    return _ROUTE_OF_TOOL.get(tool, tool)


def _verified(world: World) -> dict[str, Any]:
    names = world.key()
    return {**names, "fencing_token": world.api.lease("acquire", **names)["fencing_token"]}


def _rotated(world: World) -> dict[str, Any]:
    return without(world.claim(), "claim_token", "action_key")


def _of_a_claim(world: World) -> dict[str, Any]:
    return without(world.claim(), "claim_token")


def _expired(world: World) -> dict[str, Any]:
    return after(61, world, without(world.handoff(ttl_seconds=60), "receiver", wait_seconds=1))


_EXPIRED_WAIT = Case("read_agent_handoff", "expired", _expired, 410)
# What no tool does, or what the table of tools does not ask.
_MORE = [
    ("lease_verify", "current", f"{V1}/lease/verify", _verified),
    ("once_key_status", "held", "/once-key/status", _of_a_claim),
    (
        "once_key_status",
        "not found",
        "/once-key/status",
        lambda w: {**_of_a_claim(w), "namespace_token": own("nst_", 0)},
    ),
    ("once_key_rotate_token", "rotated", "/once-key/rotate-token", _rotated),
    (
        "once_key_rotate_token",
        "not found",
        "/once-key/rotate-token",
        lambda w: {**_rotated(w), "namespace_token": own("nst_", 0)},
    ),
]


def _calls(world: World, api: Noting) -> Iterator[Asked]:
    for case in (*CASES, _EXPIRED_WAIT):
        yield _call(world, api, case)
    for operation, outcome, path, make in _MORE:
        members = make(world)
        yield Asked(operation, outcome, members, api.post(path, **members))


def _call(world: World, api: Noting, case: Case) -> Asked:
    arguments = case.make(world)
    answer = rest(api, case.tool, arguments)
    return Asked(_operation_of(case.tool, arguments), case.outcome, json.loads(api.sent or b"{}"), answer)


def _own_answers(world: World, api: Noting) -> dict[str, Any]:
    """By operation: a body that is answered well, and one example for each kind of answer."""
    found: dict[str, Any] = {operation.name: {"answers": {}} for operation in OPERATIONS if _is_first(operation)}
    kinds = {operation.name: operation for operation in OPERATIONS}
    seen: set[tuple[str, int, int]] = set()
    for asked in _calls(world, api):
        place = found[asked.operation]
        if asked.answer.status < 300 and asked.body:
            place.setdefault("request", asked.body)
        for number, kind in enumerate(kinds[asked.operation].answers.get(asked.answer.status, ())):
            mark = (asked.operation, asked.answer.status, number)
            if mark not in seen and Draft202012Validator(output_schema(kind, closed=True)).is_valid(asked.answer.body):
                seen.add(mark)
                answers = place["answers"].setdefault(str(asked.answer.status), {})
                answers[asked.outcome.replace(" ", "_")] = asked.answer.body
                break
    return found


def _is_first(operation: Operation) -> bool:
    return answers_of(operation.name) == operation.name


def _shared_refusals(world: World, api: Noting, strict: Api) -> dict[str, Any]:
    """One example for each refusal that many routes have in common; `strict` asks a server with tight limits."""
    acquire = f"{V1}/lease/acquire"
    path = f"{V1}/handoff/{world.handoff()['handoff_id']}"
    full = [strict.post(f"{V1}/handoff", payload=number).body for number in range(2)][1]
    return {
        "InvalidRequest": api.post(acquire, **{**world.key(), "fingerprnt": "f"}).body,
        "TooSlow": _too_slow(world.server.port, acquire),
        "TooLarge": api.text(acquire, json.dumps({"key": "x" * 70_000})).body,
        "WrongMedia": api.send("POST", acquire, b"key=a", {"Content-Type": "application/x-www-form-urlencoded"}).body,
        "RateLimited": [strict.post(acquire, **world.key()).body for _ in range(6)][5],
        "Unavailable": full,
        "Unauthorized": api.get(path).body,
        "NotFound": api.get(path, {"Authorization": f"Bearer {own('howner_', 0)}"}).body,
    }


def _too_slow(port: int, path: str) -> Any:
    head = f"POST {path} HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\nContent-Length: 20\r\n\r\n"
    with socket.create_connection(("127.0.0.1", port), timeout=30) as raw:
        raw.sendall(head.encode())
        received = b""
        while not received.endswith(b"}") and (piece := raw.recv(65_536)):
            received += piece
    return json.loads(received.partition(b"\r\n\r\n")[2])


def record() -> dict[str, Any]:
    """Ask everything, of servers of its own."""
    usual = {"FENCEPOST_LIMITS": "off", "FENCEPOST_PUBLIC_URL": PUBLIC, "FENCEPOST_BODY_DEADLINE_SECONDS": "1"}
    tight = {
        "FENCEPOST_LIMITS": "on",
        "FENCEPOST_LIMIT_REQUESTS_PER_DAY": "5",
        "FENCEPOST_LIMIT_LIVE_HANDOFFS": "1",
        "FENCEPOST_ONCE_STRONG_NAMES": "on",
    }
    with (
        RunningServer(environment=usual) as server,
        RunningServer(environment=tight) as other,
        Noting(server.port) as api,
        Api(other.port) as strict,
    ):
        world = World(server, api)
        world.namespace = api.lease("namespace")["namespace"]
        operations = _own_answers(world, api)
        weak = strict.post("/once-key", namespace="app", action_key="act").body
        operations["once_key_claim"]["answers"]["400"] = {"weak_namespace": weak}
        responses = _shared_refusals(world, api, strict)
    return {"operations": operations | _of_credit(), "responses": responses}


def _of_credit() -> dict[str, Any]:
    """The routes that are there only where a claim has a price."""
    metered = {"FENCEPOST_LIMITS": "off", "FENCEPOST_PRICE_ONCE_CLAIM": "0.010"}
    with RunningServer(environment=metered) as server, Api(server.port) as api:
        trial = api.post("/credits/trial").body
        shown = {"credit_token": trial["credit_token"]}
        api.post("/once-key", namespace="app", action_key="act", **shown)
        held = api.post("/credits/balance", **shown).body
        asked = api.get("/credits/balance", {"X-Credit-Token": trial["credit_token"]}).body
    return {
        "credits_trial": {"answers": {"200": {"granted": trial}}, "request": {}},
        "credits_balance": {"answers": {"200": {"held": held}}, "request": shown},
        "credits_balance_by_header": {"answers": {"200": {"held": asked}}},
    }


def text(examples: Mapping[str, Any]) -> str:
    """As the file has them."""
    return json.dumps(examples, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    (ROOT / "templates" / EXAMPLES).write_text(text(record()), encoding="utf-8")
