"""Every row of the handoff's page against a real server, at its boundaries."""

import json
import time
from typing import Any

import pytest

from tests.real.api import Api
from tests.real.handoffs import PATH, UNKNOWN, Made, bearer, look, make, move, own_tokens, wait
from tests.real.server import ENGINES, RunningServer


@pytest.fixture(scope="module", params=ENGINES)
def server(request):
    with RunningServer(engine=request.param) as running:
        yield running


@pytest.fixture
def api(server):
    with Api(server.port) as caller:
        yield caller


def advance(server, seconds: float) -> None:
    """The clock only goes forward, so every test moves on from where the one before left it."""
    server.offset = getattr(server, "offset", 0.0) + seconds
    server.set_clock(server.offset)


def refused(api, **members):
    return api.post(PATH, **({"payload": 1} | members))


# --------------------------------------------------------------------------------------------------------- creation


def test_a_creation_has_exactly_the_members_of_the_page(server, api) -> None:
    made = api.post(PATH, payload={"draft": 42})
    assert made.status == 201
    assert set(made.body) == {
        *("ok", "handoff_id", "owner_token", "receiver_token", "state", "ended", "version", "states", "final"),
        *("transitions", "created_at", "created_at_timestamp", "expires_at", "expires_at_timestamp"),
        *("expire_timestamp", "seconds_left", "read_url", "review_url"),
    }
    assert (made["ok"], made["state"], made["ended"], made["version"]) == (True, "offered", False, 1)
    assert made["expire_timestamp"] == made["expires_at_timestamp"] == made["created_at_timestamp"] + 86_400
    assert made["seconds_left"] == 86_400
    assert made["read_url"] == f"{server.url}{PATH}/{made['handoff_id']}"
    assert made["review_url"] == f"{server.url}/review#{made['handoff_id']}.{made['receiver_token']}"
    assert made["owner_token"].startswith("howner_")
    assert made["receiver_token"].startswith("hrecv_")
    assert len(made["handoff_id"]) == 32


@pytest.mark.parametrize(
    "payload",
    [
        '{"z":1,"a":[1.10, 1e400 ,-0.0,12345678901234567890],\t"u":"\\u00e9\\ud83d\\ude00\\u0000\\/","e":"é😀"}',
        "0",
        '""',
        "[]",
        "false",
        "9" * 5_000,
        '{"deep":' + "[" * 61 + "]" * 61 + "}",
    ],
)
def test_a_payload_comes_back_byte_for_byte_from_every_answer(api, payload) -> None:
    created = api.text(PATH, '{"payload": \n %s \t}' % payload)  # noqa: UP031
    assert created.status == 201
    made = Made(created["handoff_id"], created["owner_token"], created["receiver_token"])
    stored = f'"payload":{payload},"note"'.encode()
    assert stored in look(api, made).raw
    assert stored in wait(api, made, 0, token=made.receiver).raw


def test_a_payload_of_16384_bytes_is_kept_and_one_more_is_refused(api) -> None:
    for payload in ('"' + "x" * 16_382 + '"', '"' + "é" * 8_191 + '"'):
        assert api.text(PATH, f'{{"payload":  {payload}  }}').status == 201
        too_big = api.text(PATH, f'{{"payload":{payload[:-1]}x"}}')
        assert (too_big.status, too_big["code"], too_big["size_bytes"]) == (413, "payload_too_large", 16_385)


@pytest.mark.parametrize("payload", ["null", " null "])
def test_null_is_no_payload(api, payload) -> None:
    answer = api.text(PATH, f'{{"payload":{payload}}}')
    assert (answer.status, answer["code"], answer["field"]) == (400, "invalid_request", "payload")
    assert api.post(PATH)["field"] == "payload"


@pytest.mark.parametrize("cap", [24_576])
def test_a_creation_of_24_kib_is_read_and_one_more_byte_is_not(api, cap) -> None:
    body = '{"payload":1}'
    assert api.text(PATH, body + " " * (cap - len(body))).status == 201
    refusal = api.text(PATH, body + " " * (cap + 1 - len(body)))
    assert (refusal.status, refusal["code"], refusal["limit_bytes"]) == (413, "body_too_large", cap)


def test_a_move_of_8_kib_is_read_and_one_more_byte_is_not(api) -> None:
    made = make(api)
    body = '{"from":"offered"}'
    long = api.text(f"{made.path}/accepted", body + " " * (8_193 - len(body)), bearer(made.owner))
    assert (long.status, long["code"], long["limit_bytes"]) == (413, "body_too_large", 8_192)
    assert look(api, made)["version"] == 1
    assert api.text(f"{made.path}/accepted", body + " " * (8_192 - len(body)), bearer(made.owner)).status == 200


@pytest.mark.parametrize(
    ("member", "good", "bad"),
    [
        ("note", ["x", "é" * 500, "\x00"], ["", "x" * 501, 1]),
        ("title", ["x", "😀" * 120], ["", "x" * 121]),
        ("ttl_seconds", [60, 86_400], [59, 86_401, 60.0, "60", True]),
        ("audience", ["agent", "person"], ["robot", ""]),
        ("states", [["a", "b"], [f"s{n}" for n in range(12)]], [["a"], [f"s{n}" for n in range(13)], ["a", "A"]]),
        ("states", [["a" * 32, "b"]], [["a" * 33, "b"], ["a", "wait"], ["a", "stream"], ["a", "a"], "ab"]),
        ("final", [["done", "failed", "returned"]], [[], ["offered"], ["nope"], ["done", "done"]]),
        ("transitions", [{"offered": ["accepted"]}], [{"offered": []}, {"done": ["failed"]}, {"done": ["accepted"]}]),
        ("permissions", [{"done": "receiver"}], [{"offered": "any"}, {"nope": "any"}, {"done": "both"}]),
    ],
)
def test_each_member_of_a_creation_at_its_bounds(api, member, good, bad) -> None:
    for value in good:
        assert refused(api, **{member: value}).status == 201, value
    for value in bad:
        answer = refused(api, **{member: value})
        assert (answer.status, answer["code"], answer["field"]) == (400, "invalid_request", member), value


def test_an_unreachable_state_is_named(api) -> None:
    answer = refused(api, states=["a", "lost", "z"], transitions={"a": ["z"]}, final=["z"])
    assert answer.status == 400
    assert "'lost'" in answer["error"]


def test_a_misspelt_member_is_named_with_the_nearest_known_one(api) -> None:
    answer = refused(api, ttl_second=60)
    assert (answer.status, answer["field"]) == (400, "ttl_second")
    assert '"ttl_seconds"' in answer["error"]


def test_the_effective_machine_is_answered_and_kept(api) -> None:
    made = api.post(
        PATH,
        payload=1,
        states=["draft", "review", "fix", "ok", "no"],
        final=["ok", "no"],
        transitions={"review": ["no", "ok"], "ok": []},
        permissions={"ok": "receiver"},
    )
    effective = {
        "draft": ["review", "fix", "ok", "no"],
        "review": ["no", "ok"],
        "fix": ["ok", "no"],
        "ok": [],
        "no": [],
    }
    assert (made.status, made["transitions"], made["final"]) == (201, effective, ["ok", "no"])
    read = look(api, Made(made["handoff_id"], made["owner_token"], made["receiver_token"]))
    assert (read["transitions"], read["permissions"]) == (effective, {"ok": "receiver"})


# ------------------------------------------------------------------------------------------------ creation, repeated


def test_a_creation_sent_again_answers_the_same_handoff_as_it_is_now(server, api) -> None:
    mine = own_tokens("r")
    first = api.post(PATH, payload={"a": 1}, title="t", **mine)
    made = Made(first["handoff_id"], mine["owner_token"], mine["receiver_token"])
    assert "repeated" not in first.body
    move(api, made, "working", "offered")
    spelled = ["offered", "accepted", "working", "done", "failed", "returned"]
    again = api.post(PATH, **mine, title="t", payload={"a": 1}, states=spelled, final=spelled[3:], ttl_seconds=86_400)
    assert again.status == 201
    assert again.body == first.body | {
        "repeated": True,
        "state": "working",
        "version": 2,
        "seconds_left": again["seconds_left"],
    }


@pytest.mark.parametrize("change", [{"payload": {"a": 2}}, {"title": "u"}, {"note": "n"}, {"ttl_seconds": 60}])
def test_the_same_nonce_and_token_with_other_content_is_a_conflict(api, change) -> None:
    mine = own_tokens("c")
    content = {"payload": {"a": 1}, "title": "t"}
    assert api.post(PATH, **content, **mine).status == 201
    answer = api.post(PATH, **(content | change), **mine)
    assert (answer.status, answer["code"]) == (409, "nonce_conflict")


@pytest.mark.parametrize("absent", ["nonce", "owner_token", "receiver_token"])
def test_nonce_and_both_tokens_come_together_or_not_at_all(api, absent) -> None:
    mine = own_tokens("a")
    del mine[absent]
    assert (refused(api, **mine).status, refused(api, **mine)["field"]) == (400, absent)


# ------------------------------------------------------------------------------------------------------------ reading


def test_a_read_has_exactly_the_members_of_the_page(api) -> None:
    made = make(api, note="first", title="t", audience="person", payload={"a": 1})
    move(api, made, "accepted", "offered", note="second")
    read = look(api, made)
    assert set(read.body) == {
        *("ok", "handoff_id", "state", "ended", "version", "role", "states", "final", "transitions", "allowed"),
        *("payload", "note", "title", "audience", "history", "created_at", "created_at_timestamp"),
        *("expires_at", "expires_at_timestamp", "seconds_left"),
    }
    assert (read["role"], look(api, made, made.receiver)["role"]) == ("owner", "receiver")
    assert (read["note"], read["title"], read["audience"], read["payload"]) == ("first", "t", "person", {"a": 1})
    one, two = read["history"]
    assert set(one) == set(two) == {"state", "from", "by", "at", "at_timestamp", "note"}
    assert (one["state"], one["from"], one["by"], one["note"]) == ("offered", None, "owner", "first")
    assert (two["state"], two["from"], two["by"], two["note"]) == ("accepted", "offered", "receiver", "second")
    assert read["allowed"] == ["working", "done", "failed", "returned"]


def test_the_etag_is_the_version_and_the_current_one_is_304(api) -> None:
    made = make(api)
    assert look(api, made).headers["etag"] == '"1"'
    same = look(api, made, If_None_Match='"1"')
    assert (same.status, same.raw, same.headers["etag"]) == (304, b"", '"1"')
    for header in ("*", 'W/"1"', '"7", "1"'):
        assert look(api, made, If_None_Match=header).status == 304
    for header in ('"2"', '"01"', "1", '"11"'):
        assert look(api, made, If_None_Match=header).status == 200
    move(api, made, "done", "offered")
    changed = look(api, made, If_None_Match='"1"')
    assert (changed.status, changed.headers["etag"], changed["ended"]) == (200, '"2"', True)
    assert look(api, made, "wrong", If_None_Match='"2"').status == 404


def test_reading_in_any_way_changes_nothing(api) -> None:
    made = make(api)
    for method in ("GET", "HEAD", "OPTIONS"):
        for path in ("", "/accepted", "/wait/0", "/wait", "/stream"):
            api.send(method, made.path + path, None, bearer(made.receiver))
    assert (look(api, made)["version"], look(api, made)["state"]) == (1, "offered")


# ---------------------------------------------------------------------------------------------------- who may, and how


def test_unknown_and_wrong_are_the_same_bytes_on_every_route(api) -> None:
    made, other = make(api), make(api)
    known = [
        (made.path, other.owner),
        (made.path, "x"),
        (made.path, made.owner + "a"),
        (made.path, "hrecv_" + made.owner[7:]),
        (f"{PATH}/{UNKNOWN}", made.owner),
        (f"{PATH}/{made.name.upper()}", made.owner),
        (f"{PATH}/{made.name}0", made.owner),
        (f"{PATH}/{made.name[:31]}", made.owner),
        (f"{PATH}/%00", made.owner),
        (f"{PATH}/%C3%A9", made.owner),
    ]
    seen = set()
    for path, token in known:
        for answer in (
            api.get(path, bearer(token)),
            api.get(f"{path}/wait/25", bearer(token)),
            api.post(f"{path}/accepted", headers=bearer(token), **{"from": "offered"}),
            api.post(f"{path}/nonsense", headers=bearer(token), **{"from": "nonsense"}),
        ):
            varying = {"x-request-id", "date"}
            seen.add((answer.status, answer.raw, str({k: v for k, v in answer.headers.items() if k not in varying})))
    assert len(seen) == 1
    assert next(iter(seen))[0] == 404


def test_without_a_token_it_is_401_whether_the_handoff_exists_or_not(api) -> None:
    made = make(api)
    bodies = set()
    for path in (made.path, f"{PATH}/{UNKNOWN}", f"{PATH}/nonsense"):
        for headers in ({}, {"Authorization": "Basic x"}, {"Authorization": "Bearer"}, {"Authorization": "Bearer é"}):
            answer = api.get(path, {k: v.encode().decode("latin-1") for k, v in headers.items()})
            assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer")
            bodies.add(answer.raw)
    assert len(bodies) == 1
    assert api.get(made.path, {"Authorization": f"bEARER {made.owner}"}).status == 200


@pytest.mark.parametrize("query", ["?token=x", "?", "?wait=1"])
def test_no_query_is_taken(api, query) -> None:
    made = make(api)
    for answer in (
        api.get(made.path + query, bearer(made.owner)),
        api.get(f"{made.path}/wait/0{query}", bearer(made.owner)),
        api.post(f"{made.path}/accepted{query}", headers=bearer(made.owner), **{"from": "offered"}),
        api.post(PATH + query, payload=1),
    ):
        assert (answer.status, answer.body.get("code")) == (400, "query_not_allowed") or query == "?"
    assert look(api, made)["version"] == (2 if query == "?" else 1)


@pytest.mark.parametrize("name", ["wait", "stream"])
def test_posting_to_the_name_of_a_route_is_405_and_never_a_move(api, name) -> None:
    made = make(api)
    answer = api.post(f"{made.path}/{name}", headers=bearer(made.owner), **{"from": "offered"})
    assert (answer.status, answer["code"]) == (405, "method_not_allowed")
    assert "GET" in answer.headers["allow"]
    assert look(api, made)["version"] == 1


# ------------------------------------------------------------------------------------------------------------- moving


def test_a_move_has_exactly_the_members_of_the_page(api) -> None:
    made = make(api)
    answer = move(api, made, "accepted", "offered", nonce="n", note="mine")
    assert answer.status == 200
    assert set(answer.body) == {
        *("ok", "state", "previous", "by", "version", "ended", "changed_at", "changed_at_timestamp"),
        *("history_length", "repeated", "current_state", "current_version", "current_ended"),
    }
    facts = {name: answer[name] for name in ("state", "previous", "by", "version", "ended", "history_length")}
    assert facts == {
        "state": "accepted",
        "previous": "offered",
        "by": "receiver",
        "version": 2,
        "ended": False,
        "history_length": 2,
    }
    assert (answer["repeated"], answer["current_version"]) == (False, 2)


def test_a_repeated_move_gets_its_own_answer_after_the_handoff_moved_on_and_ended(api) -> None:
    made = make(api)
    first = move(api, made, "accepted", "offered", nonce="n", note="mine")
    move(api, made, "working", "accepted", token=made.owner, nonce="n")
    ended = move(api, made, "done", "working")
    assert (ended["ended"], ended["current_ended"]) == (True, True)
    again = move(api, made, "accepted", "offered", nonce="n", note="mine")
    live = {"current_state": "done", "current_version": 4, "current_ended": True}
    assert (again.status, again.body) == (200, first.body | live | {"repeated": True})
    owners = move(api, made, "working", "accepted", token=made.owner, nonce="n")
    assert (owners["by"], owners["repeated"], owners["version"]) == ("owner", True, 3)
    assert len(look(api, made)["history"]) == 4


@pytest.mark.parametrize(
    ("to", "members"),
    [
        ("working", {"from": "offered", "note": "mine"}),
        ("accepted", {"from": "working", "note": "mine"}),
        ("accepted", {"from": "offered", "note": "other"}),
        ("accepted", {"from": "offered"}),
        ("undeclared", {"from": "undeclared"}),
    ],
)
def test_a_nonce_with_anything_else_different_is_a_conflict(api, to, members) -> None:
    made = make(api)
    move(api, made, "accepted", "offered", nonce="n", note="mine")
    answer = api.post(f"{made.path}/{to}", headers=bearer(made.receiver), nonce="n", **members)
    assert (answer.status, answer["code"]) == (409, "nonce_conflict")
    assert len(look(api, made)["history"]) == 2


@pytest.mark.parametrize(
    ("to", "expected", "status", "code"),
    [
        ("undeclared", "offered", 409, "unknown_state"),
        ("undeclared", "nonsense", 409, "unknown_state"),
        ("done", "offered", 409, "state_mismatch"),
        ("done", "nonsense", 409, "state_mismatch"),
        ("offered", "accepted", 409, "transition_not_allowed"),
        ("accepted", "accepted", 409, "transition_not_allowed"),
        ("returned", "accepted", 403, "move_not_permitted"),
    ],
)
def test_a_refused_move_tells_the_truth_records_nothing_and_leaves_its_nonce_free(
    api, to, expected, status, code
) -> None:
    made = make(api, permissions={"returned": "owner"})
    move(api, made, "accepted", "offered")
    before = look(api, made)
    answer = move(api, made, to, expected, nonce="n")
    assert (answer.status, answer["ok"], answer["code"]) == (status, False, code)
    assert (answer["current_state"], answer["current_version"], answer["current_ended"]) == ("accepted", 2, False)
    assert answer["allowed"] == ["working", "done", "failed"]
    assert ("states" in answer.body) == (code == "unknown_state")
    after = look(api, made)
    assert after.body | {"seconds_left": 0} == before.body | {"seconds_left": 0}
    assert move(api, made, "working", "accepted", nonce="n").status == 200


def test_from_a_final_state_nothing_is_allowed(api) -> None:
    made = make(api)
    move(api, made, "failed", "offered")
    answer = move(api, made, "returned", "failed")
    assert (answer.status, answer["code"], answer["allowed"]) == (409, "transition_not_allowed", [])
    assert answer["current_ended"] is True


def test_a_permission_is_for_one_token_and_shows_in_allowed(api) -> None:
    made = make(
        api,
        states=["asked", "approved", "refused"],
        final=["approved", "refused"],
        permissions={"approved": "receiver"},
    )
    assert look(api, made)["allowed"] == ["refused"]
    assert look(api, made, made.receiver)["allowed"] == ["approved", "refused"]
    assert move(api, made, "approved", "asked", token=made.owner).status == 403
    assert move(api, made, "approved", "asked").status == 200


@pytest.mark.parametrize("state", ["Accepted", "a" * 33, "1a", "a-b", "a%20b", "%C3%A9", "a%0A", "..a"])
def test_a_target_that_is_no_name_is_400(api, state) -> None:
    made = make(api)
    answer = api.post(f"{made.path}/{state}", headers=bearer(made.owner), **{"from": "offered"})
    assert (answer.status, answer["code"], answer["field"]) == (400, "invalid_request", "state")


@pytest.mark.parametrize(
    ("members", "field"),
    [
        ({}, "from"),
        ({"from": "A"}, "from"),
        ({"from": "a" * 33}, "from"),
        ({"from": None}, "from"),
        ({"from": "offered", "nonce": ""}, "nonce"),
        ({"from": "offered", "nonce": "x" * 65}, "nonce"),
        ({"from": "offered", "nonce": "a\n"}, "nonce"),
        ({"from": "offered", "note": ""}, "note"),
        ({"from": "offered", "note": "x" * 501}, "note"),
        ({"from": "offered", "token": "x"}, "token"),
    ],
)
def test_a_move_with_a_bad_member_names_it(api, members, field) -> None:
    made = make(api)
    answer = api.post(f"{made.path}/accepted", headers=bearer(made.owner), **members)
    assert (answer.status, answer["code"], answer["field"]) == (400, "invalid_request", field)
    assert look(api, made)["version"] == 1


def test_a_note_of_500_and_a_nonce_of_64_are_taken(api) -> None:
    made = make(api)
    assert move(api, made, "accepted", "offered", nonce="x" * 64, note="é" * 500).status == 200
    assert look(api, made)["history"][1]["note"] == "é" * 500


# ---------------------------------------------------------------------------------------------------------- waiting


@pytest.mark.parametrize("seconds", ["", "-1", "+1", "01", "1.0", "1e1", "x", "%C2%B2", "%EF%BC%91", "1_0", "%201"])
def test_seconds_that_are_no_plain_number_are_refused(api, seconds) -> None:
    made = make(api)
    answer = wait(api, made, seconds)
    assert answer.status == (404 if seconds == "" else 400)
    assert answer["code"] == ("unknown_route" if seconds == "" else "invalid_request")
    assert api.get(f"{made.path}/wait", bearer(made.owner)).status == 400


def test_a_wait_adds_exactly_three_members_to_a_read(api) -> None:
    made = make(api)
    read = look(api, made)
    answer = wait(api, made, 0)
    assert (answer.status, answer.headers["etag"]) == (200, '"1"')
    assert set(answer.body) - set(read.body) == {"changed", "wait_reason", "waited_seconds"}
    assert (answer["changed"], answer["wait_reason"]) == (False, "timeout")
    assert isinstance(answer["waited_seconds"], float)
    began = time.monotonic()
    one = wait(api, made, 1)
    assert (one["wait_reason"], one["changed"]) == ("timeout", False)
    assert 1.0 <= one["waited_seconds"] <= time.monotonic() - began + 0.1


@pytest.mark.parametrize("known", [0, 1, 3, "abc", 99_999_999_999_999])
def test_a_baseline_that_differs_is_answered_at_once_and_never_304(api, known) -> None:
    made = make(api)
    move(api, made, "accepted", "offered")
    answer = wait(api, made, 25, known=known)
    assert (answer.status, answer["changed"], answer["wait_reason"], answer["version"]) == (200, True, "changed", 2)
    assert answer["waited_seconds"] < 10


def test_a_baseline_that_is_no_tag_is_refused(api) -> None:
    made = make(api)
    answer = api.get(f"{made.path}/wait/25", bearer(made.owner, If_None_Match="1"))
    assert (answer.status, answer["field"]) == (400, "If-None-Match")


def test_an_ended_handoff_returns_at_once(api) -> None:
    made = make(api)
    move(api, made, "done", "offered")
    for known, changed in ((None, False), (2, False), (1, True)):
        answer = wait(api, made, 25, known=known)
        assert (answer["wait_reason"], answer["changed"], answer["ended"]) == ("ended", changed, True)
        assert answer["waited_seconds"] < 10


# ------------------------------------------------------------------------------------------------------ life and limits


def test_an_expired_handoff_is_410_to_its_tokens_then_404() -> None:
    environment = {"FENCEPOST_SWEEP_SECONDS": "0.2"}
    with RunningServer(environment=environment) as server, Api(server.port) as api:
        made = make(api, ttl_seconds=60)
        mine: dict[str, Any] = own_tokens("k")
        kept = make(api, ttl_seconds=61, **mine)
        move(api, made, "accepted", "offered", nonce="n")
        server.set_clock(58)
        assert look(api, made)["seconds_left"] <= 2
        server.set_clock(62)
        for answer in (
            look(api, kept),
            wait(api, kept, 25),
            move(api, kept, "accepted", "offered"),
            move(api, kept, "undeclared", "offered"),
            look(api, kept, If_None_Match='"1"'),
        ):
            assert (answer.status, answer["code"], answer["current_state"]) == (410, "expired", "offered")
        assert look(api, kept, "wrong").status == 404
        until = time.monotonic() + 20
        while look(api, made).status != 404:
            assert time.monotonic() < until
            time.sleep(0.05)
        assert move(api, made, "accepted", "offered", nonce="n").status == 404
        again = api.post(PATH, payload={"n": 1}, ttl_seconds=61, **mine)
        assert (again.status, again["repeated"], again["seconds_left"]) == (201, True, 0)
        server.set_clock(86_402)
        until = time.monotonic() + 20
        while look(api, kept).status != 404:
            assert time.monotonic() < until
            time.sleep(0.05)


def test_the_end_never_moves(server, api) -> None:
    made = make(api, ttl_seconds=3_600)
    end = look(api, made)["expires_at_timestamp"]
    advance(server, 10)
    move(api, made, "accepted", "offered")
    wait(api, made, 0)
    assert look(api, made)["expires_at_timestamp"] == end


def test_past_the_live_limit_a_creation_is_503_until_the_soonest_expires() -> None:
    with RunningServer(environment={"FENCEPOST_LIMIT_LIVE_HANDOFFS": "2"}) as server, Api(server.port) as api:
        make(api, ttl_seconds=60)
        make(api)
        full = api.post(PATH, payload=1)
        assert (full.status, full["code"]) == (503, "full")
        assert 1 <= int(full.headers["retry-after"]) == full["retry_after_seconds"] <= 60
        server.set_clock(60)
        make(api)
        assert api.post(PATH, payload=1).status == 503


def test_past_the_daily_limit_an_address_creates_no_more_and_a_repeat_is_not_counted() -> None:
    environment = {"FENCEPOST_LIMIT_HANDOFFS_PER_DAY": "2", "FENCEPOST_LIMITS": "on"}
    with RunningServer(environment=environment) as server, Api(server.port) as api:
        mine: dict[str, Any] = own_tokens("d")
        for _ in range(3):
            assert api.post(PATH, payload=1, **mine).status == 201
        make(api)
        spent = api.post(PATH, payload=1)
        assert (spent.status, spent["code"]) == (429, "rate_limited")
        assert 1 <= int(spent.headers["retry-after"]) <= 86_400
        assert api.post(PATH, payload=1, **mine)["repeated"] is True
        server.restart()
        api.close()
        assert api.post(PATH, payload=1).status == 429
        server.set_clock(86_400)
        make(api)


# ---------------------------------------------------------------------------------------------------------- notify_url


@pytest.mark.parametrize("url", ["http://127.1/", "ftp://example.com", "http://u@example.com", "http://example.com:22"])
def test_a_url_that_no_webhook_may_go_to_is_refused(api, url) -> None:
    answer = refused(api, notify_url=url)
    assert (answer.status, answer["code"]) == (400, "notify_url_refused")


def test_a_notify_secret_belongs_to_the_handoff_and_is_shown_only_at_creation(api) -> None:
    mine: dict[str, Any] = own_tokens("w")
    made = api.post(PATH, payload=1, notify_url="https://example.com/hook", **mine)
    assert made["notify_secret"].startswith("whsec_")
    assert (
        api.post(PATH, payload=1, notify_url="https://example.com/hook", **mine)["notify_secret"]
        == made["notify_secret"]
    )
    other = api.post(PATH, payload=1, notify_url="https://example.com/hook")
    assert other["notify_secret"] != made["notify_secret"]
    read = look(api, Made(made["handoff_id"], made["owner_token"], made["receiver_token"]))
    assert "notify" not in read.raw.decode()


def test_no_token_is_written_down(server, api) -> None:
    made = make(api, note="marker-note")
    move(api, made, "accepted", "offered")
    api.get(f"{made.path}?token={made.owner}", bearer(made.owner))
    written = server.stdout + server.stderr
    for token in (made.owner, made.receiver):
        assert token not in written
        for file in server.data_dir.rglob("*"):
            if file.is_file():
                assert token.encode() not in file.read_bytes(), file
    assert "marker-note" not in written


def test_numbers_of_a_payload_are_never_turned_into_floats(api) -> None:
    text = '{"id":3544790567247868102,"x":0.1000000000000000055,"y":1E+2}'
    created = api.text(PATH, f'{{"payload":{text}}}')
    made = Made(created["handoff_id"], created["owner_token"], created["receiver_token"])
    assert text.encode() in look(api, made).raw
    assert json.loads(look(api, made).raw)["payload"]["id"] == 3544790567247868102
