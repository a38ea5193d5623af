"""Handoffs on the wire: each member at its bounds, and each answer exactly as the contract lists it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from app.core import handoff as core
from app.core.instants import DAY_SECONDS, SECOND
from app.core.limits import Exhausted
from app.core.machine import Machine, declare
from app.wire import handoff as wire
from app.wire import handoff_answers as answers
from app.wire import handoff_members as members
from app.wire import tags
from app.wire.answers import Answers
from app.wire.members import Members, parse
from app.wire.reply import Refused, Reply
from app.wire.schema import input_schema, output_schema

BODY = "abcdefghijklmnopABCDEFGHIJKLMNOP0123456789-"
OWNER, RECEIVER = "howner_" + BODY, "hrecv_" + BODY
NOW = 1_800_000_000 * SECOND + 900_000  # 2027-01-15T08:00:00.9Z
NAME = "0123456789abcdef" * 2
URL = "https://fence.example"


def body(**values: object) -> bytes:
    return json.dumps(values).encode()


def create(**values: object) -> members.CreateHandoff:
    return parse(members.CreateHandoff, body(**({"payload": 1} | values)))


def refused(model: type[Members], **values: object) -> Reply:
    with pytest.raises(Refused) as caught:
        parse(model, body(**values))
    return caught.value.reply


def refused_create(**values: object) -> Reply:
    return refused(members.CreateHandoff, **({"payload": 1} | values))


def record(**changes: Any) -> core.HandoffRecord:
    machine = declare()
    assert isinstance(machine, Machine)
    offered: dict[str, Any] = {"handoff_id": NAME, "owner_hash": b"o", "receiver_hash": b"r", "machine": machine}
    return core.create(core.Offer(**(offered | {"payload": b'{"b": 1.10,"a":1}'} | changes)), NOW)


def moved(start: core.HandoffRecord, **changes: Any) -> core.Moved:
    wish: dict[str, Any] = {"by": "receiver", "expected": "offered", "to": "accepted"}
    outcome = core.move(start, core.Wish(**(wish | changes)), NOW + SECOND)
    assert isinstance(outcome, core.Moved)
    return outcome


def created(outcome: core.Created | core.OfferConflict | core.NoRoom | Exhausted) -> Reply:
    return wire.created(
        outcome, owner_token=OWNER, receiver_token=RECEIVER, public_url=URL, notify_secret=lambda name: "whsec_" + name
    )


# ------------------------------------------------------------------------------------------------------- creation


@pytest.mark.parametrize("payload", ["{}", "[]", '""', "0", "false", '{"a": null}', " 1e400 ", '{"b":1,"a":1.10}'])
def test_any_json_but_null_is_a_payload_kept_as_sent(payload: str) -> None:
    assert parse(members.CreateHandoff, b'{"payload":%s}' % payload.encode()).payload.text == payload.strip()


def test_null_and_nothing_are_no_payload() -> None:
    for sent in (b'{"payload": null}', b"{}"):
        with pytest.raises(Refused) as caught:
            parse(members.CreateHandoff, sent)
        reply = caught.value.reply
        assert (reply.status, reply.body["code"], reply.body["field"]) == (400, "invalid_request", "payload")
        assert "but null" in str(reply.body["error"])


def test_a_payload_is_measured_in_bytes_as_sent() -> None:
    fits = '"' + "é" * 8_191 + '"'  # 16,384 bytes
    assert parse(members.CreateHandoff, b'{"payload":  %s }' % fits.encode()).payload.size == 16_384
    with pytest.raises(Refused) as caught:
        parse(members.CreateHandoff, b'{"payload":%s}' % (fits[:-1] + 'a"').encode())
    reply = caught.value.reply
    assert (reply.status, reply.body["code"]) == (413, "payload_too_large")
    assert (reply.body["size_bytes"], reply.body["limit_bytes"]) == (16_385, 16_384)


def test_a_creation_has_its_defaults() -> None:
    asked = create()
    assert asked.machine == declare()
    assert (asked.ttl_seconds, asked.audience) == (86_400, "agent")
    assert (asked.note, asked.title, asked.notify_url, asked.nonce) == (None, None, None, None)
    assert create(note=None, states=None, final=None, transitions=None, permissions=None, ttl_seconds=None) == asked


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("note", ["x", "é" * 500, "\U0001f600" * 500, "\x00"], ["", "x" * 501, 1, ["x"]]),
        ("title", ["x", "\U0001f600" * 120], ["", "x" * 121, 1]),
        ("ttl_seconds", [60, 86_400], [59, 86_401, 0, -1, 60.0, "60", True, 10**30]),
        ("audience", ["agent", "person"], ["Agent", "", 1, "robot"]),
        ("notify_url", ["x", "https://example.com/" + "a" * 2_028], ["", "https://example.com/" + "a" * 2_029, 1]),
        ("states", [["a", "b"]], [["a"], ["a", 1], "ab", {"a": 1}, ["a", None], ["a", "wait"], ["a", "a"], ["a", "B"]]),
        ("final", [["done", "failed", "returned"]], [[], ["offered"], ["zz"], "done", [1], ["done", "done"]]),
        ("transitions", [{}, {"working": ["done"]}], [{"zz": []}, {"working": "done"}, [], {"done": ["failed"]}]),
        ("transitions", [{"done": []}], [{"working": [1]}, {"working": []}, {"working": ["accepted"]}]),
        ("permissions", [{}, {"done": "owner"}], [{"offered": "any"}, {"zz": "any"}, {"done": "me"}, {"done": 1}, []]),
    ],
)  # fmt: skip
def test_each_member_at_its_bounds(name: str, good: list[object], bad: list[object]) -> None:
    for value in good:
        create(**{name: value})
    for value in bad:
        reply = refused_create(**{name: value})
        assert (reply.status, reply.body["code"], reply.body["field"]) == (400, "invalid_request", name), value


@pytest.mark.parametrize("nonce", ["a", "A-z_0", "x" * 64])
def test_a_nonce_comes_with_both_tokens(nonce: str) -> None:
    three: dict[str, object] = {"nonce": nonce, "owner_token": OWNER, "receiver_token": RECEIVER}
    assert create(**three).nonce == nonce
    for absent in three:
        reply = refused_create(**{name: value for name, value in three.items() if name != absent})
        assert reply.body["field"] == absent
        only = refused_create(**{absent: three[absent]})
        assert (only.status, only.body["code"]) == (400, "invalid_request")


@pytest.mark.parametrize("nonce", ["", "x" * 65, "a b", "a\n", "é", "a.b", 1])
def test_other_texts_are_no_nonce(nonce: object) -> None:
    assert refused_create(nonce=nonce, owner_token=OWNER, receiver_token=RECEIVER).body["field"] == "nonce"
    assert refused(members.MoveHandoff, **{"from": "a", "nonce": nonce}).body["field"] == "nonce"


@pytest.mark.parametrize("name", ["owner_token", "receiver_token"])
def test_a_malformed_token_is_refused_and_not_shown(name: str) -> None:
    three = {"nonce": "n", "owner_token": OWNER, "receiver_token": RECEIVER}
    for token in ("", "howner_" + "a" * 43, "hrecv_" + "a" * 43, "own_" + BODY, BODY):
        reply = refused_create(**(three | {name: token}))
        assert reply.body["field"] == name
        assert "a" * 43 not in str(reply.body)


def test_an_unreachable_state_is_named() -> None:
    reply = refused_create(states=["a", "b", "c"], transitions={"a": ["c"]}, final=["b", "c"])
    assert (reply.status, reply.body["field"]) == (400, "transitions")
    assert "'b'" in str(reply.body["error"])


# ------------------------------------------------------------------------------------------------ moves, waits, tags


def test_a_move_names_the_state_that_it_expects() -> None:
    asked = parse(members.MoveHandoff, b'{"from":"offered","nonce":null,"note":"n"}')
    assert (asked.expected, asked.nonce, asked.note) == ("offered", None, "n")
    for value in ("", "A", "a" * 33, "a\n", "é", 1, None):
        assert refused(members.MoveHandoff, **{"from": value}).body["field"] == "from"
    assert refused(members.MoveHandoff).body["field"] == "from"
    assert 'did you mean "from"' in str(refused(members.MoveHandoff, **{"form": "a"}).body["error"])
    assert refused(members.MoveHandoff, expected="a").status == 400


@pytest.mark.parametrize("name", ["A", "", "a" * 33, "a-b", "a\n", "é", "a%20b"])
def test_a_target_that_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(Refused) as caught:
        members.target_state(name)
    assert (caught.value.reply.status, caught.value.reply.body["field"]) == (400, "state")


@pytest.mark.parametrize(
    ("text", "seconds"), [("0", 0), ("1", 1), ("25", 25), ("26", 26), ("99", 99), ("9" * 5000, 99)]
)
def test_waiting_seconds_are_whole_and_may_be_too_many(text: str, seconds: int) -> None:
    assert members.wait_seconds(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "00", "01", "-1", "+1", "1.0", "1e1", "\u00b2", "\uff11\uff12", "1_0", " 1", "1\n", "x", "0x1"]
)
def test_other_spellings_of_seconds_are_refused(text: str) -> None:
    with pytest.raises(Refused) as caught:
        members.wait_seconds(text)
    assert (caught.value.reply.status, caught.value.reply.body["field"]) == (400, "seconds")


@pytest.mark.parametrize(
    ("header", "known"),
    [
        (None, None),
        ("*", None),
        ('"3"', {3}),
        ('W/"3"', {3}),
        (' "3" , W/"12"', {3, 12}),
        ('"0"', set()),
        ('"03"', set()),
        ('"-1"', set()),
        ('"abc"', set()),
        ('"3.0"', set()),
        ('""', set()),
        ('"99999999999999999999"', set()),
        ('"999999"', {999_999}),
    ],
)
def test_what_a_waiting_caller_knows(header: str | None, known: set[int] | None) -> None:
    assert tags.known_versions(header) == (None if known is None else frozenset(known))


@pytest.mark.parametrize("header", ["3", "", '"3', '3"', '"3" "4"', "w/3", '"3"x', '"3",x', 'w/"3"', "null"])
def test_what_is_no_list_of_tags_is_refused_for_a_wait_and_matches_no_read(header: str) -> None:
    with pytest.raises(Refused) as caught:
        tags.known_versions(header)
    assert caught.value.reply.status == 400
    assert not tags.matches(header, 3)


@given(st.lists(st.integers(1, 99_999), min_size=1, max_size=5), st.integers(1, 99_999))
def test_a_read_matches_exactly_the_versions_that_are_named(versions: list[int], version: int) -> None:
    header = ", ".join(f'"{known}"' for known in versions)
    assert tags.matches(header, version) == (version in versions)
    assert tags.known_versions(header) == frozenset(versions)
    assert tags.header(version) == {"ETag": f'"{version}"'}


# --------------------------------------------------------------------------------------------------------- answers


def test_a_creation_is_answered_with_everything_the_parties_need() -> None:
    reply = created(core.Created(record(), DAY_SECONDS * SECOND))
    assert reply.status == 201
    assert reply.body == {
        "ok": True,
        "handoff_id": NAME,
        "owner_token": OWNER,
        "receiver_token": RECEIVER,
        "state": "offered",
        "ended": False,
        "version": 1,
        "states": ["offered", "accepted", "working", "done", "failed", "returned"],
        "final": ["done", "failed", "returned"],
        "transitions": {
            "offered": ["accepted", "working", "done", "failed", "returned"],
            "accepted": ["working", "done", "failed", "returned"],
            "working": ["done", "failed", "returned"],
            "done": [],
            "failed": [],
            "returned": [],
        },
        "created_at": "2027-01-15T08:00:00Z",
        "created_at_timestamp": 1_800_000_000,
        "expires_at": "2027-01-16T08:00:00Z",
        "expires_at_timestamp": 1_800_086_400,
        "expire_timestamp": 1_800_086_400,
        "seconds_left": 86_400,
        "read_url": f"{URL}/services/v1/handoff/{NAME}",
        "review_url": f"{URL}/review#{NAME}.{RECEIVER}",
    }


def test_a_notify_secret_goes_with_a_notify_url_and_a_repeat_says_so() -> None:
    reply = created(core.Created(record(notify_url="https://e.com"), 0, repeated=True))
    assert (reply.body["notify_secret"], reply.body["repeated"]) == ("whsec_" + NAME, True)


def test_a_creation_that_is_refused() -> None:
    conflict = created(core.OfferConflict())
    assert (conflict.status, conflict.body["code"]) == (409, "nonce_conflict")
    full = created(core.NoRoom(7))
    assert (full.status, full.body["code"], full.headers["Retry-After"]) == (503, "full", "7")
    spent = created(Exhausted(100, 60))
    assert (spent.status, spent.body["code"], spent.headers["Retry-After"]) == (429, "rate_limited", "60")
    assert "100 new handoffs" in str(spent.body["error"])


def test_a_read_shows_the_whole_handoff() -> None:
    after = moved(record(note="first", title="t", audience="person"), note="second").record
    reply = wire.read(core.look(after, "receiver", NOW + 2 * SECOND), None)
    assert (reply.status, reply.headers) == (200, {"ETag": '"2"'})
    assert json.loads(reply.encode()) | {"states": None, "final": None, "transitions": None} == {
        "ok": True,
        "handoff_id": NAME,
        "state": "accepted",
        "ended": False,
        "version": 2,
        "role": "receiver",
        "states": None,
        "final": None,
        "transitions": None,
        "allowed": ["working", "done", "failed", "returned"],
        "payload": {"b": 1.1, "a": 1},
        "note": "first",
        "title": "t",
        "audience": "person",
        "history": [
            {
                "state": "offered",
                "from": None,
                "by": "owner",
                "at": "2027-01-15T08:00:00Z",
                "at_timestamp": 1_800_000_000,
                "note": "first",
            },
            {
                "state": "accepted",
                "from": "offered",
                "by": "receiver",
                "at": "2027-01-15T08:00:01Z",
                "at_timestamp": 1_800_000_001,
                "note": "second",
            },
        ],
        "created_at": "2027-01-15T08:00:00Z",
        "created_at_timestamp": 1_800_000_000,
        "expires_at": "2027-01-16T08:00:00Z",
        "expires_at_timestamp": 1_800_086_400,
        "seconds_left": 86_398,
    }
    assert b'"payload":{"b": 1.10,"a":1}' in reply.encode()
    assert wire.read(core.look(after, "owner", NOW), '"2"').status == 304
    assert wire.read(core.look(after, "owner", NOW), '"1"').status == 200


def test_a_wait_adds_why_it_is_over() -> None:
    seen = core.look(record(), "owner", NOW)
    assert isinstance(seen, core.Seen)
    reply = wire.waited(core.Waited(seen, "timeout", False, 1.26))
    assert (reply.status, reply.headers) == (200, {"ETag": '"1"'})
    assert {**reply.body} == {**wire.seen(seen), "changed": False, "wait_reason": "timeout", "waited_seconds": 1.3}


def test_a_move_answers_for_itself_and_for_now() -> None:
    first = moved(record(), nonce="n")
    reply = wire.moved(first)
    assert (reply.status, reply.body) == (
        200,
        {
            "ok": True,
            "state": "accepted",
            "previous": "offered",
            "by": "receiver",
            "version": 2,
            "ended": False,
            "changed_at": "2027-01-15T08:00:01Z",
            "changed_at_timestamp": 1_800_000_001,
            "history_length": 2,
            "repeated": False,
            "current_state": "accepted",
            "current_version": 2,
            "current_ended": False,
        },
    )
    done = moved(first.record, expected="accepted", to="done")
    assert wire.moved(done).body["ended"] is True
    again = wire.moved(moved(done.record, nonce="n")).body
    live = {"current_state": "done", "current_version": 3, "current_ended": True}
    assert again == {**reply.body, "repeated": True, **live}


def refusal(**wish: Any) -> Reply:
    machine = declare(["a", "b", "c"], None, {"a": ["b", "c"]}, {"c": "owner"})
    assert isinstance(machine, Machine)
    start = moved(record(machine=machine), expected="a", to="b", nonce="spent").record
    outcome = core.move(start, core.Wish(**({"by": "receiver", "expected": "b", "to": "c"} | wish)), NOW)
    return wire.moved(outcome)


@pytest.mark.parametrize(
    ("wish", "status", "code"),
    [
        ({"nonce": "spent"}, 409, "nonce_conflict"),
        ({"to": "zz"}, 409, "unknown_state"),
        ({"expected": "a"}, 409, "state_mismatch"),
        ({"to": "a"}, 409, "transition_not_allowed"),
        ({}, 403, "move_not_permitted"),
    ],
)
def test_a_refused_move_says_where_it_stands_and_what_is_allowed(wish: Any, status: int, code: str) -> None:
    reply = refusal(**wish)
    assert (reply.status, reply.body["ok"], reply.body["code"]) == (status, False, code)
    standing = {name: reply.body[name] for name in ("current_state", "current_version", "current_ended", "allowed")}
    assert standing == {"current_state": "b", "current_version": 2, "current_ended": False, "allowed": []}
    assert reply.body.get("states") == (["a", "b", "c"] if code == "unknown_state" else None)
    owner = refusal(**(wish | {"by": "owner"})).body
    assert code in ("nonce_conflict", "move_not_permitted") or owner["allowed"] == ["c"]


def test_an_expired_handoff_tells_its_last_state() -> None:
    reply = wire.read(core.Expired(record()), None)
    assert reply == wire.waited(core.Expired(record())) == wire.moved(core.Expired(record()))
    assert (reply.status, reply.body["code"], reply.body["current_state"]) == (410, "expired", "offered")


def test_not_found_is_the_same_everywhere() -> None:
    assert wire.read(core.NotFound(), None) == wire.waited(core.NotFound()) == wire.moved(core.NotFound())


OPERATED = moved(record(), by="operator", actor="ann")
SEEN = core.Seen(OPERATED.record, "operator", 1)
ALL: list[tuple[Answers, list[Reply]]] = [
    (
        answers.CREATE,
        [
            created(core.Created(record(), 1)),
            created(core.Created(record(notify_url="https://e.com"), 1, repeated=True)),
        ],
    ),
    (
        answers.READ,
        [
            wire.read(SEEN, None),
            wire.read(core.Seen(record(machine=declare(["a", "b"], permissions={"b": "owner"})), "owner", 1), None),
            wire.read(core.Expired(record()), None),
        ],
    ),
    (answers.WAIT, [wire.waited(core.Waited(SEEN, "changed", True, 0.04)), wire.waited(core.Expired(record()))]),
    (answers.MOVE, [wire.moved(OPERATED), refusal(nonce="spent"), refusal(to="zz"), refusal(expected="a"), refusal()]),
]


@pytest.mark.parametrize(("table", "replies"), ALL)
def test_every_answer_fits_its_schema_and_no_member_is_undeclared(table: Answers, replies: list[Reply]) -> None:
    every = Draft202012Validator(output_schema(*(kind for kinds in table.values() for kind in kinds), closed=True))
    for reply in replies:
        sent = json.loads(reply.encode())
        every.validate(sent)
        kinds = [Draft202012Validator(output_schema(kind, closed=True)) for kind in table[reply.status]]
        assert sum(kind.is_valid(sent) for kind in kinds) == 1


@pytest.mark.parametrize("model", [members.CreateHandoff, members.MoveHandoff])
def test_the_members_have_a_schema_by_their_names_on_the_wire(model: type[Members]) -> None:
    schema = input_schema(model)
    Draft202012Validator.check_schema(schema)
    assert schema["required"] == (["from"] if model is members.MoveHandoff else ["payload"])
    for member in schema["properties"].values():
        assert member["description"]
