"""From bytes to messages: what is a request, what is silent, what is refused and under which id."""

import json

import pytest

from app.mcp import messages, rpc
from app.mcp.messages import Request, Silent, Unreadable
from app.wire.json import RawJson, dump


def one(**members: object) -> messages.Message | list[messages.Message]:
    return messages.read(json.dumps({"jsonrpc": "2.0", **members}).encode())


@pytest.mark.parametrize("id_", [0, -1, 1, 2**53, "", "a", "0"])
def test_a_request_keeps_its_id_and_its_arguments_as_text(id_) -> None:
    body = f'{{"jsonrpc":"2.0","id":{json.dumps(id_)},"method":"tools/call","params":{{"name":"t",\
"arguments": {{"n":1e400, "a": "\\u0041"}} }}}}'
    read = messages.read(body.encode())
    assert isinstance(read, Request)
    assert (read.id, type(read.id), read.method) == (id_, type(id_), "tools/call")
    assert read.params == {"name": "t", "arguments": RawJson('{"n":1e400, "a": "\\u0041"}')}


@pytest.mark.parametrize("id_", ["9223372036854775807", "-18446744073709551616", "1764542400123456789", "9" * 300])
def test_an_id_of_many_digits_comes_back_as_sent(id_) -> None:
    read = messages.read(f'{{"jsonrpc":"2.0","id":{id_},"method":"ping"}}'.encode())
    assert isinstance(read, Request)
    assert dump(rpc.result(read.id, {})).decode() == f'{{"jsonrpc":"2.0","id":{id_},"result":{{}}}}'


@pytest.mark.parametrize(
    "members",
    [
        {"method": "notifications/initialized"},
        {"method": "notifications/cancelled", "params": {"requestId": 1}},
        {"id": 1, "result": {}},
        {"id": 1, "error": {"code": 1, "message": "m"}},
    ],
)
def test_notifications_and_responses_are_silent(members) -> None:
    assert one(**members) == Silent()


@pytest.mark.parametrize(
    ("body", "code", "id_"),
    [
        (b"", rpc.INVALID_REQUEST, None),
        (b"{", rpc.PARSE_ERROR, None),
        (b"\xff", rpc.PARSE_ERROR, None),
        (b'{"a":1,"a":2}', rpc.PARSE_ERROR, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"} x', rpc.PARSE_ERROR, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"n":NaN}}', rpc.PARSE_ERROR, None),
        (b"17", rpc.INVALID_REQUEST, None),
        (b"{}", rpc.INVALID_REQUEST, None),
        (b'{"id":1,"method":"ping"}', rpc.INVALID_REQUEST, 1),
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', rpc.INVALID_REQUEST, 1),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', rpc.INVALID_REQUEST, None),
        (b'{"jsonrpc":"2.0","id":1.0,"method":"ping"}', rpc.INVALID_REQUEST, None),
        (b'{"jsonrpc":"2.0","id":1e400,"method":"ping"}', rpc.INVALID_REQUEST, None),
        (b'{"jsonrpc":"2.0","id":12345678901234567890.5,"method":"ping"}', rpc.INVALID_REQUEST, None),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', rpc.INVALID_REQUEST, None),
        (b'{"jsonrpc":"2.0","id":[],"method":"ping"}', rpc.INVALID_REQUEST, None),
        (b'{"jsonrpc":"2.0","id":1,"method":7}', rpc.INVALID_REQUEST, 1),
        (b'{"jsonrpc":"2.0","id":1}', rpc.INVALID_REQUEST, 1),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', rpc.INVALID_PARAMS, 1),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":7}', rpc.INVALID_PARAMS, 1),
        (b"[]", rpc.INVALID_REQUEST, None),
        (b"[1,", rpc.PARSE_ERROR, None),
    ],
)
def test_what_is_no_message_is_told_under_the_id_if_there_is_one(body, code, id_) -> None:
    read = messages.read(body)
    assert isinstance(read, Unreadable)
    assert (read.fault.code, read.id) == (code, id_)


def test_a_parse_error_says_what_and_where_and_nothing_of_the_document() -> None:
    read = messages.read(b'{"jsonrpc":"2.0","secret":"own_x",}')
    assert isinstance(read, Unreadable)
    assert read.fault.details is not None
    assert read.fault.details["code"] == "invalid_json"
    assert "own_x" not in str(read.fault.details)


def test_absent_and_null_params_are_none() -> None:
    for body in (one(id=1, method="ping"), one(id=1, method="ping", params=None), one(id=1, method="ping", params={})):
        assert body == Request(1, "ping", {})


@pytest.mark.parametrize(("size", "readable"), [(1, True), (20, True), (21, False)])
def test_a_batch_is_a_list_up_to_its_limit(size, readable) -> None:
    message = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    read = messages.read(b" [" + b",".join([message] * size) + b"]")
    assert isinstance(read, list) is readable


def test_what_is_broken_in_a_batch_is_broken_alone() -> None:
    read = messages.read(b'[{"jsonrpc":"2.0","id":1,"method":"ping"},17,{"jsonrpc":"2.0","method":"x"}]')
    assert isinstance(read, list)
    assert [type(message) for message in read] == [Request, Unreadable, Silent]


def test_a_body_of_the_full_depth_fits_into_the_envelope() -> None:
    deep = '{"a":' + "[" * 63 + "]" * 63 + "}"
    body = f'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t","arguments":{deep}}}}}'
    assert isinstance(messages.read(body.encode()), Request)
    assert isinstance(messages.read(("[" * 300 + "]" * 300).encode()), Unreadable)
