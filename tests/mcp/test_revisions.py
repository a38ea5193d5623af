"""Two eras at one address: which one a request is of, and what the newest asks of each."""

import base64

import pytest

from app.mcp import revisions, rpc
from app.mcp.messages import Request
from app.mcp.revisions import NEWEST, Headers
from app.mcp.rpc import Fault
from tests.mcp import oracle
from tests.mcp.speak import CAPABILITIES, VERSION

ENVELOPE = {VERSION: NEWEST, CAPABILITIES: {}}
GOOD = Headers(NEWEST, "tools/call", "acquire_lease")


def call(name: object = "acquire_lease", meta: object = ENVELOPE, method: str = "tools/call") -> Request:
    return Request(1, method, {"name": name, "_meta": meta} if name is not None else {"_meta": meta})


def fault(headers: Headers, request: Request) -> Fault:
    with pytest.raises(Fault) as caught:
        revisions.check(headers, request)
    return caught.value


def test_the_revisions_are_those_that_the_sdk_knows() -> None:
    assert sorted(revisions.ALL) == sorted(oracle.REVISIONS)
    assert oracle.NEWEST == NEWEST


@pytest.mark.parametrize(
    ("header", "meta", "is_newest"),
    [
        (None, None, False),
        ("2025-11-25", None, False),
        ("2024-11-05", {}, False),
        (None, {"progressToken": 1}, False),
        (NEWEST, None, True),
        ("1999-01-01", None, True),
        (None, ENVELOPE, True),
        ("2025-11-25", ENVELOPE, True),
        (None, {VERSION: "2025-11-25"}, True),
    ],
)
def test_the_era_is_told_by_header_or_body(header, meta, is_newest) -> None:
    assert revisions.is_newest_era(Headers(header, None, None), call(meta=meta)) is is_newest


def test_a_request_that_agrees_with_its_headers_passes() -> None:
    revisions.check(GOOD, call())
    revisions.check(Headers(NEWEST, "tools/list", None), call(None, method="tools/list"))
    revisions.check(Headers(NEWEST, "tools/list", "whatever"), call(None, method="tools/list"))


@pytest.mark.parametrize(
    "meta",
    [
        None,
        17,
        [],
        {},
        {VERSION: NEWEST},
        {CAPABILITIES: {}},
        {VERSION: NEWEST, CAPABILITIES: None},
        {VERSION: NEWEST, CAPABILITIES: ["all"]},
    ],
)
def test_what_must_be_in_meta_is_told_by_name(meta) -> None:
    told = fault(GOOD, call(meta=meta))
    assert (told.code, told.http) == (rpc.INVALID_PARAMS, 400)
    assert "io.modelcontextprotocol/" in told.message


@pytest.mark.parametrize(
    ("headers", "name"),
    [
        (Headers(None, None, None), "MCP-Protocol-Version"),
        (Headers("2025-11-25", "tools/call", "acquire_lease"), "MCP-Protocol-Version"),
        (Headers(NEWEST, None, "acquire_lease"), "Mcp-Method"),
        (Headers(NEWEST, "Tools/Call", "acquire_lease"), "Mcp-Method"),
        (Headers(NEWEST, "tools/call", None), "Mcp-Name"),
        (Headers(NEWEST, "tools/call", "renew_lease"), "Mcp-Name"),
        (Headers(NEWEST, "tools/call", "=?base64?!?="), "Mcp-Name"),
        (Headers(NEWEST, "tools/call", "=?base64?YWNxdWlyZV9sZWFzZQ?="), "Mcp-Name"),
    ],
)
def test_headers_that_differ_from_the_body_are_named(headers, name) -> None:
    told = fault(headers, call())
    assert (told.code, told.http) == (rpc.HEADER_MISMATCH, 400)
    assert name in told.message


@pytest.mark.parametrize("name", ["acquire_lease", "Grüße", "=?base64?x?=", "日本"])
def test_a_name_may_travel_in_base64(name) -> None:
    encoded = f"=?base64?{base64.b64encode(name.encode()).decode()}?="
    revisions.check(Headers(NEWEST, "tools/call", encoded), call(name))


@pytest.mark.parametrize("version", ["1999-01-01", "2025-11-25", "zzz", ""])
def test_a_revision_that_is_not_served_here_is_told_with_those_that_are(version) -> None:
    told = fault(Headers(version, "tools/call", "acquire_lease"), call(meta={**ENVELOPE, VERSION: version}))
    assert (told.code, told.http) == (rpc.UNSUPPORTED_VERSION, 400)
    assert told.details == {"supported": list(revisions.ALL), "requested": version}


def test_an_unknown_revision_in_the_header_alone_is_told_as_such() -> None:
    assert fault(Headers("1999-01-01", None, None), call(meta=None)).code == rpc.UNSUPPORTED_VERSION


@pytest.mark.parametrize(
    ("wanted", "agreed"),
    [*((version, version) for version in revisions.WITH_OPENING), (NEWEST, "2025-11-25"), ("x", "2025-11-25")],
)
def test_an_opening_agrees_on_what_was_asked_or_the_newest_that_has_one(wanted, agreed) -> None:
    assert revisions.agreed(wanted) == agreed


@pytest.mark.parametrize(("version", "allowed"), [(None, True), ("2025-03-26", True), ("2025-06-18", False)])
def test_one_revision_has_batches(version, allowed) -> None:
    assert revisions.allows_batches(Headers(version, None, None)) is allowed
