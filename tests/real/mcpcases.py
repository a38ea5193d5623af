"""Every tool in every outcome, and the REST call that means the same.

A case makes an object of its own ready and gives the arguments for it. It runs once for each surface; what comes back
and what is left in the database must then be the same but for tokens, numbers and instants.
"""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.real.api import V1, Answer, Api
from tests.real.server import RunningServer

Arguments = dict[str, Any]
ALPHABET = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOP_"


def own(kind: str, number: int) -> str:
    """A well-formed token of a caller's own."""
    return kind + f"{number:04}" + ALPHABET[4:]


@dataclass
class World:
    """The server, a caller of its REST routes, fresh names, and the clock, which only goes forward."""

    server: RunningServer
    api: Api
    namespace: str = ""
    offset: float = 0.0
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def number(self) -> int:
        """One that nobody had."""
        return next(self.numbers)

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.offset += seconds
        self.server.set_clock(self.offset)

    def key(self) -> Arguments:
        """A fresh lease key."""
        return {"key": f"key-{self.number()}", "namespace": self.namespace}

    def held(self, **more: Any) -> Arguments:
        """A key that is held, and its owner token."""
        of_key = self.key()
        return {**of_key, "owner_token": self.api.lease("acquire", **of_key, **more)["owner_token"]}

    def completed(self, **more: Any) -> Arguments:
        """A key whose work is done."""
        held = self.held(**more)
        self.api.lease("complete", **held, result={"n": 1})
        return held

    def handoff(self, **more: Any) -> Arguments:
        """A handoff: id and the owner's token, the receiver's beside it."""
        made = self.api.post(f"{V1}/handoff", **{"payload": {"task": "sum"}, **more})
        return {"handoff_id": made["handoff_id"], "token": made["owner_token"], "receiver": made["receiver_token"]}

    def claim(self, **more: Any) -> Arguments:
        """A claimed action, with the tokens of namespace and claimant."""
        names: Arguments = {"namespace": f"app-{self.number()}", "action_key": "act"}
        made = self.api.post("/once-key", **names, **more)
        return {**names, "namespace_token": made["namespace_token"], "claim_token": made["claim_token"]}

    def done(self, **more: Any) -> Arguments:
        """A completed action."""
        claimed = self.claim()
        self.api.post("/once-key/complete", **claimed, **more)
        return claimed


def rest(api: Api, tool: str, arguments: Arguments) -> Answer:
    """The REST call that means the same as this tool."""
    asked = dict(arguments)
    match tool:
        case "create_lease_namespace":
            return api.lease("namespace", **asked)
        case "check_lease":
            return api.lease("status", **asked)
        case "create_agent_handoff":
            return api.post(f"{V1}/handoff", **asked)
        case "read_agent_handoff":
            headers = {"Authorization": f"Bearer {asked['token']}"}
            if "since_version" in asked:
                headers["If-None-Match"] = f'"{asked["since_version"]}"'
            path = f"{V1}/handoff/{asked['handoff_id']}"
            return api.get(f"{path}/wait/{asked['wait_seconds']}" if "wait_seconds" in asked else path, headers)
        case "advance_agent_handoff":
            path = f"{V1}/handoff/{asked.pop('handoff_id')}/{asked.pop('to')}"
            return api.post(path, headers={"Authorization": f"Bearer {asked.pop('token')}"}, **asked)
    if tool.endswith("_lease"):
        return api.lease(tool.removesuffix("_lease"), **asked)
    route = tool.removeprefix("once_key_")
    return api.post("/once-key" if route == "claim" else f"/once-key/{route}", **asked)


@dataclass(frozen=True)
class Case:
    """`make` prepares an object and gives the arguments; `http` is what REST answers with."""

    tool: str
    outcome: str
    make: Callable[[World], Arguments]
    http: int

    def __str__(self) -> str:
        return f"{self.tool}-{self.outcome}"


def without(arguments: Arguments, *names: str, **more: Any) -> Arguments:
    """The arguments but for these, and with those."""
    return {**{name: value for name, value in arguments.items() if name not in names}, **more}


def after(seconds: float, world: World, arguments: Arguments) -> Arguments:
    """The same, some time later."""
    world.advance(seconds)
    return arguments


def repeated(world: World, tool: str, arguments: Arguments) -> Arguments:
    """Arguments that were sent once already."""
    assert rest(world.api, tool, arguments).status < 300
    return arguments


def taken_over(world: World) -> Arguments:
    """A claim whose lease lapsed and that another took."""
    claimed = after(11, world, world.claim(lease_ttl=10))
    assert world.api.post("/once-key", **without(claimed, "claim_token", lease_ttl=10))["recovered"] is True
    return claimed


def two_owned(world: World) -> Arguments:
    """An owner token that was spent on its key, which another holds now."""
    asked = {**world.key(), "owner_token": own("own_", world.number())}
    world.api.lease("acquire", **asked)
    world.api.lease("release", **asked)
    return asked


def moved(world: World, **more: Any) -> Arguments:
    """A handoff after one move by nonce `n1`, as arguments of that move."""
    made = world.handoff()
    asked = without(made, "receiver", to="accepted", **{"from": "offered"}, nonce="n1", **more)
    return repeated(world, "advance_agent_handoff", asked)


def offer(world: World, **more: Any) -> Arguments:
    """A creation that may be sent again."""
    number = world.number()
    tokens = {"owner_token": own("howner_", number), "receiver_token": own("hrecv_", number)}
    return {"payload": [1, 2], "nonce": "n", **tokens, **more}


TO = {"from": "offered", "to": "accepted"}
LONG = "x" * 40_000
DAY = 86_400
CASES = [
    Case("create_lease_namespace", "minted", lambda w: {}, 201),
    Case("create_lease_namespace", "unknown member", lambda w: {"key": "a"}, 400),
    Case("acquire_lease", "granted", lambda w: w.key(), 201),
    Case(
        "acquire_lease",
        "granted in full",
        lambda w: {**w.key(), "ttl_seconds": 5, "fingerprint": "f", "holder": "me"},
        201,
    ),
    Case(
        "acquire_lease",
        "repeated",
        lambda w: repeated(w, "acquire_lease", {**w.key(), "owner_token": own("own_", w.number())}),
        201,
    ),
    Case("acquire_lease", "held", lambda w: without(w.held(), "owner_token"), 409),
    Case("acquire_lease", "held by one with a label", lambda w: without(w.held(holder="me"), "owner_token"), 409),
    Case("acquire_lease", "held after a wait", lambda w: without(w.held(), "owner_token", wait_seconds=1), 409),
    Case("acquire_lease", "completed", lambda w: without(w.completed(), "owner_token"), 200),
    Case("acquire_lease", "conflict", lambda w: without(w.held(), "owner_token", fingerprint="other"), 409),
    Case("acquire_lease", "lost", two_owned, 409),
    Case("acquire_lease", "lapsed and taken", lambda w: after(61, w, without(w.held(), "owner_token")), 201),
    Case("acquire_lease", "bad ttl", lambda w: {**w.key(), "ttl_seconds": 0}, 400),
    Case("acquire_lease", "misspelt", lambda w: {**w.key(), "fingerprnt": "f"}, 400),
    Case("acquire_lease", "no key", lambda w: {}, 400),
    Case("acquire_lease", "guessable key", lambda w: {"key": "short"}, 400),
    Case("acquire_lease", "malformed owner token", lambda w: {**w.key(), "owner_token": "own_x"}, 400),
    Case("acquire_lease", "too long a wait", lambda w: {**w.key(), "wait_seconds": 26}, 400),
    Case("renew_lease", "held", lambda w: {**w.held(), "ttl_seconds": 100}, 200),
    Case("renew_lease", "lost", lambda w: {**w.held(), "owner_token": own("own_", 0)}, 409),
    Case("renew_lease", "lapsed", lambda w: after(61, w, w.held()), 409),
    Case("renew_lease", "unknown key", lambda w: {**w.key(), "owner_token": "anything"}, 409),
    Case("renew_lease", "no token", lambda w: w.key(), 400),
    Case("release_lease", "released", lambda w: w.held(), 200),
    Case("release_lease", "repeated", lambda w: repeated(w, "release_lease", w.held()), 200),
    Case("release_lease", "lost", lambda w: {**w.held(), "owner_token": own("own_", 0)}, 409),
    Case("release_lease", "null key", lambda w: {"key": None, "owner_token": "x"}, 400),
    Case("complete_lease", "completed", lambda w: {**w.held(), "result": {"b": 1, "password": "x"}}, 200),
    Case("complete_lease", "completed with null", lambda w: {**w.held(), "result": None}, 200),
    Case("complete_lease", "repeated", lambda w: {**w.completed(), "result": {"n": 1}}, 200),
    Case("complete_lease", "another result", lambda w: {**w.completed(), "result": 2}, 409),
    Case("complete_lease", "lost", lambda w: {**w.held(), "owner_token": own("own_", 0), "result": 1}, 409),
    Case("complete_lease", "too large", lambda w: {**w.held(), "result": LONG}, 413),
    Case("complete_lease", "no result", lambda w: w.held(), 400),
    Case("check_lease", "free", lambda w: w.key(), 200),
    Case("check_lease", "held", lambda w: without(w.held(holder="me"), "owner_token"), 200),
    Case("check_lease", "completed", lambda w: without(w.completed(), "owner_token"), 200),
    Case("check_lease", "bad key", lambda w: {"key": "ä" * 40}, 400),
    Case("create_agent_handoff", "created", lambda w: {"payload": {"a": 1}}, 201),
    Case(
        "create_agent_handoff",
        "created in full",
        lambda w: offer(
            w,
            note="n",
            states=["open", "shut"],
            final=["shut"],
            transitions={"open": ["shut"]},
            ttl_seconds=60,
            title="t",
            audience="person",
            permissions={"shut": "receiver"},
            notify_url="https://example.com/hook",
        ),
        201,
    ),
    Case("create_agent_handoff", "repeated", lambda w: repeated(w, "create_agent_handoff", offer(w)), 201),
    Case(
        "create_agent_handoff",
        "nonce conflict",
        lambda w: {**repeated(w, "create_agent_handoff", offer(w)), "payload": 7},
        409,
    ),
    Case("create_agent_handoff", "payload too large", lambda w: {"payload": "x" * 17_000}, 413),
    Case("create_agent_handoff", "body too large", lambda w: {"payload": "x" * 30_000}, 413),
    Case("create_agent_handoff", "bad url", lambda w: {"payload": 1, "notify_url": "http://127.0.0.1/"}, 400),
    Case("create_agent_handoff", "no machine", lambda w: {"payload": 1, "states": ["a", "a"]}, 400),
    Case("create_agent_handoff", "null payload", lambda w: {"payload": None}, 400),
    Case("create_agent_handoff", "nonce alone", lambda w: {"payload": 1, "nonce": "n"}, 400),
    Case("read_agent_handoff", "seen", lambda w: without(w.handoff(title="t", note="n"), "receiver"), 200),
    Case(
        "read_agent_handoff",
        "seen by the receiver",
        lambda w: without(made := w.handoff(permissions={"done": "owner"}), "receiver", token=made["receiver"]),
        200,
    ),
    Case("read_agent_handoff", "timeout", lambda w: without(w.handoff(), "receiver", wait_seconds=1), 200),
    Case(
        "read_agent_handoff",
        "nothing new",
        lambda w: without(w.handoff(), "receiver", wait_seconds=0, since_version=1),
        200,
    ),
    Case(
        "read_agent_handoff",
        "changed",
        lambda w: without(moved(w), "to", "from", "nonce", wait_seconds=25, since_version=1),
        200,
    ),
    Case(
        "read_agent_handoff",
        "ended",
        lambda w: without(
            repeated(w, "advance_agent_handoff", without(w.handoff(), "receiver", **{"from": "offered"}, to="done")),
            "to",
            "from",
            wait_seconds=25,
        ),
        200,
    ),
    Case("read_agent_handoff", "expired", lambda w: after(61, w, without(w.handoff(ttl_seconds=60), "receiver")), 410),
    Case("read_agent_handoff", "unknown", lambda w: {"handoff_id": "0" * 32, "token": own("howner_", 0)}, 404),
    Case("read_agent_handoff", "malformed", lambda w: {"handoff_id": "nonsense", "token": own("howner_", 0)}, 404),
    Case("read_agent_handoff", "wrong token", lambda w: without(w.handoff(), "receiver", token=own("howner_", 0)), 404),
    Case(
        "advance_agent_handoff", "moved", lambda w: without(w.handoff(), "receiver", **TO, note="hello", nonce="n"), 200
    ),
    Case("advance_agent_handoff", "repeated", moved, 200),
    Case("advance_agent_handoff", "nonce conflict", lambda w: {**moved(w), "note": "other"}, 409),
    Case(
        "advance_agent_handoff",
        "state mismatch",
        lambda w: without(w.handoff(), "receiver", **{"from": "accepted"}, to="done"),
        409,
    ),
    Case(
        "advance_agent_handoff",
        "not allowed",
        lambda w: without(w.handoff(), "receiver", **{"from": "offered"}, to="offered"),
        409,
    ),
    Case(
        "advance_agent_handoff",
        "unknown state",
        lambda w: without(w.handoff(), "receiver", **{"from": "offered"}, to="nowhere"),
        409,
    ),
    Case(
        "advance_agent_handoff",
        "not permitted",
        lambda w: without(w.handoff(permissions={"accepted": "receiver"}), "receiver", **TO),
        403,
    ),
    Case(
        "advance_agent_handoff",
        "expired",
        lambda w: after(61, w, without(w.handoff(ttl_seconds=60), "receiver", **TO)),
        410,
    ),
    Case("advance_agent_handoff", "unknown", lambda w: {"handoff_id": "0" * 32, "token": own("howner_", 0), **TO}, 404),
    Case(
        "advance_agent_handoff",
        "bad from",
        lambda w: without(w.handoff(), "receiver", **{"from": "No"}, to="done"),
        400,
    ),
    Case("advance_agent_handoff", "bad nonce", lambda w: without(w.handoff(), "receiver", **TO, nonce="n n"), 400),
    Case("once_key_claim", "claimed", lambda w: {"namespace": f"app-{w.number()}", "action_key": "act"}, 200),
    Case(
        "once_key_claim",
        "claimed in full",
        lambda w: {
            "namespace": f"app-{w.number()}",
            "action_key": "act",
            "namespace_token": own("nst_", w.number()),
            "claim_token": own("clm_", w.number()),
            "payload_sha256": "ab",
            "ttl": 100,
            "lease_ttl": 10,
            "credit_token": "x",
        },
        200,
    ),
    Case(
        "once_key_claim",
        "repeated",
        lambda w: repeated(
            w,
            "once_key_claim",
            {
                "namespace": f"app-{w.number()}",
                "action_key": "act",
                "namespace_token": own("nst_", 1),
                "claim_token": own("clm_", w.number()),
            },
        ),
        200,
    ),
    Case("once_key_claim", "recovered", lambda w: after(11, w, without(w.claim(lease_ttl=10), "claim_token")), 200),
    Case("once_key_claim", "in progress", lambda w: without(w.claim(lease_ttl=100), "claim_token"), 200),
    Case("once_key_claim", "held", lambda w: without(w.claim(), "claim_token", wait_seconds=1), 200),
    Case("once_key_claim", "duplicate", lambda w: without(w.done(result={"n": 1}), "claim_token"), 200),
    Case("once_key_claim", "duplicate of nothing", lambda w: without(w.done(), "claim_token"), 200),
    Case(
        "once_key_claim",
        "conflict",
        lambda w: without(w.claim(payload_sha256="ab"), "claim_token", payload_sha256="cd"),
        200,
    ),
    Case("once_key_claim", "forbidden", lambda w: without(w.claim(), "claim_token", "namespace_token"), 200),
    Case("once_key_claim", "bad namespace", lambda w: {"namespace": "", "action_key": "act"}, 400),
    Case("once_key_complete", "completed", lambda w: {**w.claim(), "result": [1, 2]}, 200),
    Case("once_key_complete", "already completed", lambda w: {**w.done(result=1), "result": 2}, 200),
    Case("once_key_complete", "claim lost", taken_over, 409),
    Case("once_key_complete", "too large", lambda w: {**w.claim(), "result": "x" * 17_000}, 413),
    Case("once_key_complete", "no claim", lambda w: {**w.claim(), "action_key": "other"}, 404),
    Case(
        "once_key_complete",
        "not found",
        lambda w: without(w.claim(), "claim_token", namespace_token=own("nst_", 0)),
        404,
    ),
    Case("once_key_complete", "bad ttl", lambda w: {**w.claim(), "ttl": "1"}, 400),
    Case("once_key_release", "released", lambda w: w.claim(), 200),
    Case("once_key_release", "already completed", lambda w: w.done(), 409),
    Case("once_key_release", "claim lost", taken_over, 409),
    Case("once_key_release", "no claim", lambda w: {**w.claim(), "action_key": "other"}, 404),
    Case("once_key_release", "not found", lambda w: {"namespace": f"app-{w.number()}", "action_key": "act"}, 404),
    Case("once_key_release", "unknown member", lambda w: {**w.claim(), "result": 1}, 400),
    Case("once_key_renew", "claimed", lambda w: {**w.claim(lease_ttl=10), "lease_ttl": 100}, 200),
    Case("once_key_renew", "not leased", lambda w: {**w.claim(), "lease_ttl": 100}, 409),
    Case("once_key_renew", "already completed", lambda w: {**w.done(), "lease_ttl": 100}, 409),
    Case("once_key_renew", "claim lost", lambda w: {**taken_over(w), "lease_ttl": 100}, 409),
    Case("once_key_renew", "no claim", lambda w: {**w.claim(), "action_key": "other", "lease_ttl": 100}, 404),
    Case(
        "once_key_renew", "not found", lambda w: {**w.claim(), "namespace_token": own("nst_", 0), "lease_ttl": 9}, 404
    ),
    Case("once_key_renew", "no lease", lambda w: w.claim(), 400),
]
