"""The same script on both engines: status, headers and bodies are equal to the byte.

What differs between two runs on one engine is named alike before (plain.py). Everything else is compared as it came.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tests.real.api import V1, Answer, Api
from tests.real.handoffs import bearer, own_tokens
from tests.real.plain import Plain
from tests.real.server import ENGINES, RunningServer

pytestmark = pytest.mark.postgres

_MOVING_HEADERS = ("date", "x-request-id", "retry-after", "ratelimit-reset", "content-length")


class Scribe(Api):
    """A caller that writes down what it is told."""

    def __init__(self, server: RunningServer) -> None:
        super().__init__(server.port)
        self.server = server
        self.told: list[tuple[str, int, dict[str, str], str]] = []
        self._plain = Plain().of

    def send(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        answer = super().send(method, path, body, headers)
        kept = {name: self._plain(value) for name, value in answer.headers.items() if name not in _MOVING_HEADERS}
        kept |= {name: "moves" for name in _MOVING_HEADERS if name in answer.headers}
        self.told.append((f"{method} {self._plain(path)}", answer.status, kept, self._plain(answer.raw.decode())))
        return answer


TTLS: list[Any] = [0, 1, 86_400, 86_401, 1.5, "60", True, None, 10**30]
TEXTS: list[Any] = ["", " ", "\x00", "a\x00b", "é", "𝄞", "x" * 120, "x" * 121, "\u202e", 7, None, ["a"], {}]
RESULTS = [
    "null",
    "1e400",
    '{"b":1,"a":[1.0,1e2],"b2":"\\u0000"}',
    '{"token":"t","deep":{"password":1}}',
    '"\\ud834\\udd1e"',
]
BROKEN = [
    "",
    "null",
    "[]",
    "{",
    '{"key":1,"key":2}',
    '{"a":NaN}',
    '"\\ud800"',
    "\ufeff{}",
    '{"keyy":"a"}',
    "[" * 70 + "]" * 70,
]


def leases(api: Scribe) -> None:
    ns = api.lease("namespace")["namespace"]
    for ttl in TTLS:
        api.lease("acquire", key="ttl", namespace=ns, ttl_seconds=ttl)
    for number, text in enumerate(TEXTS):
        api.lease("acquire", key=f"holder-{number}", namespace=ns, holder=text)
        api.lease("acquire", key=f"print-{number}", namespace=ns, fingerprint=text)
        api.lease("acquire", key=text, namespace=ns)
        api.lease("status", key=f"holder-{number}", namespace=ns)
    for body in BROKEN:
        api.text(f"{V1}/lease/acquire", body)
    for number, result in enumerate(RESULTS):
        owner = api.lease("acquire", key=f"done-{number}", namespace=ns)["owner_token"]
        named = json.dumps({"key": f"done-{number}", "namespace": ns, "owner_token": owner})
        for _ in range(2):
            api.text(f"{V1}/lease/complete", f'{named[:-1]},"result":{result}}}')
        api.lease("acquire", key=f"done-{number}", namespace=ns)
        api.lease("acquire", key=f"done-{number}", namespace=ns, fingerprint="another")
    held = api.lease("acquire", key="k", namespace=ns, ttl_seconds=30, holder="me", fingerprint="f")
    owner, fence = held["owner_token"], held["fencing_token"]
    for route, members in (
        ("acquire", {}), ("acquire", {"fingerprint": "f"}), ("renew", {"owner_token": owner, "ttl_seconds": 90}),
        ("verify", {"fencing_token": fence}), ("verify", {"fencing_token": 0}), ("verify", {"fencing_token": 2**53}),
        ("renew", {"owner_token": "own_wrong"}),
        ("release", {"owner_token": owner}), ("release", {"owner_token": owner}),
        ("renew", {"owner_token": owner}), ("status", {}), ("verify", {"fencing_token": fence}),
    ):  # fmt: skip
        api.lease(route, key="k", namespace=ns, **members)
    mine = "own_" + "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG"
    for _ in range(2):
        api.lease("acquire", key="brought", namespace=ns, owner_token=mine, ttl_seconds=5)
    walk(api, 6)
    for route in ("status", "acquire", "renew", "release"):
        api.lease(route, key="brought", namespace=ns, **({} if route == "status" else {"owner_token": mine}))
    walk(api, 86_401)
    for route in ("status", "acquire", "status"):
        api.lease(route, key="done-0", namespace=ns)
    api.lease("acquire", key="k", wait_seconds=26, namespace=ns)


def handoffs(api: Scribe) -> None:
    path = f"{V1}/handoff"
    for body in BROKEN:
        api.text(path, body)
    for text in TEXTS:
        api.post(path, payload={"a": 1}, title=text)
        api.post(path, payload=1, note=text)
    for result in RESULTS:
        made = api.text(path, f'{{"payload":{result}}}')
        if made.status == 201:
            api.get(f"{path}/{made['handoff_id']}", bearer(made["receiver_token"]))
    for payload in (1, 1, 2):
        api.post(path, payload=payload, **own_tokens())  # type: ignore[arg-type]
    made = api.post(path, payload={"n": 1}, ttl_seconds=3600)
    here, owner, receiver = f"{path}/{made['handoff_id']}", bearer(made["owner_token"]), bearer(made["receiver_token"])
    for token in (owner, receiver, bearer("howner_wrong"), {}, {"Authorization": "Basic x"}):
        api.get(here, token)
        api.get(f"{here}/wait/0", token)
        api.post(f"{here}/accepted", headers=token, **{"from": "offered", "nonce": "one"})
        api.post(f"{here}/working", headers=token, **{"from": "offered"})
        api.post(f"{here}/nonsense", headers=token, **{"from": "accepted"})
    api.post(f"{here}/working", headers=receiver, **{"from": "accepted", "note": "a\u0000b"})
    api.post(f"{here}/done", headers=receiver, **{"from": "working", "nonce": "end", "note": "x" * 500})
    for token in (owner, receiver):
        api.post(f"{here}/done", headers=token, **{"from": "working", "nonce": "end"})
        api.get(here, token)
    api.get(f"{here}/wait/0", owner | {"If-None-Match": '"2"'})
    api.get(f"{path}/{'0' * 32}", owner)
    walk(api, 3601)
    api.get(here, owner)
    api.post(f"{here}/done", headers=receiver, **{"from": "working", "nonce": "end"})


def once(api: Scribe) -> None:
    def call(route: str = "", **members: Any) -> Answer:
        named = {"namespace": "billing", "action_key": "charge", **members}
        return api.post(f"/once-key{'/' if route else ''}{route}", **named)

    for body in BROKEN:
        api.text("/once-key", body)
    first = call(lease_ttl=60, payload_sha256="ab" * 32)
    token, claim = first["namespace_token"], first["claim_token"]
    for shown in (token, "nst_wrong", None):
        call(namespace_token=shown)
        call(namespace_token=shown, payload_sha256="cd" * 32)
        call("status", namespace_token=shown)
        call("renew", namespace_token=shown, claim_token=claim, lease_ttl=90)
        call("complete", namespace_token=shown, claim_token=claim, result={"b": 1, "a": [1.0]})
        call("release", namespace_token=shown, claim_token=claim)
        call(namespace_token=shown)
    for number, text in enumerate(TEXTS):
        call(namespace_token=token, action_key=text)
        call(namespace_token=token, action_key=f"t{number}", payload_sha256=text)
    call("rotate-token", namespace_token=token, action_key=None)
    call("status", namespace_token=token)
    walk(api, 31_536_001)
    call("status", namespace_token=token)


def conventions(api: Scribe) -> None:
    for path in ("/services/v1/nothing", "/services/v1/lease/acquire", "/healthz", "/readyz", f"{V1}/lease/status?x=1"):
        for method in ("GET", "POST", "PUT", "HEAD", "OPTIONS"):
            api.send(method, path)
    api.send("POST", f"{V1}/lease/acquire", b"{}", {"Content-Type": "text/plain"})
    api.send("POST", f"{V1}/lease/acquire", b" " * 70_000, {"Content-Type": "application/json"})


def walk(api: Scribe, seconds: float) -> None:
    """Let time pass."""
    api.server.offset = getattr(api.server, "offset", 0.0) + seconds  # type: ignore[attr-defined]
    api.server.set_clock(api.server.offset)  # type: ignore[attr-defined]


@pytest.mark.parametrize("script", [leases, handoffs, once, conventions])
def test_both_engines_answer_the_same_bytes(script: Callable[[Scribe], None]) -> None:
    told = []
    for engine in ENGINES:
        environment = {"FENCEPOST_LIMITS": "on", "FENCEPOST_SECRET_KEY": "a-key-of-the-tests-0123456789abcdef"}
        with RunningServer(engine=engine, environment=environment) as server, Scribe(server) as api:
            script(api)
            told.append(api.told)
    assert len(told[0]) == len(told[1]) >= 20
    for on_sqlite, on_postgresql in zip(*told, strict=True):
        assert on_postgresql == on_sqlite
