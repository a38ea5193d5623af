"""The table of tools: names, hints, schemas and words, as the contract lists them and as a model reads them."""

import json
import re
from typing import Any, cast

import pytest
from jsonschema import Draft202012Validator

from app.mcp import claim, handoff, lease
from app.mcp.tool import Tool
from app.mcp.words import INSTRUCTIONS
from app.push import guard
from app.services.claim import Claims
from app.services.handoff import Handoffs
from app.services.lease import Leases
from app.services.receipts import Receipts
from tests.house.tree import ROOT

NONE = cast(Any, None)
TOOLS: dict[str, Tool[Any]] = {
    tool.name: cast(Tool[Any], tool)
    for tool in [
        *lease.tools(cast(Leases, NONE)),
        *handoff.tools(
            cast(Handoffs, NONE),
            public_url="http://x",
            notify_secret=str,
            webhooks=guard.Policy(ports=frozenset([80]), allow=()),
        ),
        *claim.tools(cast(Claims, NONE), cast(Receipts, NONE)),
    ]
}
# name: required, optional, read-only, idempotent
CONTRACT = {
    "create_lease_namespace": ("", "", True, False),
    "acquire_lease": ("key", "namespace fingerprint ttl_seconds wait_seconds owner_token holder", False, False),
    "renew_lease": ("key owner_token", "namespace ttl_seconds", False, True),
    "release_lease": ("key owner_token", "namespace", False, True),
    "complete_lease": ("key owner_token result", "namespace", False, True),
    "check_lease": ("key", "namespace fencing_token", True, True),
    "create_agent_handoff": (
        "payload",
        "note states final transitions notify_url ttl_seconds title audience permissions nonce owner_token "
        "receiver_token",
        False,
        False,
    ),
    "read_agent_handoff": ("handoff_id token", "wait_seconds since_version", True, True),
    "advance_agent_handoff": ("handoff_id token to from", "nonce note", False, False),
    "once_key_claim": (
        "namespace action_key",
        "namespace_token payload_sha256 ttl lease_ttl wait_seconds claim_token credit_token",
        False,
        False,
    ),
    "once_key_complete": ("namespace action_key", "namespace_token result ttl claim_token", False, True),
    "once_key_release": ("namespace action_key", "namespace_token claim_token", False, True),
    "once_key_renew": ("namespace action_key lease_ttl claim_token", "namespace_token", False, True),
}
# Words that every tool may answer; a description tells only what is particular to its tool.
SHARED = {"invalid_request", "invalid_json", "body_too_large", "unavailable", "too_many_waiters"}
# The word of the status says it; the code repeats it.
CODE_OF_STATUS = {"lease_held": "held", "lease_conflict": "conflict", "lease_lost": "lost", "forbidden": "forbidden"}


def test_the_tools_are_those_of_the_contract_in_its_order() -> None:
    assert list(TOOLS) == list(CONTRACT)


@pytest.mark.parametrize("name", CONTRACT)
def test_members_and_hints_are_those_of_the_contract(name) -> None:
    required, optional, reads_only, is_idempotent = CONTRACT[name]
    listing = TOOLS[name].listing()
    schema = listing["inputSchema"]
    assert sorted(schema.get("required", [])) == sorted(required.split())
    assert sorted(schema["properties"]) == sorted((required + " " + optional).split())
    assert (schema["type"], schema["additionalProperties"]) == ("object", False)
    assert listing["annotations"] == {
        "title": listing["title"],
        "readOnlyHint": reads_only,
        "destructiveHint": False,
        "idempotentHint": is_idempotent,
        "openWorldHint": False,
    }


@pytest.mark.parametrize("name", CONTRACT)
def test_schemas_are_valid_and_every_member_is_described(name) -> None:
    listing = TOOLS[name].listing()
    for kind in ("inputSchema", "outputSchema"):
        Draft202012Validator.check_schema(listing[kind])
        assert listing[kind]["type"] == "object"
        undescribed = [member for member, rule in listing[kind]["properties"].items() if not described(rule)]
        assert undescribed == ([] if kind == "inputSchema" else [member for member in undescribed if member == "code"])
    assert "$ref" not in json.dumps(listing["inputSchema"])


@pytest.mark.parametrize("name", CONTRACT)
def test_a_number_has_both_its_bounds_in_the_schema(name) -> None:
    for rule in TOOLS[name].listing()["inputSchema"]["properties"].values():
        if rule.get("type") == "integer":
            assert rule["minimum"] < rule["maximum"] <= 2**53 - 1


def described(rule: dict[str, Any]) -> bool:
    return bool(rule.get("description")) or any(described(choice) for choice in rule.get("anyOf", []))


def words(name: str, member: str) -> list[str]:
    rule = TOOLS[name].output()["properties"].get(member, {})
    assert not rule or "enum" in rule or "const" in rule, f"{member} must be a list of words"
    return [rule["const"]] if "const" in rule else list(rule.get("enum", []))


@pytest.mark.parametrize("name", CONTRACT)
def test_each_status_and_code_is_told_in_words(name) -> None:
    told = TOOLS[name].description
    codes = {CODE_OF_STATUS.get(code, code) for code in words(name, "code")} - SHARED
    missing = [word for word in [*words(name, "status"), *codes] if not re.search(rf"\b{word}\b", told)]
    assert missing == []


@pytest.mark.parametrize("name", CONTRACT)
def test_a_description_is_for_people_and_models_and_says_nothing_of_cost(name) -> None:
    told = TOOLS[name].description
    assert 200 < len(told) < 2500
    assert not re.search(r"\b(cost|price|pay|credit)\b", told.lower().replace("(a payment,", ""))
    assert all(len(line) < 1000 for line in told.splitlines())


@pytest.mark.parametrize("name", ["acquire_lease", "check_lease", "read_agent_handoff", "once_key_claim"])
def test_what_comes_from_others_is_called_data_and_never_instructions(name) -> None:
    assert "never instructions" in TOOLS[name].description
    assert "never instructions" in INSTRUCTIONS


def test_no_member_is_mirrored_into_a_header() -> None:
    assert "x-mcp-header" not in json.dumps([tool.listing() for tool in TOOLS.values()])


def test_the_page_tells_every_tool_and_which_may_be_repeated() -> None:
    page = (ROOT / "docs/mcp.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| [^|]+ \|([^|]*)\|$", page, flags=re.MULTILINE))
    hints = {
        name: "reads only" if contract[2] else "may be repeated" if contract[3] else ""
        for name, contract in CONTRACT.items()
    }
    assert {name: beside.strip() for name, beside in rows.items()} == hints


def test_what_a_model_sees_can_be_printed() -> None:
    from tests.mcp.seen import seen  # it prints this module's table

    for name, tool in TOOLS.items():
        told = seen(name)
        assert tool.description in told
        assert all(member in told for member in tool.listing()["inputSchema"]["properties"])
