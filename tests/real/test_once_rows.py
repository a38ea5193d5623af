"""Every row of the once-key contract on a real server, over HTTP."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.real.api import Answer
from tests.real.oncecalls import YEAR, Once, at_once, fresh
from tests.real.server import ENGINES, RunningServer

pytestmark = pytest.mark.real

CLAIM_MEMBERS = ["status", "namespace", "action_key", "claimed_at", "claimed_at_timestamp", "expires_at"]
CLAIM_MEMBERS += ["expires_at_timestamp", "claim_token", "fencing_token", "attempt", "receipt"]


@pytest.fixture(scope="module", params=ENGINES)
def server(request: pytest.FixtureRequest) -> Iterator[RunningServer]:
    with RunningServer(engine=request.param) as running:
        yield running


@pytest.fixture(scope="module")
def advance(server: RunningServer) -> Callable[[float], None]:
    """Moves the deciding clock on; it never goes back."""
    steps: list[float] = []

    def by(seconds: float) -> None:
        steps.append(seconds)
        server.set_clock(sum(steps))

    return by


@pytest.fixture
def once(server: RunningServer, request: pytest.FixtureRequest) -> Iterator[Once]:
    """A namespace of the test's own, owned."""
    with Once(server.port, namespace=request.node.name) as api:
        api.claim("founding", ttl=YEAR)
        yield api


def code(answer: Answer) -> tuple[int, str]:
    return answer.status, answer["code"]


def test_a_first_claim_founds_the_namespace_and_shows_its_token_once(server: RunningServer) -> None:
    with Once(server.port, namespace="fresh") as api:
        first = api.claim()
        assert list(first.body) == [*CLAIM_MEMBERS[:-1], "namespace_token", "note", "receipt"]
        assert (first["status"], first["attempt"], first["namespace"]) == ("claimed", 1, "fresh")
        assert "namespace_token" not in api.claim("other").body
        for wrong in (None, "", "nst_x", first["claim_token"], fresh("nst_")):
            with Once(server.port, namespace="fresh", token=wrong) as stranger:
                refused = stranger.claim()
                assert (refused["status"], refused["code"]) == ("forbidden", "forbidden")
                assert set(refused.body) == {"status", "namespace", "action_key", "error", "code", "fix", "receipt"}


def test_answers_say_what_every_answer_says(once: Once) -> None:
    answer = once.claim()
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["x-request-id"]
    assert "ok" not in answer.body


def test_a_leased_claim_and_who_comes_while_it_runs_and_after_it_lapsed(
    once: Once, advance: Callable[[float], None]
) -> None:
    first = once.claim(lease_ttl=600, ttl=6_000)
    assert first["lease_expires_at_timestamp"] - first["claimed_at_timestamp"] == 600
    assert first["expires_at_timestamp"] - first["claimed_at_timestamp"] == 6_000
    rival = once.claim()
    assert rival["status"] == "in_progress"
    assert 590 <= rival["retry_after"] <= 600
    assert rival.headers["retry-after"] == str(rival["retry_after"])
    same = ("claimed_at", "lease_expires_at", "expires_at")
    assert [rival[name] for name in same] == [first[name] for name in same]
    assert not {"result", "claim_token", "fencing_token"} & set(rival.body)
    advance(600)
    assert once.once("status")["status"] == "lapsed"
    second = once.claim(lease_ttl=60, ttl=YEAR)
    assert (second["status"], second["recovered"], second["attempt"]) == ("claimed", True, 2)
    assert second["expires_at"] == first["expires_at"]
    assert second["claimed_at_timestamp"] >= first["claimed_at_timestamp"] + 600
    assert second["fencing_token"] > first["fencing_token"]
    assert code(once.once("complete", claim_token=first["claim_token"], result=1)) == (409, "claim_lost")
    assert code(once.once("renew", claim_token=first["claim_token"], lease_ttl=9)) == (409, "claim_lost")
    assert code(once.once("release", claim_token=first["claim_token"])) == (409, "claim_lost")
    assert once.once("complete", claim_token=second["claim_token"], result=2)["status"] == "completed"
    late = once.once("complete", claim_token=first["claim_token"], result=1)
    assert (late.status, late["status"], late["result"]) == (200, "already_completed", 2)


def test_an_unleased_claim_is_held_and_shows_no_result_member(once: Once) -> None:
    first = once.claim(ttl=YEAR)
    assert "lease_expires_at" not in first.body
    rival = once.claim()
    assert rival["status"] == "held"
    assert YEAR - 60 < rival["retry_after"] <= YEAR
    assert rival.headers["retry-after"] == str(rival["retry_after"])
    assert set(rival.body) == {*CLAIM_MEMBERS, "retry_after"} - {"claim_token", "fencing_token", "attempt"}


def test_a_conflict_comes_before_everything_else_in_every_state(once: Once) -> None:
    once.claim(payload_sha256="AbC")
    once.claim("leased", payload_sha256="abc", lease_ttl=60)
    once.claim("done", payload_sha256="abc")
    once.once("complete", "done", result="secret")
    for action, status in (("charge-1042", "held"), ("leased", "in_progress"), ("done", "duplicate")):
        conflict = once.claim(action, payload_sha256="other")
        assert conflict["status"] == "conflict"
        assert set(conflict.body) == {*CLAIM_MEMBERS} - {"claim_token", "fencing_token", "attempt"}
        assert once.claim(action, payload_sha256="aBC")["status"] == status
        assert once.claim(action)["status"] == status


def test_a_repeat_by_the_caller_s_own_tokens_is_the_same_claim(server: RunningServer) -> None:
    mine, who = fresh("nst_"), fresh("clm_")
    with Once(server.port, namespace="repeats", token=mine) as api:
        first = api.claim(claim_token=who, lease_ttl=60)
        assert (first["namespace_token"], first["claim_token"]) == (mine, who)
        again = api.claim(claim_token=who, lease_ttl=60)
        assert again["repeated"] is True
        gone = {"namespace_token", "note", "receipt", "repeated"}
        expected = {name: value for name, value in first.body.items() if name not in gone}
        assert {name: value for name, value in again.body.items() if name not in gone} == expected
        assert api.claim(claim_token=fresh("clm_"))["status"] == "in_progress"


@pytest.mark.parametrize(
    ("sent", "has_result"),
    [(None, False), ("null", True), ("false", True), ("0", True), ('""', True), ("{}", True), ("1e2", True)],
)
def test_what_was_recorded_comes_back_as_sent(once: Once, sent: str | None, has_result: bool) -> None:
    once.claim()
    done = once.complete_raw(sent)
    told = f'"result":{sent or "null"},"has_result":{"true" if has_result else "false"},"receipt":'.encode()
    assert (done["status"], told in done.raw) == ("completed", True)
    assert told in once.complete_raw('"another"').raw
    duplicate = once.claim()
    assert (duplicate["status"], told in duplicate.raw) == ("duplicate", True)
    assert once.once("status")["has_result"] is has_result


@pytest.mark.parametrize(
    "spelled",
    [
        "1e400",
        "-0.0",
        "1.10",
        "12345678901234567890",
        "0.1000000000000000055",
        "9" * 5_000,
        '{"b":1,  "a":{"2":[ ],"1":"\\u0041"}}',
        '"\\u0000\\uffff\\ud83d\\ude00\uffff\U0001f600"',
    ],
)
def test_a_result_is_kept_to_the_byte(once: Once, spelled: str) -> None:
    once.claim()
    assert once.complete_raw(spelled).status == 200
    assert b'"result":' + spelled.encode() + b',"has_result":true' in once.claim().raw


@pytest.mark.parametrize("bad", ["NaN", "Infinity", "-Infinity", '"\\ud800"', "", "[" * 64 + "]" * 64])
def test_a_result_that_is_no_json_is_refused_and_the_claim_stays_open(once: Once, bad: str) -> None:
    once.claim()
    assert code(once.complete_raw(bad)) == (400, "invalid_json")
    assert once.once("status")["status"] == "held"


def test_a_result_has_at_most_16384_bytes_as_sent(once: Once) -> None:
    once.claim("exact")
    exact = '"' + "x" * 16_382 + '"'
    assert once.complete_raw(exact, "exact").status == 200
    assert exact.encode() in once.claim("exact").raw
    once.claim("over")
    over = once.complete_raw('"' + "x" * 16_383 + '"', "over")
    assert code(over) == (413, "result_too_large")
    assert (over["size_bytes"], over["limit_bytes"]) == (16_385, 16_384)
    assert once.once("status", "over")["status"] == "held"
    assert code(once.complete_raw('"' + "é" * 8_192 + '"', "over")) == (413, "result_too_large")
    assert once.complete_raw('"' + "é" * 8_191 + '"', "over")["status"] == "completed"
    again = once.complete_raw('"' + "x" * 20_000 + '"', "exact")
    assert (again["status"], exact.encode() in again.raw) == ("already_completed", True)


def test_completing_restarts_the_end(once: Once, advance: Callable[[float], None]) -> None:
    once.claim(ttl=60)
    done = once.once("complete", result=1, ttl=7_200)
    assert done["expires_at_timestamp"] - done["completed_at_timestamp"] == 7_200
    names = ["status", "namespace", "action_key", "completed_at", "completed_at_timestamp", "expires_at"]
    assert list(done.body) == [*names, "expires_at_timestamp", "result", "has_result", "receipt"]
    again = once.once("complete", result=2, ttl=1)
    assert again["status"] == "already_completed"
    same = ("completed_at", "expires_at", "result")
    assert [again[name] for name in same] == [done[name] for name in same]
    advance(7_100)
    assert once.claim()["status"] == "duplicate"
    advance(100)
    again = once.claim()
    assert (again["status"], again["attempt"]) == ("claimed", 1)


def test_release(once: Once) -> None:
    first = once.claim(lease_ttl=60, payload_sha256="a")
    released = once.once("release", claim_token=first["claim_token"])
    assert list(released.body) == ["status", "namespace", "action_key", "receipt"]
    assert released["status"] == "released"
    assert code(once.once("release")) == (404, "no_claim")
    second = once.claim(payload_sha256="b")
    assert (second["status"], second["attempt"], "recovered" in second.body) == ("claimed", 1, False)
    once.once("complete", result=1)
    refused = once.once("release")
    assert code(refused) == (409, "already_completed")
    assert refused["detail"]


def test_renew(once: Once) -> None:
    first = once.claim(lease_ttl=60, ttl=600)
    renewed = once.once("renew", claim_token=first["claim_token"], lease_ttl=500)
    assert (renewed.status, renewed["status"]) == (200, "claimed")
    assert renewed["lease_expires_at_timestamp"] >= first["lease_expires_at_timestamp"] + 400
    cut = once.once("renew", claim_token=first["claim_token"], lease_ttl=YEAR)
    assert cut["lease_expires_at"] == cut["expires_at"] == first["expires_at"]
    assert cut["fencing_token"] == first["fencing_token"]
    assert code(once.once("renew", claim_token=fresh("clm_"), lease_ttl=9)) == (409, "claim_lost")
    assert code(once.once("renew", "never", claim_token="x", lease_ttl=9)) == (404, "no_claim")
    unleased = once.claim("unleased")
    assert code(once.once("renew", "unleased", claim_token=unleased["claim_token"], lease_ttl=9)) == (409, "not_leased")
    once.once("complete", result=1)
    finished = once.once("renew", claim_token=first["claim_token"], lease_ttl=9)
    assert code(finished) == (409, "already_completed")


def test_status_says_where_it_stands_without_result_or_tokens(once: Once) -> None:
    free = once.once("status")
    assert list(free.body) == ["status", "namespace", "action_key", "has_result", "receipt"]
    assert free["status"] == "free"
    claimed = once.claim(lease_ttl=60)
    running = once.once("status")
    assert (running["status"], running["fencing_token"]) == ("in_progress", claimed["fencing_token"])
    once.once("complete", result="the-result")
    done = once.once("status")
    assert (done["status"], done["has_result"], done["attempt"]) == ("completed", True, 1)
    for answer in (free, running, done):
        assert not {"result", "claim_token", "namespace_token"} & set(answer.body)


def test_a_rotated_token_is_the_only_one(once: Once) -> None:
    old = once.token
    rotated = once.once("rotate-token")
    assert list(rotated.body) == ["status", "namespace", "namespace_token", "receipt"]
    assert rotated["status"] == "rotated"
    assert once.once("status").status == 404
    assert once.claim()["status"] == "forbidden"
    assert once.once("rotate-token", namespace_token=old).status == 404
    once.token = rotated["namespace_token"]
    assert once.claim()["status"] == "claimed"


ROUTES: dict[str, dict[str, Any]] = {
    "complete": {"result": 1},
    "release": {},
    "renew": {"claim_token": "clm_x", "lease_ttl": 5},
    "status": {},
    "rotate-token": {},
}


@pytest.mark.parametrize("route", ROUTES)
def test_a_wrong_token_a_missing_one_and_nobody_s_namespace_are_the_same_bytes(once: Once, route: str) -> None:
    once.claim()
    bodies = []
    unowned = "unowned-" + route
    for namespace in (once.namespace, unowned):
        for token in (None, "", "nst_x", fresh("nst_"), once.token if namespace == unowned else "wrong"):
            with Once(once.port, namespace=namespace, token=token) as stranger:
                answer = stranger.once(route, **ROUTES[route])
                assert answer.status == 404
                bodies.append(answer.raw)
    assert len(set(bodies)) == 1
    with Once(once.port, namespace=unowned) as api:
        assert api.once("").body["namespace_token"], "only a claim makes an owner"


def test_both_addresses_are_the_same_service(once: Once) -> None:
    with Once(once.port, once.namespace, once.token, prefix="/services/v1") as v1:
        assert v1.claim()["status"] == "claimed"
        assert once.claim()["status"] == "held"
        assert once.once("complete", result=1)["status"] == "completed"
        assert v1.claim()["status"] == "duplicate"


def test_malformed_input_is_400_and_names_the_member(once: Once) -> None:
    for member, bad in {"ttl": 0, "lease_ttl": YEAR + 1, "wait_seconds": 26, "claim_token": "clm_x"}.items():
        answer = once.once("", "bad", **{member: bad})
        assert (answer.status, answer["code"], answer["field"]) == (400, "invalid_request", member)
    assert once.once("status", "bad")["status"] == "free"
    assert once.post("/once-key?x=1", namespace="a", action_key="b")["code"] == "query_not_allowed"
    assert once.get("/once-key").status == 405
    large = json.dumps({"namespace": "a", "action_key": "b" * 33_000})
    assert once.text("/once-key", large).status == 413


def test_a_credit_token_is_accepted_and_ignored(once: Once) -> None:
    assert once.claim(credit_token="cred_x")["status"] == "claimed"


def test_of_a_hundred_parallel_first_claims_one_founds_and_wins(server: RunningServer) -> None:
    answers = at_once(server.port, 100, namespace="a hundred strangers", action_key="one")
    assert Counter(answer["status"] for answer in answers) == {"claimed": 1, "forbidden": 99}
    assert sum("namespace_token" in answer.body for answer in answers) == 1


@pytest.mark.parametrize(("lease", "refused"), [(None, "held"), (600, "in_progress")])
def test_of_a_hundred_parallel_holders_one_is_claimed(once: Once, lease: int | None, refused: str) -> None:
    answers = at_once(
        once.port, 100, namespace=once.namespace, action_key="one", namespace_token=once.token, lease_ttl=lease
    )
    assert Counter(answer["status"] for answer in answers) == {"claimed": 1, refused: 99}


def test_two_workers_of_one_database_let_one_claim_through() -> None:
    with RunningServer(engine="postgresql", environment={"FENCEPOST_WORKERS": "2"}) as server:
        first = at_once(server.port, 40, namespace="strangers", action_key="one")
        assert Counter(answer["status"] for answer in first) == {"claimed": 1, "forbidden": 39}
        (token,) = [answer["namespace_token"] for answer in first if "namespace_token" in answer.body]
        for action in ("two", "three"):
            answers = at_once(server.port, 40, namespace="strangers", action_key=action, namespace_token=token)
            assert Counter(answer["status"] for answer in answers) == {"claimed": 1, "held": 39}


def test_strong_names_can_be_demanded() -> None:
    with RunningServer(environment={"FENCEPOST_ONCE_STRONG_NAMES": "on"}) as strict, Once(strict.port) as api:
        refused = api.once("")
        assert code(refused) == (400, "weak_namespace")
        assert refused["suggestion"] in refused["fix"]
        with Once(strict.port, namespace=refused["suggestion"]) as strong:
            assert strong.claim()["status"] == "claimed"
