"""Once-keys on the wire: members at their limits, and every outcome's exact body."""

import json
from dataclasses import replace
from typing import Any

import jsonschema
import pytest

from app.core import claim as core
from app.core.instants import SECOND
from app.core.namespace import NamespaceForbidden, NamespaceWeak
from app.wire import claim as wire
from app.wire import claim_answers, receipt
from app.wire.answers import Answers
from app.wire.json import dump
from app.wire.members import Members, parse
from app.wire.reply import Refused, Reply
from app.wire.schema import output_schema

START = 1_800_000_000_900_000
NAMES = {"namespace": "billing", "action_key": "charge-1042"}
ASKED = parse(wire.ClaimAction, dump(NAMES))
RECORD = core.ClaimRecord(
    claimant_hash=bytes(32),
    fence=7,
    attempt=1,
    claimed_at=START,
    changed_at=START,
    expires_at=START + 100 * SECOND,
    lease_expires_at=None,
)
LEASED = replace(RECORD, lease_expires_at=START + 10 * SECOND)
SINCE = {"claimed_at": "2027-01-15T08:00:00Z", "claimed_at_timestamp": 1_800_000_000}
END = {"expires_at": "2027-01-15T08:01:40Z", "expires_at_timestamp": 1_800_000_100}
LEASE_END = {"lease_expires_at": "2027-01-15T08:00:10Z", "lease_expires_at_timestamp": 1_800_000_010}
DONE_AT = {"completed_at": "2027-01-15T08:00:01Z", "completed_at_timestamp": 1_800_000_001}
RANDOM = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnop0"
FAKE_RECEIPT = "ed25519:" + "k" * 43 + ":" + "s" * 86


def done(result: bytes | None) -> core.ClaimRecord:
    outcome = core.complete(RECORD, None, result, 100, START + SECOND)
    assert isinstance(outcome, core.ClaimCompleted)
    return outcome.record


def body(reply: Reply, answers: Answers) -> dict[str, Any]:
    """The answer as a caller reads it, checked against the documented members of its status; no others."""
    sent = receipt.signed(reply, lambda _: FAKE_RECEIPT)
    read: dict[str, Any] = json.loads(sent.encode())
    jsonschema.validate(read, output_schema(*answers[reply.status], closed=True))
    assert (read.pop("receipt", None) is not None) is (reply.status == 200)
    return read


def refused(model: type[Members], members: dict[str, object]) -> dict[str, object]:
    with pytest.raises(Refused) as caught:
        parse(model, dump(members))
    assert caught.value.reply.status == 400
    return dict(caught.value.reply.body)


# ----------------------------------------------------------------------------------------------------- members


@pytest.mark.parametrize(
    ("member", "good", "bad"),
    [
        ("namespace", ["a", "a" * 128, "é" * 128, "\U0001f600" * 128, " ", "a b/c"], ["", "a" * 129, 5]),
        ("namespace", [], ["a\n", "\x00", "\x7f", "\x85"]),
        ("action_key", ["a", "a" * 256, "\uffff"], ["", "a" * 257, "a\tb", "\x1f", "\x9f", True]),
        ("payload_sha256", ["a", "A" * 128, "\n"], ["", "a" * 129, 1]),
        ("ttl", [1, 31_536_000], [0, -1, 31_536_001, True, "60", 60.0, [], 2**63]),
        ("lease_ttl", [1, 31_536_000], [0, -1, 31_536_001, True, "60", 2**63]),
        ("wait_seconds", [0, 25], [-1, 26, True, "1"]),
        ("claim_token", ["clm_" + RANDOM], ["", "clm_x", "own_" + RANDOM, "clm_" + "a" * 43, "clm_" + RANDOM + "0", 1]),
        ("namespace_token", ["", "anything", "nst_x"], [1, {}]),
        ("credit_token", ["", "anything"], [1]),
    ],
)  # fmt: skip
def test_members_of_a_claim_at_their_limits(member: str, good: list[object], bad: list[object]) -> None:
    for value in good:
        assert getattr(parse(wire.ClaimAction, dump({**NAMES, member: value})), member) == value
    for value in bad:
        said = refused(wire.ClaimAction, {**NAMES, member: value})
        assert (said["code"], said["field"]) == ("invalid_request", member)


def test_what_is_absent_or_null_has_its_default() -> None:
    optional = ("namespace_token", "payload_sha256", "ttl", "lease_ttl", "claim_token", "wait_seconds", "credit_token")
    for asked in (ASKED, parse(wire.ClaimAction, dump({**NAMES, **dict.fromkeys(optional)}))):
        assert (asked.ttl, asked.lease_ttl, asked.wait_seconds) == (86_400, None, 0)
        assert (asked.namespace_token, asked.claim_token, asked.payload_sha256) == (None, None, None)


@pytest.mark.parametrize(
    ("model", "required"),
    [
        (wire.ClaimAction, ["namespace", "action_key"]),
        (wire.CompleteAction, ["namespace", "action_key"]),
        (wire.ReleaseAction, ["namespace", "action_key"]),
        (wire.RenewAction, ["namespace", "action_key", "claim_token", "lease_ttl"]),
        (wire.ActionStatus, ["namespace", "action_key"]),
        (wire.RotateToken, ["namespace"]),
    ],
)
def test_what_is_required_and_that_other_names_are_refused(model: type[Members], required: list[str]) -> None:
    whole: dict[str, object] = {name: 5 if name == "lease_ttl" else "x" for name in required}
    parse(model, dump(whole))
    for name in required:
        without = {other: value for other, value in whole.items() if other != name}
        assert refused(model, without)["field"] == name
        assert refused(model, {**whole, name: None})["field"] == name
    assert refused(model, {**whole, "payload_sha265": "x"})["field"] == "payload_sha265"


def test_a_recorded_null_is_a_result_and_an_absent_one_is_none() -> None:
    assert parse(wire.CompleteAction, dump(NAMES)).result is None
    asked = parse(wire.CompleteAction, b'{"namespace":"a","action_key":"b","result":null}')
    assert asked.result is not None
    assert asked.result.text == "null"


@pytest.mark.parametrize(
    "text",
    ["1e400", "-0.0", "1.10", "12345678901234567890", "0.1000000000000000055", '{"b" : 1,\n"a":[ ]}', '"\\u0000"'],
)
def test_a_result_is_kept_as_sent(text: str) -> None:
    asked = parse(wire.CompleteAction, b'{"namespace":"a","action_key":"b","result": ' + text.encode() + b" }")
    assert asked.result is not None
    assert asked.result.text == text
    answer = wire.completed(asked, core.ClaimCompleted(done(text.encode())))
    assert b'"result":' + text.encode() + b',"has_result":true' in answer.encode()


# ----------------------------------------------------------------------------------------------------- claim


def test_claimed() -> None:
    reply = wire.claimed(ASKED, core.Claimed(RECORD), "clm_x")
    assert body(reply, claim_answers.CLAIM) == {
        "status": "claimed",
        **NAMES,
        **SINCE,
        **END,
        "claim_token": "clm_x",
        "fencing_token": 7,
        "attempt": 1,
    }


def test_claimed_with_a_lease_as_the_first_in_its_namespace() -> None:
    said = body(wire.claimed(ASKED, core.Claimed(LEASED), "clm_x", "nst_x"), claim_answers.CLAIM)
    assert said["namespace_token"] == "nst_x"
    assert "shown once" in said["note"]
    assert {name: said[name] for name in LEASE_END} == LEASE_END
    assert "recovered" not in said
    assert "repeated" not in said


def test_claimed_by_takeover_and_again_by_repeat() -> None:
    taken = replace(LEASED, attempt=2)
    said = body(wire.claimed(ASKED, core.Claimed(taken), "clm_x"), claim_answers.CLAIM)
    assert (said["recovered"], said["attempt"], "repeated" in said) == (True, 2, False)
    again = body(wire.claimed(ASKED, core.Claimed(taken, repeated=True), "clm_x"), claim_answers.CLAIM)
    assert again == {**said, "repeated": True}


@pytest.mark.parametrize(("left", "seconds"), [(1, 1), (SECOND, 1), (SECOND + 1, 2), (10 * SECOND, 10)])
def test_in_progress_and_held_say_when_to_come_back_rounded_up(left: int, seconds: int) -> None:
    reply = wire.claimed(ASKED, core.InProgress(LEASED, left), "clm_x")
    assert reply.headers == {"Retry-After": str(seconds)}
    assert body(reply, claim_answers.CLAIM) == {
        "status": "in_progress",
        **NAMES,
        **SINCE,
        **LEASE_END,
        **END,
        "retry_after": seconds,
    }
    reply = wire.claimed(ASKED, core.ClaimHeld(RECORD, left), "clm_x")
    assert reply.headers == {"Retry-After": str(seconds)}
    assert body(reply, claim_answers.CLAIM) == {"status": "held", **NAMES, **SINCE, **END, "retry_after": seconds}


@pytest.mark.parametrize(
    ("stored", "told", "has_result"),
    [
        (None, b"null", False),
        (b"null", b"null", True),
        (b"false", b"false", True),
        (b"0", b"0", True),
        (b'""', b'""', True),
        (b"{}", b"{}", True),
        (b"1e2", b"1e2", True),
    ],
)
def test_a_duplicate_tells_what_was_recorded_from_nothing(stored: bytes | None, told: bytes, has_result: bool) -> None:
    reply = wire.claimed(ASKED, core.Duplicate(done(stored)), "clm_x")
    said = body(reply, claim_answers.CLAIM)
    end = {"expires_at": "2027-01-15T08:01:41Z", "expires_at_timestamp": 1_800_000_101}
    assert said == {
        "status": "duplicate",
        **NAMES,
        **SINCE,
        **DONE_AT,
        **end,
        "result": json.loads(told),
        "has_result": has_result,
    }
    flag = b"true" if has_result else b"false"
    assert reply.encode().endswith(b'"result":' + told + b',"has_result":' + flag + b"}")


@pytest.mark.parametrize("damaged", [b"[2]", None, b"\xff"])
def test_a_result_that_cannot_be_read_back_is_never_silently_nothing(damaged: bytes | None) -> None:
    record = replace(done(b"[1]"), result=damaged)
    said = body(wire.claimed(ASKED, core.Duplicate(record), "clm_x"), claim_answers.CLAIM)
    assert (said["has_result"], said["result"]) == (False, None)
    assert "cannot be read back" in said["result_error"]


def test_conflict_shows_times_and_nothing_else() -> None:
    record = replace(done(b'"secret"'), expires_at=RECORD.expires_at)
    reply = wire.claimed(ASKED, core.ClaimConflict(record), "clm_x")
    assert body(reply, claim_answers.CLAIM) == {"status": "conflict", **NAMES, **SINCE, **END}


def test_forbidden_is_answered_with_200_and_a_code() -> None:
    said = body(wire.claimed(ASKED, NamespaceForbidden(), "clm_x"), claim_answers.CLAIM)
    assert (said["status"], said["code"]) == ("forbidden", "forbidden")
    assert "ok" not in said


def test_a_weak_name_is_refused_with_a_better_one() -> None:
    reply = wire.claimed(ASKED, NamespaceWeak(), "clm_x", None, "billing-0123456789abcdef")
    said = body(reply, claim_answers.CLAIM)
    assert reply.status == 400
    assert (said["code"], said["suggestion"]) == ("weak_namespace", "billing-0123456789abcdef")
    assert "billing-0123456789abcdef" in said["fix"]


# ---------------------------------------------------------------------------------------------- the other routes


def test_completed_and_already_completed() -> None:
    asked = parse(wire.CompleteAction, dump(NAMES))
    expected = {
        **NAMES,
        **DONE_AT,
        "expires_at": "2027-01-15T08:01:41Z",
        "expires_at_timestamp": 1_800_000_101,
        "result": 1,
        "has_result": True,
    }
    first = wire.completed(asked, core.ClaimCompleted(done(b"1")))
    assert body(first, claim_answers.COMPLETE) == {"status": "completed", **expected}
    again = wire.completed(asked, core.AlreadyCompleted(done(b"1")))
    assert body(again, claim_answers.COMPLETE) == {"status": "already_completed", **expected}


def test_refusals_of_complete_release_and_renew() -> None:
    complete = parse(wire.CompleteAction, dump(NAMES))
    release = parse(wire.ReleaseAction, dump(NAMES))
    renew = parse(wire.RenewAction, dump({**NAMES, "claim_token": "x", "lease_ttl": 1}))
    missing: list[tuple[core.NoClaim | core.ClaimLost | NamespaceForbidden, int, str]] = [
        (core.NoClaim(), 404, "no_claim"),
        (core.ClaimLost(), 409, "claim_lost"),
        (NamespaceForbidden(), 404, "not_found"),
    ]
    for outcome, status, code in missing:
        for reply, answers in (
            (wire.completed(complete, outcome), claim_answers.COMPLETE),
            (wire.released(release, outcome), claim_answers.RELEASE),
            (wire.renewed(renew, outcome), claim_answers.RENEW),
        ):
            assert (reply.status, body(reply, answers)["code"]) == (status, code)
    large = body(wire.completed(complete, core.ResultTooLarge(16_385)), claim_answers.COMPLETE)
    assert (large["size_bytes"], large["limit_bytes"]) == (16_385, 16_384)
    finished = core.AlreadyCompleted(done(b"1"))
    assert body(wire.released(release, finished), claim_answers.RELEASE)["detail"]
    assert body(wire.renewed(renew, finished), claim_answers.RENEW)["code"] == "already_completed"
    assert body(wire.renewed(renew, core.NotLeased()), claim_answers.RENEW)["code"] == "not_leased"


def test_released_renewed_and_rotated() -> None:
    release = parse(wire.ReleaseAction, dump(NAMES))
    assert body(wire.released(release, core.ClaimReleased(RECORD)), claim_answers.RELEASE) == {
        "status": "released",
        **NAMES,
    }
    renew = parse(wire.RenewAction, dump({**NAMES, "claim_token": "x", "lease_ttl": 1}))
    assert body(wire.renewed(renew, core.ClaimRenewed(LEASED)), claim_answers.RENEW) == {
        "status": "claimed",
        **NAMES,
        **SINCE,
        **END,
        **LEASE_END,
        "fencing_token": 7,
        "attempt": 1,
    }
    rotate = parse(wire.RotateToken, dump({"namespace": "billing"}))
    assert body(wire.rotated(rotate, "nst_x"), claim_answers.ROTATE) == {
        "status": "rotated",
        "namespace": "billing",
        "namespace_token": "nst_x",
    }
    assert wire.rotated(rotate, None).status == 404


def test_the_status_never_shows_the_result_nor_a_token() -> None:
    asked = parse(wire.ActionStatus, dump(NAMES))
    free = body(wire.status(asked, core.ClaimStatus("free", None)), claim_answers.STATUS)
    assert free == {"status": "free", **NAMES, "has_result": False}
    leased = body(wire.status(asked, core.ClaimStatus("in_progress", LEASED)), claim_answers.STATUS)
    owned = {"fencing_token": 7, "attempt": 1}
    assert leased == {"status": "in_progress", **NAMES, **SINCE, **END, **LEASE_END, **owned, "has_result": False}
    finished = body(wire.status(asked, core.ClaimStatus("completed", done(b"1"))), claim_answers.STATUS)
    assert (finished["has_result"], "result" in finished) == (True, False)
    assert (
        body(wire.status(asked, core.ClaimStatus("completed", done(None))), claim_answers.STATUS)["has_result"] is False
    )
    assert wire.status(asked, NamespaceForbidden()).status == 404
