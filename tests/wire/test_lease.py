"""Leases on the wire: which keys are taken, and each answer exactly as the contract lists it."""

import json
from dataclasses import replace
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from app.core import lease as core
from app.core.instants import DAY_SECONDS, SECOND
from app.wire import lease as wire
from app.wire import lease_answers as answers
from app.wire.answers import Answers
from app.wire.json import RawJson
from app.wire.members import Members, parse
from app.wire.reply import Refused, Reply
from app.wire.schema import input_schema, output_schema

BODY = "abcdefghijklmnopABCDEFGHIJKLMNOP0123456789-"
NAMESPACE = "ns_" + BODY
OWNER = "own_" + BODY
NOW = 1_800_000_000 * SECOND + 900_000  # 2027-01-15T08:00:00.9Z
ASK = core.Ask(owner_hash=b"a" * 32, ttl_seconds=60, fingerprint_hash=b"f" * 32)
OTHER = core.Ask(owner_hash=b"b" * 32, ttl_seconds=60, fingerprint_hash=b"f" * 32)
ROUTES: list[tuple[type[Members], dict[str, object]]] = [
    (wire.AcquireLease, {}),
    (wire.RenewLease, {"owner_token": OWNER}),
    (wire.ReleaseLease, {"owner_token": OWNER}),
    (wire.CompleteLease, {"owner_token": OWNER, "result": 1}),
    (wire.LeaseStatus, {}),
    (wire.VerifyLease, {"fencing_token": 1}),
    (wire.CheckLease, {}),
]


def body(**members: object) -> bytes:
    return json.dumps(members).encode()


def refused(model: type[Members], **members: object) -> Reply:
    with pytest.raises(Refused) as caught:
        parse(model, body(**members))
    return caught.value.reply


def granted(ask: core.Ask = ASK, now: int = NOW, fence: int = 7) -> core.LeaseRecord:
    outcome = core.acquire(None, ask, lambda: fence, now)
    assert isinstance(outcome, core.Granted)
    return outcome.record


def done(now: int = NOW, result: bytes = b'{"b": 1.10, "a":1e400}') -> core.LeaseRecord:
    outcome = core.complete(granted(now=now), ASK.owner_hash, result, now)
    assert isinstance(outcome, core.Completed)
    return outcome.record


# ------------------------------------------------------------------------------------------------------ input


@pytest.mark.parametrize("model", [row[0] for row in ROUTES], ids=lambda model: model.__name__)
@pytest.mark.parametrize(
    "key",
    ["a", "A", "0", "-", "a" * 128, "AZaz09-._~:/@+=,", "job:2026/11/30@host+1=a,b~c._-", "//", ":"],
)
def test_with_a_namespace_a_readable_key_is_taken(model: type[Members], key: str) -> None:
    needed = dict(ROUTES)[model]
    assert parse(model, body(key=key, namespace=NAMESPACE, **needed)).model_dump()["key"] == key


@pytest.mark.parametrize("model", [row[0] for row in ROUTES], ids=lambda model: model.__name__)
@pytest.mark.parametrize(
    "key",
    ["", "a" * 129, "a b", "a\n", "é", "a!", "a#b", "a?b", "a%b", "a*", "a;b", "a&b", "a'b", "\0", "a|b", 1, None],
)
def test_with_a_namespace_nothing_else_is(model: type[Members], key: object) -> None:
    reply = refused(model, key=key, namespace=NAMESPACE, **dict(ROUTES)[model])
    assert (reply.status, reply.body["code"], reply.body["field"]) == (400, "invalid_request", "key")


@pytest.mark.parametrize(
    "key",
    [
        "abcdefgh" * 4,
        "abcdefgh" * 25,
        "!\"#$%&'()*+,-./0123456789:;<=>?@A",
        "[\\]^_`{|}~" + "a" * 22,
        "abcdefg" + "h" * 25,
    ],
)
def test_without_a_namespace_a_long_varied_key_is_taken(key: str) -> None:
    assert parse(wire.AcquireLease, body(key=key)).key == key
    assert parse(wire.AcquireLease, body(key=key, namespace=None)).key == key


@pytest.mark.parametrize(
    "key",
    [
        "abcdefghijklmnopqrstuvwxyz01234",  # 31
        "abcdefgh" * 25 + "a",  # 201
        "abcdefg" * 5,  # 7 distinct
        "a" * 32,
        "abcdefgh abcdefgh abcdefgh abcdefgh",
        "abcdefgh" * 4 + "\n",
        "abcdefgh" * 4 + "é",
        "abcdefgh" * 4 + "\x7f",
        "read/able:1",
    ],
)
def test_without_a_namespace_a_guessable_key_is_refused(key: str) -> None:
    reply = refused(wire.AcquireLease, key=key)
    assert (reply.status, reply.body["code"], reply.body["field"]) == (400, "invalid_request", "key")
    assert key not in str(reply.body)


def test_a_weak_key_is_told_about_namespaces() -> None:
    assert "/lease/namespace" in str(refused(wire.AcquireLease, key="readable").body["fix"])


@pytest.mark.parametrize("namespace", ["", "ns_", "ns_" + "a" * 43, "ns_" + BODY + "a", "own_" + BODY, BODY, 1])
def test_a_malformed_namespace_is_refused(namespace: object) -> None:
    reply = refused(wire.AcquireLease, key="a", namespace=namespace)
    assert (reply.status, reply.body["field"]) == (400, "namespace")


def test_an_acquire_has_its_defaults() -> None:
    ask = parse(wire.AcquireLease, body(key="a", namespace=NAMESPACE))
    assert (ask.ttl_seconds, ask.wait_seconds) == (60, 0)
    assert (ask.fingerprint, ask.owner_token, ask.holder) == (None, None, None)
    assert parse(wire.RenewLease, body(key="a", namespace=NAMESPACE, owner_token="x")).ttl_seconds == 60


def test_an_owner_token_must_be_well_formed_only_where_it_is_brought() -> None:
    for token in ("", "x", "own_short", "own_" + "a" * 43):
        assert (
            refused(wire.AcquireLease, key="a", namespace=NAMESPACE, owner_token=token).body["field"] == "owner_token"
        )
        assert parse(wire.RenewLease, body(key="a", namespace=NAMESPACE, owner_token=token)).owner_token == token
        assert parse(wire.ReleaseLease, body(key="a", namespace=NAMESPACE, owner_token=token)).owner_token == token
        shown = parse(wire.CompleteLease, body(key="a", namespace=NAMESPACE, owner_token=token, result=1))
        assert shown.owner_token == token


@pytest.mark.parametrize("model", [wire.RenewLease, wire.ReleaseLease, wire.CompleteLease])
def test_an_owner_token_is_required_to_act(model: type[Members]) -> None:
    assert refused(model, key="a", namespace=NAMESPACE, result=1).body["field"] in ("owner_token", "result")
    assert refused(model, key="a", namespace=NAMESPACE).body["field"] == "owner_token"


def test_a_result_must_be_present_and_may_be_null() -> None:
    needed: dict[str, object] = {"key": "a", "namespace": NAMESPACE, "owner_token": OWNER}
    assert refused(wire.CompleteLease, **needed).body["field"] == "result"
    assert parse(wire.CompleteLease, body(**needed, result=None)).result == RawJson("null")


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        ('"' + "a" * 32_765 + '"', True),
        ('"' + "a" * 32_766 + '"', True),
        ('"' + "a" * 32_767 + '"', False),
        ('"' + "é" * 16_383 + '"', True),
        ('"' + "é" * 16_383 + 'a"', False),
        ("9" * 32_768, True),
        ("9" * 32_769, False),
    ],
)
def test_a_result_is_counted_in_bytes_as_sent(text: str, taken: bool) -> None:
    sent = f'{{"key":"a","namespace":"{NAMESPACE}","owner_token":"x","result":  {text}  }}'.encode()
    if taken:
        assert parse(wire.CompleteLease, sent).result == RawJson(text)
        return
    with pytest.raises(Refused) as caught:
        parse(wire.CompleteLease, sent)
    reply = caught.value.reply
    assert (reply.status, reply.body["code"]) == (413, "result_too_large")
    assert reply.body["size_bytes"] == len(text.encode())
    assert str(len(text.encode())) in str(reply.body["error"])


def test_every_member_has_a_description() -> None:
    for model, _ in ROUTES:
        schema = input_schema(model)
        Draft202012Validator.check_schema(schema)
        assert all(rule["description"] for rule in schema["properties"].values())


def test_the_schema_takes_what_the_models_take() -> None:
    for model, needed in ROUTES:
        for null in (True, False):
            judge = Draft202012Validator(input_schema(model, null=null))
            judge.validate({"key": "a", "namespace": NAMESPACE, **needed})
            assert not judge.is_valid({"key": "a", "other": 1, **needed})
            assert judge.is_valid({"key": "a" * 40, "namespace": None, **needed}) is null


# ----------------------------------------------------------------------------------------------------- output

ENDS = ["lease_expires_at", "lease_expires_at_timestamp", "absolute_expires_at", "absolute_expires_at_timestamp"]


def test_a_minted_namespace() -> None:
    reply = wire.namespace_minted(NAMESPACE)
    assert (reply.status, reply.body) == (201, {"ok": True, "namespace": NAMESPACE, "entropy_bits": 256})


def test_a_grant() -> None:
    reply = wire.acquired(core.Granted(granted()), OWNER)
    assert reply.status == 201
    assert reply.body == {
        "ok": True,
        "status": "held",
        "owner_token": OWNER,
        "ttl_seconds": 60,
        "fencing_token": 7,
        "lease_expires_at": "2027-01-15T08:01:00Z",
        "lease_expires_at_timestamp": 1_800_000_060,
        "absolute_expires_at": "2027-01-16T08:00:00Z",
        "absolute_expires_at_timestamp": 1_800_086_400,
        "attempt": 1,
    }


def test_a_repeated_grant_says_so() -> None:
    reply = wire.acquired(core.Granted(granted(), repeated=True), OWNER)
    assert reply.status == 201
    assert reply.body["repeated"] is True


@pytest.mark.parametrize(("left", "wait"), [(1, 1), (SECOND, 1), (SECOND + 1, 2), (59_100_000, 60), (60 * SECOND, 60)])
def test_held_rounds_the_wait_up(left: int, wait: int) -> None:
    reply = wire.acquired(core.Held(granted(), left), OWNER)
    assert reply.status == 409
    assert reply.headers == {"Retry-After": str(wait)}
    assert reply.body["retry_after_seconds"] == wait
    assert list(reply.body) == ["ok", "status", "code", "error", "fix", "retry_after_seconds", "fencing_token", *ENDS]
    assert (reply.body["status"], reply.body["code"], reply.body["error"]) == ("held", "lease_held", "Lease is held")
    assert OWNER not in str(reply)


def test_held_names_a_holder_that_gave_its_label() -> None:
    record = replace(granted(), holder="büro 7".encode())
    reply = wire.acquired(core.Held(record, SECOND), OWNER)
    assert reply.body["holder"] == "büro 7"
    assert reply.body["held_since_at"] == "2027-01-15T08:00:00Z"
    assert reply.body["held_since_at_timestamp"] == 1_800_000_000


def test_a_conflict_tells_nothing_but_the_end() -> None:
    reply = wire.acquired(core.Conflict(NOW), OWNER)
    assert reply.status == 409
    assert list(reply.body) == ["ok", "status", "code", "error", "fix", *ENDS[2:]]
    assert (reply.body["status"], reply.body["code"]) == ("conflict", "lease_conflict")


def test_a_completed_key_gives_its_result_as_recorded_and_no_token() -> None:
    reply = wire.acquired(core.Completed(done()), OWNER)
    assert reply.status == 200
    assert list(reply.body) == [
        "ok",
        "status",
        "completed_at",
        "completed_at_timestamp",
        "result",
        "fencing_token",
        *ENDS[2:],
    ]
    assert b'"result":{"b": 1.10, "a":1e400},' in reply.encode()
    assert OWNER not in str(reply)


def test_a_completion_and_its_repeat() -> None:
    first = wire.completed(core.Completed(done()))
    again = wire.completed(core.Completed(done(), repeated=True))
    assert first.status == again.status == 200
    assert {**first.body, "repeated": True} == again.body
    assert wire.completed(core.Completed(done(result=b"null"))).body["result"] == RawJson("null")


def test_a_renewal() -> None:
    outcome = core.renew(granted(), ASK.owner_hash, 10, NOW + 30 * SECOND)
    assert isinstance(outcome, core.Renewed)
    reply = wire.renewed(outcome)
    assert reply.status == 200
    assert list(reply.body) == ["ok", "status", "ttl_seconds", "fencing_token", *ENDS]
    assert reply.body["lease_expires_at_timestamp"] == 1_800_000_040
    assert reply.body["ttl_seconds"] == 10


def test_a_release_and_its_repeat() -> None:
    assert wire.released(core.Released(granted())).body == {"ok": True, "status": "released", "fencing_token": 7}
    assert wire.released(core.Released(granted(), repeated=True)).body["repeated"] is True


@pytest.mark.parametrize("answer", [wire.renewed, wire.released, wire.completed, lambda o: wire.acquired(o, OWNER)])
def test_lost_is_the_same_on_every_route(answer: Any) -> None:
    reply = answer(core.Lost())
    assert reply.status == 409
    assert list(reply.body) == ["ok", "status", "code", "error", "fix"]
    assert (reply.body["status"], reply.body["code"]) == ("lost", "lease_lost")
    assert reply == wire.renewed(core.Lost())
    other = answer(core.Lost("already_completed"))
    assert (other.status, other.body["status"], other.body["code"]) == (409, "lost", "already_completed")
    broken = answer(core.Lost("broken"))
    assert (broken.body["status"], broken.body["code"]) == ("lost", "lease_lost")
    assert broken.body["reason"] == "broken"


def test_the_status_of_a_key() -> None:
    assert wire.status(core.status(None, NOW)).body == {"ok": True, "status": "free", "attempt": 0}
    held = wire.status(core.status(replace(granted(), holder=b"w1"), NOW + 500_000)).body
    assert held == {
        "ok": True,
        "status": "held",
        "attempt": 1,
        "fencing_token": 7,
        "retry_after_seconds": 60,
        "lease_expires_at": "2027-01-15T08:01:00Z",
        "lease_expires_at_timestamp": 1_800_000_060,
        "absolute_expires_at": "2027-01-16T08:00:00Z",
        "absolute_expires_at_timestamp": 1_800_086_400,
        "holder": "w1",
    }
    completed = wire.status(core.status(done(), NOW)).body
    assert set(completed) == {"ok", "status", "attempt", "fencing_token", "completed_at", "completed_at_timestamp"}
    lapsed = wire.status(core.status(replace(granted(), holder=b"w1"), NOW + 60 * SECOND)).body
    assert lapsed == {"ok": True, "status": "free", "attempt": 1, "fencing_token": 7}
    over = wire.status(core.status(granted(), NOW + DAY_SECONDS * SECOND)).body
    assert over == {"ok": True, "status": "free", "attempt": 0, "fencing_token": 7}


@pytest.mark.parametrize("fence", ["current", "stale", "ended", "unknown"])
def test_the_worth_of_a_fence(fence: Any) -> None:
    reply = wire.verified(core.Verified(fence))
    assert (reply.status, reply.body) == (200, {"ok": True, "current": fence == "current", "fence": fence})


LOST = (core.Lost(), core.Lost("broken"))
ALL: list[tuple[Answers, list[Reply]]] = [
    (answers.NAMESPACE, [wire.namespace_minted(NAMESPACE)]),
    (
        answers.ACQUIRE,
        [
            wire.acquired(outcome, OWNER)
            for outcome in (
                core.Granted(granted()),
                core.Granted(granted(), repeated=True),
                core.Held(granted(), 1),
                core.Held(replace(granted(), holder=b"w1"), 1),
                core.Conflict(NOW),
                core.Completed(done()),
                *LOST,
            )
        ],
    ),
    (answers.RENEW, [wire.renewed(outcome) for outcome in (core.Renewed(granted()), *LOST)]),
    (
        answers.RELEASE,
        [wire.released(outcome) for outcome in (core.Released(granted()), core.Released(granted(), True), *LOST)],
    ),
    (
        answers.COMPLETE,
        [
            wire.completed(outcome)
            for outcome in (core.Completed(done()), core.Completed(done(), True), *LOST, core.Lost("already_completed"))
        ],
    ),
    (
        answers.STATUS,
        [
            wire.status(core.status(record, NOW))
            for record in (None, granted(), replace(granted(), holder=b"w1"), done())
        ],
    ),
    (
        answers.CHECK,
        [
            wire.checked(core.status(granted(), NOW), None),
            wire.checked(core.status(granted(), NOW), core.verify(granted(), 7, NOW)),
            wire.checked(core.status(None, NOW), core.verify(None, 7, NOW)),
        ],
    ),
    (answers.VERIFY, [wire.verified(core.Verified(word)) for word in ("current", "stale", "ended", "unknown")]),
]


@pytest.mark.parametrize(("table", "replies"), ALL)
def test_every_answer_fits_its_schema_and_no_member_is_undeclared(table: Answers, replies: list[Reply]) -> None:
    every = Draft202012Validator(output_schema(*(kind for kinds in table.values() for kind in kinds), closed=True))
    for reply in replies:
        body = json.loads(reply.encode().replace(b"1e400", b"1"))
        every.validate(body)
        kinds = [Draft202012Validator(output_schema(kind, closed=True)) for kind in table[reply.status]]
        assert sum(kind.is_valid(body) for kind in kinds) == 1


def test_the_merged_schema_lists_every_word_and_what_it_means() -> None:
    schema = output_schema(*(kind for kinds in answers.ACQUIRE.values() for kind in kinds))
    Draft202012Validator.check_schema(schema)
    status = schema["properties"]["status"]
    assert status["enum"] == ["held", "completed", "conflict", "lost"]
    for word in ("completed:", "conflict:", "lost:"):
        assert word in status["description"]
    assert schema["required"] == ["ok", "status"]
    assert "additionalProperties" not in schema
