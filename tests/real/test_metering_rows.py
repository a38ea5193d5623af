"""Each row of the contract on credit, over REST and as tools, on both engines."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.mcp.speak import Mcp
from tests.real.api import Answer, Api, together
from tests.real.oncecalls import Once, fresh
from tests.real.server import ENGINES, ROOT, RunningServer

pytestmark = pytest.mark.real
PRICE = "0.010"
METERED = {"FENCEPOST_PRICE_ONCE_CLAIM": PRICE, "FENCEPOST_TRUSTED_PROXIES": "1", "FENCEPOST_LIMITS": "off"}


@pytest.fixture(scope="module", params=ENGINES)
def server(request: pytest.FixtureRequest) -> Iterator[RunningServer]:
    with RunningServer(engine=request.param, environment=METERED) as running:
        yield running


@pytest.fixture
def once(server: RunningServer) -> Iterator[Once]:
    with Once(server.port, namespace=fresh("app-")) as caller:
        yield caller


@pytest.fixture
def mcp(server: RunningServer) -> Iterator[Mcp]:
    with Mcp(server.port) as caller:
        yield caller


def grant(server: RunningServer, amount: str, to: str | None = None) -> str:
    """What the operator does: the token, or the line that says what it holds."""
    words = [sys.executable, "-m", "app.cli.main", "credits", "grant", amount, *(["--add"] if to else [])]
    done = subprocess.run(
        words, cwd=ROOT, env=server.environment, input=f"{to}\n", capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[0]


def balance(api: Api, token: str) -> dict[str, Any]:
    return api.get("/credits/balance", {"X-Credit-Token": token}).body


def cost(answer: Answer) -> tuple[str | None, str | None]:
    return answer.headers.get("x-credit-charged"), answer.headers.get("x-credit-balance")


def test_without_credit_a_claim_is_402_with_a_pointer_to_the_trial_and_does_nothing(once: Once, mcp: Mcp) -> None:
    answer = once.once()
    assert (answer.status, answer["code"], answer["required_usd"]) == (402, "payment_required", "0.010000")
    assert answer["trial"] == "/credits/trial"
    assert "receipt" not in answer.body
    told = mcp.tool("once_key_claim", {"namespace": once.namespace, "action_key": "charge-1042"})
    assert told["isError"] is True
    assert told["structuredContent"] == answer.body
    assert once.once("status").status == 404  # nobody owns the namespace


@pytest.mark.parametrize("prefix", ["", "/services/v1"])
def test_a_token_pays_as_a_member_and_as_a_header(server: RunningServer, once: Once, prefix: str) -> None:
    once.prefix = prefix
    token = grant(server, "0.03")
    assert cost(once.claim(credit_token=token)) == ("0.010000", "0.020000")
    named = {"namespace": once.namespace, "action_key": "b", "namespace_token": once.token}
    by_header = once.post(f"{prefix}/once-key", headers={"X-Credit-Token": token}, **named)
    assert (by_header["status"], cost(by_header)) == ("claimed", ("0.010000", "0.010000"))
    assert balance(once, token) == {
        "balance_usd": "0.010000",
        "granted_usd": "0.030000",
        "spent_usd": "0.020000",
        "calls": 2,
    }


def test_a_tool_pays_with_the_same_token_and_says_what_it_cost(server: RunningServer, once: Once, mcp: Mcp) -> None:
    token = grant(server, "0.02")
    told = mcp.tool("once_key_claim", {"namespace": once.namespace, "action_key": "charge-1042", "credit_token": token})
    assert told["structuredContent"]["status"] == "claimed"
    assert told["_meta"]["fencepost/credit"] == {"charged_usd": "0.010000", "balance_usd": "0.010000"}
    held = mcp.structured("credits_balance", credit_token=token)
    assert held == balance(once, token)
    assert (held["spent_usd"], held["calls"]) == ("0.010000", 1)


def test_held_conflict_forbidden_duplicate_and_in_progress_are_charged(server: RunningServer, once: Once) -> None:
    token = grant(server, "1")
    pay = {"credit_token": token}
    once.claim(payload_sha256="aa", **pay)
    assert once.claim(**pay)["status"] == "held"
    assert once.claim(payload_sha256="bb", **pay)["status"] == "conflict"
    assert once.claim(namespace_token="nst_wrong", **pay)["status"] == "forbidden"
    once.once("complete", result=1)
    assert once.claim(**pay)["status"] == "duplicate"
    once.claim("leased", lease_ttl=100, **pay)
    assert cost(once.claim("leased", **pay)) == ("0.010000", "0.930000")
    assert balance(once, token)["calls"] == 7


def test_everything_but_the_claim_is_free(server: RunningServer, once: Once) -> None:
    token = grant(server, "0.01")
    who = fresh("clm_")
    once.claim(credit_token=token, claim_token=who, lease_ttl=100)
    for route, members in (
        ("status", {}),
        ("renew", {"claim_token": who, "lease_ttl": 50}),
        ("complete", {"claim_token": who}),
        ("rotate-token", {}),
    ):
        answer = once.once(route, **members)
        assert answer.status == 200
        assert "x-credit-charged" not in answer.headers
    assert once.lease("namespace").status == 201


def test_a_repeat_with_the_same_claim_token_is_not_charged_twice(server: RunningServer, once: Once) -> None:
    token, who = grant(server, "0.01"), fresh("clm_")
    assert cost(once.claim(credit_token=token, claim_token=who)) == ("0.010000", "0.000000")
    again = once.claim(credit_token=token, claim_token=who)
    assert (again["status"], again["repeated"], cost(again)) == ("claimed", True, ("0.000000", "0.000000"))


def test_an_unknown_token_is_401_and_too_little_402_and_neither_does_anything(
    server: RunningServer, once: Once, mcp: Mcp
) -> None:
    little = grant(server, "0.009999")
    for token, status, code in (("cred_nobody", 401, "invalid_credit_token"), (little, 402, "insufficient_credit")):
        answer = once.once(credit_token=token)
        assert (answer.status, answer["code"]) == (status, code)
        told = mcp.tool(
            "once_key_claim", {"namespace": once.namespace, "action_key": "charge-1042", "credit_token": token}
        )
        assert told["isError"] is True
        assert told["structuredContent"] == answer.body
    assert (answer["balance_usd"], answer["required_usd"]) == ("0.009999", "0.010000")
    assert once.once("status").status == 404
    assert balance(once, little)["calls"] == 0


def test_a_refused_call_is_not_charged(server: RunningServer, once: Once) -> None:
    token = grant(server, "0.01")
    assert once.once(credit_token=token, ttl=0).status == 400
    assert once.once(credit_token=token, unknown_member=1).status == 400
    assert once.text("/once-key", "{", {"X-Credit-Token": token}).status == 400
    server.failpoint("after-decide error")
    assert once.once(credit_token=token).status == 500
    server.failpoint("before-debit error")
    assert once.once(credit_token=token).status == 500
    server.failpoint()
    assert balance(once, token)["spent_usd"] == "0.000000"
    assert once.claim(credit_token=token)["attempt"] == 1


def test_of_ten_parallel_claims_on_a_balance_for_two_exactly_two_pass(server: RunningServer, once: Once) -> None:
    once.claim("founding", credit_token=grant(server, "0.01"))
    for _ in range(5):
        token, gate, run = grant(server, "0.02"), together(10), fresh("run-")

        def call(number: int, token: str = token, gate: Any = gate, run: str = run) -> int:
            with Once(server.port, once.namespace, once.token) as caller:
                gate.wait()
                return caller.once("", f"{run}-{number}", credit_token=token).status

        with ThreadPoolExecutor(10) as pool:
            assert sorted(pool.map(call, range(10))) == [200] * 2 + [402] * 8
        assert balance(once, token) == {
            "balance_usd": "0.000000",
            "granted_usd": "0.020000",
            "spent_usd": "0.020000",
            "calls": 2,
        }
        taken = [once.once("status", f"{run}-{number}")["status"] for number in range(10)]
        assert sorted(taken) == ["free"] * 8 + ["held"] * 2


def trial(api: Api, address: str, path: str = "/credits/trial") -> dict[str, Any]:
    answer = api.post(path, headers={"X-Forwarded-For": address})
    assert answer.status == 200, answer
    return answer.body


def test_a_trial_is_ten_cents_once_per_address_and_ipv6_counts_by_64(once: Once, mcp: Mcp) -> None:
    mine = trial(once, "198.51.100.7")
    assert re.fullmatch(r"cred_trial_[A-Za-z0-9_-]{43}", mine.pop("credit_token"))
    assert mine == {"balance_usd": "0.100000", "granted_usd": "0.100000", "trial": True, "exhausted": False}
    token = trial(once, "2001:db8:1:2::1")["credit_token"]
    assert trial(once, "2001:db8:1:2:ffff::9", "/services/v1/credits/trial")["credit_token"] == token
    assert trial(once, "2001:db8:1:3::1")["credit_token"] != token
    by_tool = mcp.rpc(
        "tools/call", {"name": "credits_trial", "arguments": {}}, **{"X-Forwarded-For": "2001:db8:1:2::5"}
    )
    assert by_tool.body["result"]["structuredContent"]["credit_token"] == token


def test_a_trial_is_spent_and_never_refilled(once: Once) -> None:
    token = trial(once, "198.51.100.8")["credit_token"]
    for number in range(10):
        once.claim(f"act-{number}", credit_token=token)
    assert once.once("", "act-10", credit_token=token).status == 402
    again = trial(once, "198.51.100.8")
    assert (again["credit_token"], again["balance_usd"], again["exhausted"]) == (token, "0.000000", True)


def test_a_balance_is_asked_by_get_and_post_and_unknown_404_none_400(server: RunningServer, once: Once) -> None:
    token = grant(server, "5")
    for prefix in ("", "/services/v1"):
        path = f"{prefix}/credits/balance"
        told = once.get(path, {"X-Credit-Token": token})
        assert told.status == 200
        assert told["balance_usd"] == "5.000000"
        assert once.post(path, headers={"X-Credit-Token": token}).body == told.body
        assert once.post(path, credit_token=token).body == told.body
        assert once.get(path, {"X-Credit-Token": "cred_nobody"}).status == 404
        none = once.get(path)
        assert (none.status, none["code"], none["field"]) == (400, "invalid_request", "credit_token")


def test_an_operator_grants_more_to_a_token(server: RunningServer, once: Once) -> None:
    token = grant(server, "1.5")
    assert token.startswith("cred_")
    assert "2.000000" in grant(server, "0.5", to=token)
    assert balance(once, token)["granted_usd"] == "2.000000"


def test_a_token_is_nowhere_in_the_log_nor_on_disk(once: Once, server: RunningServer) -> None:
    token = grant(server, "1")
    once.claim(credit_token=token)
    body = token.removeprefix("cred_")
    assert body not in server.stdout
    assert body not in server.stderr
    kept = [file for file in server.data_dir.rglob("*") if file.is_file()]
    assert not [file for file in kept if body.encode() in file.read_bytes()]


def test_the_price_is_the_same_sentence_in_tool_document_and_guide(server: RunningServer, once: Once, mcp: Mcp) -> None:
    from decimal import Decimal

    from app.wire.prices import CLAIM, prices, told

    sentence = told(prices(Decimal(PRICE)), CLAIM)
    assert sentence is not None
    assert "0.010000" in sentence
    tools = {tool["name"]: tool for tool in mcp.rpc("tools/list").body["result"]["tools"]}
    document = once.get("/openapi.json").body
    guide = once.get("/llms.txt").raw.decode()
    assert [name for name, tool in tools.items() if sentence in tool["description"]] == [CLAIM]
    for path in ("/once-key", "/services/v1/once-key"):
        claim = document["paths"][path]["post"]
        assert (claim["description"], claim["x-price-usd"]) == (sentence, "0.010000")
        assert {"401", "402"} <= set(claim["responses"])
    priced = [path for path, methods in document["paths"].items() for told in methods.values() if "x-price-usd" in told]
    assert priced == ["/once-key", "/services/v1/once-key"]
    assert guide.count(sentence) == 1
    assert {"credits_trial", "credits_balance"} <= set(tools)
    hints = {name: tools[name]["annotations"] for name in ("credits_trial", "credits_balance")}
    assert [(hint["readOnlyHint"], hint["idempotentHint"]) for hint in hints.values()] == [(False, True), (True, True)]


def test_every_answer_of_the_tools_fits_their_schema(server: RunningServer, once: Once, mcp: Mcp) -> None:
    schemas = {tool["name"]: tool["outputSchema"] for tool in mcp.rpc("tools/list").body["result"]["tools"]}
    token = grant(server, "0.01")
    claim = {"namespace": once.namespace, "action_key": "a"}
    for name, arguments in (
        ("credits_trial", {}),
        ("credits_balance", {"credit_token": token}),
        ("credits_balance", {"credit_token": "cred_nobody"}),
        ("once_key_claim", claim),
        ("once_key_claim", {**claim, "credit_token": "cred_nobody"}),
        ("once_key_claim", {**claim, "credit_token": token}),
        ("once_key_claim", {**claim, "credit_token": token}),
    ):
        Draft202012Validator(schemas[name]).validate(mcp.tool(name, arguments)["structuredContent"])


def test_the_document_is_valid_and_its_credit_routes_exist(once: Once) -> None:
    from openapi_spec_validator import validate

    document = once.get("/openapi.json").body
    validate(document)
    for path in (path for path in document["paths"] if "credits" in path):
        for method in document["paths"][path]:
            answer = once.send(method.upper(), path, b"{}" if method == "post" else None, JSON)
            assert str(answer.status) in document["paths"][path][method]["responses"]


JSON = {"Content-Type": "application/json"}


def test_without_a_price_nothing_of_it_shows() -> None:
    with RunningServer() as free, Once(free.port) as once, Mcp(free.port) as mcp:
        for method, path in (("POST", "trial"), ("POST", "balance"), ("GET", "balance"), ("POST", "buy")):
            for prefix in ("", "/services/v1"):
                answer = once.send(method, f"{prefix}/credits/{path}", b"{}" if method == "POST" else None, JSON)
                assert (answer.status, answer["code"]) == (404, "unknown_route")
        answer = once.claim(credit_token="cred_x")
        assert answer["status"] == "claimed"
        assert cost(answer) == (None, None)
        listed = json.dumps(mcp.rpc("tools/list").body)
        assert "credits_" not in listed
        assert "US dollars" not in listed
        assert "payment_required" not in listed
        document = once.get("/openapi.json").raw.decode()
        assert "/credits" not in document
        assert "x-price" not in document
        assert "credits" not in once.get("/llms.txt").raw.decode()
        words = [sys.executable, "-m", "app.cli.main", "credits", "grant", "1"]
        done = subprocess.run(words, cwd=ROOT, env=free.environment, capture_output=True, text=True, check=False)
        assert done.returncode == 78
        assert "Nothing has a price here" in done.stderr
