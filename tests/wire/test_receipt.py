"""What a receipt signs, and that nothing else of an answer can be changed under it."""

import hashlib
from typing import Any

import pytest
import rfc8785

from app.services.receipts import open_receipts
from app.wire.json import RawJson
from app.wire.receipt import canonical, signed, verified
from app.wire.reply import Refused, Reply

RECEIPTS = open_receipts(b"s" * 32)
ANSWER = Reply(
    200,
    {
        "status": "duplicate",
        "namespace": "b\u00fccher",
        "action_key": '"result":1,"has_result":',
        "expires_at_timestamp": 1_800_000_000,
        "result": RawJson('{"n": 1e400, "s":"\\u00e9", "x":[1,2.50]}'),
        "has_result": True,
    },
)


def is_valid(body: bytes) -> object:
    return verified(body, RECEIPTS.is_valid).body["valid"]


def verdict(body: bytes) -> object:
    """True or False, or the status of a refusal."""
    try:
        return is_valid(body)
    except Refused as refused:
        return refused.reply.status


def test_a_receipt_verifies_with_a_few_lines() -> None:
    sent = signed(ANSWER, RECEIPTS.sign).encode()
    result = sent.split(b'"result":', 1)[1].rsplit(b',"has_result":', 1)[0]
    members: dict[str, Any] = {
        "status": "duplicate",
        "namespace": "b\u00fccher",
        "action_key": '"result":1,"has_result":',
        "expires_at_timestamp": 1_800_000_000,
        "has_result": True,
        "result_sha256": hashlib.sha256(result).hexdigest(),
    }
    receipt = str(signed(ANSWER, RECEIPTS.sign).body["receipt"])
    assert RECEIPTS.is_valid(rfc8785.dumps(members), receipt)


def test_an_answer_verifies_as_received_in_any_layout_of_its_own_members() -> None:
    sent = signed(ANSWER, RECEIPTS.sign).encode()
    assert is_valid(sent) is True
    assert is_valid(b" " + sent.replace(b',"has_result"', b' ,\n "has_result"') + b"\n") is True


def test_one_changed_byte_anywhere_fails() -> None:
    sent = signed(ANSWER, RECEIPTS.sign).encode()
    verdicts = []
    for place in range(len(sent)):
        for byte in {sent[place] ^ 1, sent[place] ^ 2, sent[place] ^ 32, ord("0")} - {sent[place]}:
            verdicts.append(verdict(sent[:place] + bytes([byte]) + sent[place + 1 :]))
    assert len(verdicts) > 3 * len(sent)
    assert set(verdicts) == {False, 400}


@pytest.mark.parametrize(
    "other",
    [
        b'{"status":"released"}',
        b"{}",
        b"null",
        b'{"receipt":1}',
        b'{"receipt":"ed25519:x:y"}',
        b'{"n":1.5,"receipt":"x"}',
        b'{"n":12345678901234567890,"receipt":"x"}',
        b'{"n":9007199254740993,"receipt":"x"}',
        b'{"n":{"m":1e2},"receipt":"x"}',
    ],
)
def test_what_is_no_answer_of_ours_is_not_valid(other: bytes) -> None:
    assert is_valid(other) is False


def test_a_second_member_cannot_pass_for_the_result() -> None:
    sent = signed(ANSWER, RECEIPTS.sign).encode()
    digest = hashlib.sha256(str(getattr(ANSWER.body["result"], "text", "")).encode()).hexdigest()
    assert is_valid(sent[:-1] + b',"result_sha256":"' + digest.encode() + b'"}') is False


def test_what_is_no_object_is_refused() -> None:
    for other in (b"[]", b"1", b"{", b'{"a":1,"a":1}'):
        with pytest.raises(Refused):
            is_valid(other)


def test_a_refusal_gets_no_receipt() -> None:
    refusal = Reply(404, {"ok": False})
    assert signed(refusal, RECEIPTS.sign) is refusal
    assert canonical({"result_sha256": "x"}) is None
