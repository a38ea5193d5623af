"""Bytes to checked members: no coercion, the first fault alone, in a fixed order, and never a value in a message."""

import json
from typing import Annotated, Any, Literal, Self

import pytest
from pydantic import Field, model_validator

from app.wire.codes import Code
from app.wire.json import RawJson
from app.wire.kinds import (
    LARGEST_FENCE,
    Fence,
    Fingerprint,
    HandoffOwnerToken,
    HandoffReceiverToken,
    Holder,
    LeaseOwnerToken,
    Namespace,
    Nonce,
    Note,
    Raw,
    ShownToken,
    Title,
    TtlSeconds,
    WaitSeconds,
)
from app.wire.members import Members, NoMembers, Rule, fault, parse
from app.wire.reply import Refused, Reply
from app.wire.schema import input_schema

BODY = "abcdefghijklmnopABCDEFGHIJKLMNOP0123456789-"  # 43 characters


class Everything(Members):
    """One member of each kind."""

    name: Annotated[str, Rule("a name"), Field(min_length=1, max_length=200, description="A name.")]
    namespace: Namespace | None = None
    owner_token: LeaseOwnerToken | None = None
    howner: HandoffOwnerToken | None = None
    hrecv: HandoffReceiverToken | None = None
    shown: ShownToken | None = None
    fingerprint: Fingerprint | None = None
    holder: Holder | None = None
    note: Note | None = None
    title: Title | None = None
    nonce: Nonce | None = None
    ttl_seconds: TtlSeconds = 60
    wait_seconds: WaitSeconds = 0
    fencing_token: Fence | None = None
    audience: Annotated[Literal["agent", "person"], Field(description="Who it is for.")] = "agent"
    result: Raw | None = Field(default=None, description="Anything.")

    @model_validator(mode="after")
    def _name_and_title_differ(self) -> Self:
        if self.name == self.title:
            raise fault("title must differ from name", field="title")
        return self


class WithResult(Members):
    result: Raw = Field(description="Anything.")


def refused(model: type[Members], body: bytes) -> Reply:
    with pytest.raises(Refused) as caught:
        parse(model, body)
    assert caught.value.reply.status == 400
    assert caught.value.reply.body["ok"] is False
    return caught.value.reply


def with_member(name: str, value: object) -> bytes:
    return json.dumps({"name": "a", name: value}).encode()


BOUNDARIES: list[tuple[str, list[Any], list[Any]]] = [
    ("name", ["a", "a" * 200, "é" * 200, "\0"], ["", "a" * 201]),
    ("fingerprint", ["a", "a" * 256, "😀" * 256, " "], ["", "a" * 257, "😀" * 257]),
    ("holder", ["a", "a" * 120, "😀" * 120], ["", "a" * 121]),
    ("note", ["a", "a" * 500, "😀" * 500, "\0\n"], ["", "a" * 501, "😀" * 501]),
    ("title", ["b", "a" * 120], ["", "a" * 121]),
    (
        "nonce",
        ["a", "a" * 64, "AZaz09-_"],
        ["", "a" * 65, "a b", "a.b", "a\n", "é", "a:b", "\0", "\uff11"],
    ),
    ("ttl_seconds", [1, 2, 86_399, 86_400], [0, -1, 86_401, 10**17, 10**18, 10**30]),
    ("wait_seconds", [0, 1, 24, 25], [-1, 26]),
    ("fencing_token", [1, LARGEST_FENCE - 1, LARGEST_FENCE], [0, -1, LARGEST_FENCE + 1, 2**63, 2**64]),
    ("audience", ["agent", "person"], ["", "Agent", "agents"]),
    ("shown", ["", "x", "own_", "😀" * 500], []),
    ("namespace", ["ns_" + BODY], ["", "ns_", "ns_" + BODY[1:], "ns_" + BODY + "x", "NS_" + BODY, BODY, "own_" + BODY]),
    (
        "owner_token",
        ["own_" + BODY, "own_" + "abcdefghijklmnop" + "a" * 27],
        ["own_" + "abcdefghijklmno" + "a" * 28, "own_" + BODY + "\n", " own_" + BODY, "own_" + BODY[:-1] + "="],
    ),
    ("howner", ["howner_" + BODY], ["own_" + BODY, "howner_" + BODY[:-1] + "+"]),
    ("hrecv", ["hrecv_" + BODY], ["howner_" + BODY, "hrecv_" + BODY[:-1] + "é"]),
]


@pytest.mark.parametrize(("name", "good", "bad"), BOUNDARIES, ids=[row[0] for row in BOUNDARIES])
def test_each_kind_takes_its_range_and_not_one_more(name: str, good: list[Any], bad: list[Any]) -> None:
    for value in good:
        assert getattr(parse(Everything, with_member(name, value)), name) == value
    for value in bad:
        reply = refused(Everything, with_member(name, value))
        assert reply.body["code"] == "invalid_request"
        assert reply.body["field"] == name
        assert str(reply.body["error"]).startswith(f"{name} must be ")


@pytest.mark.parametrize("spelling", ["true", "false", "60.0", '"60"', "6e1", "[60]", "{}", "60.5", "1e400", "0.0"])
@pytest.mark.parametrize("name", ["ttl_seconds", "wait_seconds", "fencing_token"])
def test_nothing_but_an_integer_is_an_integer(name: str, spelling: str) -> None:
    reply = refused(Everything, f'{{"name":"a","{name}":{spelling}}}'.encode())
    assert reply.body["field"] == name
    assert "a whole number from" in str(reply.body["error"])


@pytest.mark.parametrize("spelling", ["1", "true", "[]", "{}", "1.0", '["a"]'])
@pytest.mark.parametrize("name", ["name", "namespace", "fingerprint", "note", "nonce", "owner_token", "audience"])
def test_nothing_but_text_is_text(name: str, spelling: str) -> None:
    body = f'{{"{name}":{spelling}}}' if name == "name" else f'{{"name":"a","{name}":{spelling}}}'
    assert refused(Everything, body.encode()).body["field"] == name


def test_the_message_names_the_range() -> None:
    reply = refused(Everything, b'{"name":"a","ttl_seconds":0}')
    assert reply.body == {
        "ok": False,
        "code": "invalid_request",
        "error": "ttl_seconds must be a whole number from 1 to 86400",
        "field": "ttl_seconds",
    }
    assert refused(Everything, b'{"name":"a","note":""}').body["error"] == "note must be text of 1 to 500 characters"
    words = refused(Everything, b'{"name":"a","audience":"x"}').body["error"]
    assert words == 'audience must be one of "agent", "person"'


def test_null_is_absent_where_a_member_is_optional() -> None:
    names = [name for name in Everything.model_fields if name not in ("name", "result")]
    body = json.dumps({"name": "a", **dict.fromkeys(names)}).encode()
    assert parse(Everything, body) == parse(Everything, b'{"name":"a"}')


def test_null_is_no_value_for_a_required_member() -> None:
    assert refused(Everything, b'{"name":null}').body["error"] == "name must be a name"
    assert refused(Everything, b"{}").body["error"] == "name is required: a name"


def test_a_raw_null_is_a_value_and_absence_is_not() -> None:
    assert parse(WithResult, b'{"result":null}').result == RawJson("null")
    assert parse(Everything, b'{"name":"a","result":null}').result == RawJson("null")
    assert parse(Everything, b'{"name":"a"}').result is None
    reply = refused(WithResult, b"{}")
    assert reply.body["field"] == "result"
    assert "required" in str(reply.body["error"])


def test_a_raw_member_keeps_its_spelling() -> None:
    assert parse(WithResult, b'{"result": { "b":1.10, "a":1e400 } }').result.text == '{ "b":1.10, "a":1e400 }'


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("fingerprnt", "fingerprint"),
        ("finger_print", "fingerprint"),
        ("Fingerprint", "fingerprint"),
        ("ttlSeconds", "ttl_seconds"),
        ("nmae", "name"),
        ("ownertoken", "owner_token"),
    ],
)
def test_an_unknown_member_is_refused_with_the_nearest_known_name(name: str, near: str) -> None:
    reply = refused(Everything, json.dumps({"name": "a", name: "x"}).encode())
    assert reply.body["field"] == name
    assert reply.body["error"] == f'Unknown member "{name}"; did you mean "{near}"?'


def test_an_unknown_member_is_told_before_a_missing_one() -> None:
    assert refused(Everything, b'{"nmae":"a"}').body["field"] == "nmae"


def test_a_null_does_not_hide_an_unknown_name() -> None:
    assert refused(Everything, b'{"name":"a","fingerprnt":null}').body["field"] == "fingerprnt"


def test_a_route_without_members_says_so() -> None:
    parse(NoMembers, b"")
    reply = refused(NoMembers, b'{"a":1}')
    assert reply.body["fix"] == "This route takes no members: send {}."


@pytest.mark.parametrize("name", ["own_" + BODY, "x" * 65, "a b", "<script>", "é", "", "\0", "x" * 30_000])
def test_a_name_that_may_be_a_secret_or_is_no_name_is_not_echoed(name: str) -> None:
    reply = refused(Everything, json.dumps({name: 1}).encode())
    assert "field" not in reply.body
    assert reply.body["error"] == "There is a member with an unknown name"


def test_the_first_fault_is_that_of_the_member_declared_first() -> None:
    body = b'{"fencing_token":0,"ttl_seconds":0,"name":"","note":""}'
    for _ in range(3):
        assert refused(Everything, body).body["field"] == "name"
    assert refused(Everything, body.replace(b'"name":""', b'"name":"a"')).body["field"] == "note"


def test_what_ties_members_together_is_judged_last() -> None:
    reply = refused(Everything, b'{"name":"a","title":"a"}')
    assert reply.body["error"] == "title must differ from name"
    assert reply.body["field"] == "title"
    assert refused(Everything, b'{"name":"a","title":"a","ttl_seconds":0}').body["field"] == "ttl_seconds"


def test_a_fault_may_carry_a_code_of_its_own() -> None:
    class Small(Members):
        text: Annotated[str, Field(description="Text.")]

        @model_validator(mode="after")
        def _is_small(self) -> Self:
            if len(self.text) > 3:
                raise fault("Too {large}", code=Code.RESULT_TOO_LARGE, members={"size_bytes": len(self.text)})
            return self

    with pytest.raises(Refused) as caught:
        parse(Small, b'{"text":"abcd"}')
    assert caught.value.reply.status == 413
    assert caught.value.reply.body["code"] == "result_too_large"
    assert caught.value.reply.body["error"] == "Too {large}"
    assert caught.value.reply.body["size_bytes"] == 4
    assert "field" not in caught.value.reply.body


def test_bad_json_and_no_object_have_their_own_words() -> None:
    reply = refused(Everything, b'{"name":"a",}')
    assert reply.body["code"] == "invalid_json"
    assert reply.body["position"] == 12
    assert "byte 12" in str(reply.body["error"])
    reply = refused(Everything, b"[]")
    assert reply.body["code"] == "invalid_request"
    assert "object" in str(reply.body["error"])


def test_no_message_and_no_print_shows_a_value() -> None:
    secret = "own_" + BODY
    for name in Everything.model_fields:
        if name not in ("shown", "result", "owner_token"):
            body = json.dumps({"name": "a", name: [secret]}).encode()
            with pytest.raises(Refused) as caught:
                parse(Everything, body)
            assert BODY not in repr(caught.value) + repr(caught.value.reply)
    members = parse(Everything, with_member("owner_token", secret))
    assert BODY not in repr(members)
    assert BODY not in str(members)


def test_members_are_frozen() -> None:
    members = parse(Everything, b'{"name":"a"}')
    with pytest.raises(ValueError, match="frozen"):
        members.name = "b"


def test_the_input_schema_says_what_is_checked() -> None:
    schema = input_schema(Everything)
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    assert schema["required"] == ["name"]
    assert "title" not in schema
    properties = schema["properties"]
    assert list(properties) == list(Everything.model_fields)
    assert all(rule["description"] for rule in properties.values())
    assert not any("title" in rule or rule.get("default", 0) is None for rule in properties.values())
    ttl = properties["ttl_seconds"]
    assert (ttl["type"], ttl["minimum"], ttl["maximum"], ttl["default"]) == (["integer", "null"], 1, 86_400, 60)
    assert properties["audience"]["enum"] == ["agent", "person", None]
    assert properties["name"]["type"] == "string"
    assert [choice["type"] for choice in properties["result"]["anyOf"]] == [
        *("object", "array", "string", "number", "boolean", "null"),
    ]


def test_the_schema_for_tools_leaves_null_out() -> None:
    properties = input_schema(Everything, null=False)["properties"]
    assert properties["ttl_seconds"]["type"] == "integer"
    assert properties["audience"]["enum"] == ["agent", "person"]
    assert properties["namespace"]["pattern"] == "^ns_[A-Za-z0-9_-]{43}$"
