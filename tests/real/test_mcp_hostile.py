"""Hostile input through tools: what REST refuses, a tool refuses with the same words, and nothing ends in a 5xx.

Each text is the arguments of a tool and the body of its REST twin. What is no JSON makes the whole message unreadable:
then the protocol's own error carries the refusal.
"""

import json

import pytest

from tests.mcp.speak import CAPABILITIES, VERSION, Mcp
from tests.real.api import V1, Answer, Api
from tests.real.server import MOSTLY_SQLITE, RunningServer

NS = "ns_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOP_"
LONG_KEY = '"key":"0123456789abcdefghijklmnopqrstuvwxyz"'
ROUTES = {
    "acquire_lease": f"{V1}/lease/acquire",
    "complete_lease": f"{V1}/lease/complete",
    "create_agent_handoff": f"{V1}/handoff",
    "once_key_claim": "/once-key",
    "once_key_complete": "/once-key/complete",
}

# Readable: refused (or taken) by the check of the members, as over REST.
READABLE = [
    ("acquire_lease", '{"key":"k","namespce":"x"}'),
    ("acquire_lease", '{"Key":"k"}'),
    ("acquire_lease", '{"key":17}'),
    ("acquire_lease", '{"key":["a"]}'),
    ("acquire_lease", '{"key":{"$ne":null}}'),
    ("acquire_lease", '{"key":""}'),
    ("acquire_lease", '{{"key":"{}","namespace":"{}"}}'.format("a" * 129, NS)),
    ("acquire_lease", '{"key":"%s"}' % ("a" * 40)),
    ("acquire_lease", f'{{"key":"a b","namespace":"{NS}"}}'),
    ("acquire_lease", f'{{"key":"a\\u0000b","namespace":"{NS}"}}'),
    ("acquire_lease", f'{{"key":"../../etc/passwd\\n","namespace":"{NS}"}}'),
    ("acquire_lease", '{"key":"k","namespace":"ns_short"}'),
    ("acquire_lease", '{"key":"k","namespace":"ns_%s"}' % ("a" * 43)),
    ("acquire_lease", f"{{{LONG_KEY},\"ttl_seconds\":\"60\"}}"),
    ("acquire_lease", f'{{{LONG_KEY},"ttl_seconds":60.0}}'),
    ("acquire_lease", f'{{{LONG_KEY},"ttl_seconds":true}}'),
    ("acquire_lease", f'{{{LONG_KEY},"ttl_seconds":1e2}}'),
    ("acquire_lease", f'{{{LONG_KEY},"ttl_seconds":-1}}'),
    ("acquire_lease", '{{{},"ttl_seconds":{}}}'.format(LONG_KEY, "9" * 5000)),
    ("acquire_lease", f'{{{LONG_KEY},"ttl_seconds":9223372036854775808}}'),
    ("acquire_lease", f'{{{LONG_KEY},"wait_seconds":26}}'),
    ("acquire_lease", '{{{},"fingerprint":"{}"}}'.format(LONG_KEY, "f" * 257)),
    ("acquire_lease", f'{{{LONG_KEY},"holder":""}}'),
    ("acquire_lease", f'{{{LONG_KEY},"__proto__":{{}}}}'),
    ("acquire_lease", '{{{},"own_{}":1}}'.format(LONG_KEY, "a" * 43)),
    ("complete_lease", '{{{},"owner_token":"x","result":"{}"}}'.format(LONG_KEY, "x" * 32_767)),
    ("complete_lease", f'{{{LONG_KEY},"owner_token":"x","result":1e400}}'),
    ("complete_lease", f'{{{LONG_KEY},"owner_token":"\\u00e9\\u0000","result":null}}'),
    ("create_agent_handoff", '{"payload":%s}' % ("[" * 64 + "]" * 64)),
    ("create_agent_handoff", '{"payload":%s}' % ("[" * 200 + "]" * 200)),
    ("create_agent_handoff", '{"payload":1,"states":["a","wait"]}'),
    ("create_agent_handoff", '{"payload":1,"transitions":{"offered":["offered"]}}'),
    ("create_agent_handoff", '{"payload":1,"notify_url":"http://169.254.169.254/latest"}'),
    ("create_agent_handoff", '{"payload":1,"notify_url":"javascript:alert(1)"}'),
    ("create_agent_handoff", '{"payload":1,"note":"%s"}' % ("n" * 501)),
    ("create_agent_handoff", '{"payload":"%s"}' % ("x" * 30_000)),
    ("once_key_claim", '{"namespace":"a\\u0007","action_key":"b"}'),
    ("once_key_claim", '{"namespace":"a","action_key":"%s"}' % ("b" * 257)),
    ("once_key_claim", '{"namespace":"a","action_key":"b","claim_token":"clm_x"}'),
    ("once_key_claim", '{"namespace":"a","action_key":"b","ttl":31536001}'),
    ("once_key_complete", '{"namespace":"hostile","action_key":"b","result":"%s"}' % ("x" * 20_000)),
]  # fmt: skip
# Unreadable: the document itself is refused.
UNREADABLE = [
    '{"key":"a","key":"b"}',
    '{"key":"a","\\u006bey":"b"}',
    '{"result":{"a":1,"a":2}}',
    '{"key":NaN}',
    '{"key":-Infinity}',
    '{"key":"\\ud800"}',
    '{"key":"\\udc00\\ud800"}',
    '{"key":"a",}',
    "{'key':'a'}",
    '{"key":01}',
    '{"key":"a"} {}',
    '{"key":"a\nb"}',
    '{"key":"\\x41"}',
    '{"key":' + "[" * 5000 + "]" * 5000 + "}",
    "{" * 5000,
]


@pytest.fixture(scope="module", params=MOSTLY_SQLITE)
def server(request):
    with RunningServer(engine=request.param, environment={"FENCEPOST_LIMITS": "off"}) as running:
        yield running
        assert "Traceback" not in running.stderr


@pytest.fixture(scope="module")
def api(server):
    with Api(server.port) as caller:
        yield caller


def through_tool(server: RunningServer, tool: str, text: str, revision: str) -> Answer:
    with Mcp(server.port, revision) as mcp:
        return mcp.spelled("tools/call", f'{{"name":"{tool}","arguments":{text}}}', tool)


@pytest.mark.parametrize("number", range(len(READABLE)))
def test_a_readable_text_is_refused_with_the_words_of_rest(server, api, number) -> None:
    tool, text = READABLE[number]
    by_rest = api.text(ROUTES[tool], text)
    by_tool = through_tool(server, tool, text, "2026-07-28" if number % 2 else "2025-11-25")
    assert by_tool.status == 200
    assert by_tool["result"]["structuredContent"] == by_rest.body
    assert by_tool["result"].get("isError", False) is (by_rest.status in (400, 404, 413))
    assert by_rest.status in (400, 404, 409, 413)


@pytest.mark.parametrize("text", UNREADABLE)
def test_a_text_that_is_no_json_is_a_parse_error_with_the_refusal_of_rest(server, api, text) -> None:
    by_rest = api.text(ROUTES["acquire_lease"], text)
    by_tool = through_tool(server, "acquire_lease", text, "2025-11-25")
    assert (by_tool.status, by_tool["error"]["code"]) == (400, -32700)
    assert (by_rest.status, by_rest["code"]) == (400, "invalid_json")
    assert by_tool["error"]["data"]["code"] == "invalid_json"


@pytest.mark.parametrize(
    "raw", [b"\xef\xbb\xbf{}", b"\xff\xfe{\x00}\x00", b'{"jsonrpc":"\xed\xa0\x80"}', b"\x00", b"\x1f\x8b\x08"]
)
def test_bytes_that_are_no_utf8_are_a_parse_error(api, raw) -> None:
    answer = api.send("POST", "/mcp", raw, {"Content-Type": "application/json"})
    assert (answer.status, answer["error"]["code"]) == (400, -32700)


@pytest.mark.parametrize("name", ["", "ACQUIRE_LEASE", "acquire_lease\u0000", "../x", "__init__", "a" * 5000, "日本"])
def test_an_unknown_tool_is_told_without_its_name(api, name) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name}}
    answer = api.post("/mcp", **body)
    assert answer["error"]["code"] == -32602
    assert set(answer["error"]["data"]) == {"tools"}


@pytest.mark.parametrize("meta", [{VERSION: 7}, {VERSION: None}, {VERSION: ["2026-07-28"]}, {VERSION: "2026-07-28"}, 7])
def test_a_hostile_envelope_is_refused_before_anything_is_done(api, meta) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}}
    headers = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/list"}
    assert api.text("/mcp", json.dumps(body), headers).status == 400
    body["params"] = {"_meta": {**(meta if isinstance(meta, dict) else {}), CAPABILITIES: 7}}
    assert api.text("/mcp", json.dumps(body), headers).status == 400


def test_numbers_and_order_of_what_is_stored_come_back_as_sent(server) -> None:
    payload = '{"b":1.10, "a":1e400,"c":12345678901234567890,"d":"\\u0041é"}'
    with Mcp(server.port) as mcp:
        made = mcp.spelled("tools/call", f'{{"name":"create_agent_handoff","arguments":{{"payload":{payload}}}}}',
                           "create_agent_handoff")["result"]["structuredContent"]  # fmt: skip
        asked = {"handoff_id": made["handoff_id"], "token": made["owner_token"]}
        answer = mcp.rpc("tools/call", {"name": "read_agent_handoff", "arguments": asked})
    assert b'"payload":' + payload.encode() in answer.raw
    assert f'"payload":{payload}' in answer["result"]["content"][0]["text"]
