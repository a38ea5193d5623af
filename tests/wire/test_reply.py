"""The shape of answers: refusals, instants in pairs, waiting times."""

import json

import pytest

from app.core.instants import SECOND
from app.wire import errors
from app.wire.codes import MEANINGS, Code
from app.wire.json import InvalidJson, RawJson
from app.wire.reply import Reply, iso, pair, refusal, retry_after


def test_every_code_has_a_meaning() -> None:
    assert set(MEANINGS) == set(Code)


@pytest.mark.parametrize("code", Code)
def test_a_code_is_a_plain_word_with_a_sentence(code: Code) -> None:
    meaning = MEANINGS[code]
    assert code.value == code.name.lower()
    assert meaning.http in (
        200,
        400,
        401,
        402,
        403,
        404,
        405,
        406,
        408,
        409,
        410,
        413,
        414,
        415,
        426,
        417,
        426,
        429,
        431,
        500,
        501,
        503,
    )
    assert meaning.error[0].isupper()
    assert not meaning.error.endswith(".")
    assert meaning.fix is None or (meaning.fix[0].isupper() and meaning.fix.endswith("."))


def test_a_refusal_has_the_common_shape_in_its_order() -> None:
    reply = refusal(Code.LEASE_HELD, status="held", members={"fencing_token": 7}, headers=retry_after(9))
    assert reply.status == 409
    assert list(reply.body) == ["ok", "status", "code", "error", "fix", "fencing_token"]
    assert reply.body["ok"] is False
    assert reply.body["status"] == "held"
    assert reply.body["code"] == "lease_held"
    assert reply.body["error"] == "Lease is held"
    assert reply.headers == {"Retry-After": "9"}


def test_a_refusal_without_a_status_word_or_field_leaves_them_out() -> None:
    assert set(refusal(Code.INVALID_REQUEST).body) == {"ok", "code", "error"}
    assert refusal(Code.INVALID_REQUEST, field="key").body["field"] == "key"


@pytest.mark.parametrize(
    ("at", "text", "second"),
    [
        (0, "1970-01-01T00:00:00Z", 0),
        (SECOND - 1, "1970-01-01T00:00:00Z", 0),
        (SECOND, "1970-01-01T00:00:01Z", 1),
        (1_800_000_000 * SECOND + 999_999, "2027-01-15T08:00:00Z", 1_800_000_000),
        (4_102_444_799 * SECOND, "2099-12-31T23:59:59Z", 4_102_444_799),
        (951_782_400 * SECOND, "2000-02-29T00:00:00Z", 951_782_400),
    ],
)
def test_instants_come_in_pairs_rounded_down(at: int, text: str, second: int) -> None:
    assert iso(at) == text
    assert pair("created_at", at) == {"created_at": text, "created_at_timestamp": second}


@pytest.mark.parametrize(("seconds", "header"), [(-3, "1"), (0, "1"), (1, "1"), (90, "90")])
def test_retry_after_is_at_least_a_second(seconds: int, header: str) -> None:
    assert retry_after(seconds) == {"Retry-After": header}


def test_a_reply_encodes_raw_text_as_it_is() -> None:
    assert Reply(200, {"ok": True, "result": RawJson("1.10")}).encode() == b'{"ok":true,"result":1.10}'


SHARED: list[tuple[Reply, int, str]] = [
    (errors.invalid_json(InvalidJson("not UTF-8", 5)), 400, "invalid_json"),
    (errors.not_an_object(), 400, "invalid_request"),
    (errors.query_not_allowed(), 400, "query_not_allowed"),
    (errors.incomplete_body(), 400, "incomplete_body"),
    (errors.request_timeout(), 408, "request_timeout"),
    (errors.token_required(), 401, "token_required"),
    (errors.origin_not_allowed(), 403, "origin_not_allowed"),
    (errors.not_found(), 404, "not_found"),
    (errors.unknown_route(), 404, "unknown_route"),
    (errors.method_not_allowed(["POST"]), 405, "method_not_allowed"),
    (errors.not_acceptable(), 406, "not_acceptable"),
    (errors.unsupported_media_type(), 415, "unsupported_media_type"),
    (errors.unsupported_media_type("coding"), 415, "unsupported_media_type"),
    (errors.body_too_large(65_536), 413, "body_too_large"),
    (errors.rate_limited(3600, limit=5000), 429, "rate_limited"),
    (errors.full(12), 503, "full"),
    (errors.too_many_waiters(), 503, "too_many_waiters"),
    (errors.unavailable(committed="no"), 503, "unavailable"),
    (errors.unavailable(committed="unknown", retry_after_seconds=2), 503, "unavailable"),
    (errors.internal("req-1"), 500, "internal"),
]


@pytest.mark.parametrize(("reply", "status", "code"), SHARED, ids=[row[2] for row in SHARED])
def test_shared_refusals_carry_status_code_and_a_sentence(reply: Reply, status: int, code: str) -> None:
    assert reply.status == status
    assert reply.body["ok"] is False
    assert reply.body["code"] == code
    assert reply.body["error"]
    assert json.loads(reply.encode()) == reply.body
    assert ("Retry-After" in reply.headers) == (status in (429, 503))
    if status in (429, 503):
        assert reply.headers["Retry-After"] == str(reply.body["retry_after_seconds"])


def test_details_that_callers_act_on() -> None:
    assert errors.method_not_allowed({"POST", "GET"}).headers == {"Allow": "GET, POST"}
    assert errors.token_required().headers == {"WWW-Authenticate": "Bearer"}
    assert "Content-Type: application/json" in str(errors.unsupported_media_type().body["fix"])
    assert "65536" in str(errors.body_too_large(65_536).body["error"])
    assert errors.internal("req-1").body["request_id"] == "req-1"
    assert "nothing was committed" in str(errors.unavailable(committed="no").body["error"])
    assert "unknown" in str(errors.unavailable(committed="unknown").body["error"])
    assert errors.not_found().encode() == errors.not_found().encode()
