"""Every row of the lease's page against a real server, at its boundaries."""

import json

import pytest

from tests.real.api import V1, Api
from tests.real.server import ENGINES, RunningServer

NS_ALPHABET = "abcdefghijklmnopqrstuvwxyz"


@pytest.fixture(scope="module", params=ENGINES)
def server(request):
    with RunningServer(engine=request.param) as running:
        yield running


@pytest.fixture
def api(server):
    server.set_clock(server_offset(server))
    with Api(server.port) as caller:
        yield caller


def server_offset(server) -> float:
    return getattr(server, "offset", 0.0)


def advance(server, seconds: float) -> None:
    """The clock only goes forward, so every test moves on from where the one before left it."""
    server.offset = server_offset(server) + seconds
    server.set_clock(server.offset)
    with Api(server.port) as caller:
        caller.get("/healthz")


@pytest.fixture
def ns(api):
    return api.lease("namespace")["namespace"]


def own(letter: str) -> str:
    return "own_" + (letter + NS_ALPHABET)[:26] + "0123456789ABCDEFG"


def test_a_namespace_is_minted_with_256_bits_and_every_one_is_new(api) -> None:
    one, two = api.lease("namespace"), api.send("POST", f"{V1}/lease/namespace")
    assert (one.status, two.status) == (201, 201)
    assert one["entropy_bits"] == 256
    assert one["namespace"].startswith("ns_")
    assert len(one["namespace"]) == 46
    assert one["namespace"] != two["namespace"]


def test_a_grant_has_exactly_the_members_of_the_page(api, ns) -> None:
    granted = api.lease("acquire", key="k", namespace=ns)
    assert granted.status == 201
    assert set(granted.body) == {
        *("ok", "status", "owner_token", "ttl_seconds", "fencing_token", "attempt"),
        *("lease_expires_at", "lease_expires_at_timestamp", "absolute_expires_at", "absolute_expires_at_timestamp"),
    }
    assert (granted["ok"], granted["status"], granted["ttl_seconds"], granted["attempt"]) == (True, "held", 60, 1)
    assert granted["absolute_expires_at_timestamp"] - granted["lease_expires_at_timestamp"] == 86_340
    again = api.post(f"{V1}/lease", key="k", namespace=ns)
    assert again.status == 409


@pytest.mark.parametrize("ttl", [1, 86_400])
def test_the_ends_of_the_ttl_range_are_granted(api, ns, ttl) -> None:
    assert api.lease("acquire", key=f"t{ttl}", namespace=ns, ttl_seconds=ttl)["ttl_seconds"] == ttl


@pytest.mark.parametrize("ttl", ["0", "-1", "86401", "60.0", '"60"', "true", "1e3", "9223372036854775808", "0.5", "[]"])
def test_a_ttl_outside_or_of_another_type_is_refused_and_changes_nothing(api, ns, ttl) -> None:
    refused = api.text(f"{V1}/lease/acquire", f'{{"key":"bad","namespace":"{ns}","ttl_seconds":{ttl}}}')
    assert (refused.status, refused["code"], refused["field"]) == (400, "invalid_request", "ttl_seconds")
    assert "1 to 86400" in refused["error"]
    assert api.lease("status", key="bad", namespace=ns)["status"] == "free"
    held = api.lease("acquire", key=f"r{ttl}"[:9].replace('"', "q").replace("[", "b").replace("]", "b"), namespace=ns)
    key = f"r{ttl}"[:9].replace('"', "q").replace("[", "b").replace("]", "b")
    body = f'{{"key":"{key}","namespace":"{ns}","owner_token":"{held["owner_token"]}","ttl_seconds":{ttl}}}'
    assert api.text(f"{V1}/lease/renew", body).status == 400
    after = api.lease("acquire", key=key, namespace=ns)
    assert after["lease_expires_at"] == held["lease_expires_at"]


@pytest.mark.parametrize(
    ("key", "status"),
    [
        ("k", 201),
        ("k" * 128, 201),
        ("k" * 129, 400),
        ("", 400),
        ("-._~:/@+=,", 201),
        ("a b", 400),
        ("é", 400),
        ("a%", 400),
    ],
)
def test_a_key_with_a_namespace_has_1_to_128_listed_characters(api, ns, key, status) -> None:
    assert api.lease("acquire", key=key, namespace=ns).status == status


@pytest.mark.parametrize(
    ("key", "status"),
    [
        ("abcdefgh" * 4, 201),
        ("abcdefgh" * 4 + "", 409),
        (("abcdefgh" * 4)[:31], 400),
        ("abcdefg" * 5, 400),
        ("abcdefgh" * 25, 201),
        ("abcdefgh" * 25 + "a", 400),
        ("abcdefgh" * 4 + " x", 400),
        ('!"#$%&()*+' * 4, 201),
    ],
)
def test_a_key_without_a_namespace_is_itself_a_secret(api, key, status) -> None:
    assert api.lease("acquire", key=key).status == status


@pytest.mark.parametrize(
    "bad", ["ns_", "ns_" + "a" * 43, "ns_" + NS_ALPHABET[:15] + "a" * 28, "xx_" + NS_ALPHABET * 2, 5, ""]
)
def test_a_namespace_that_could_be_guessed_is_refused(api, bad) -> None:
    refused = api.lease("acquire", key="k", namespace=bad)
    assert (refused.status, refused["field"]) == (400, "namespace")


def test_the_same_key_in_two_namespaces_and_without_one_is_three_leases(api, ns) -> None:
    key = "abcdefghijklmnopqrstuvwxyz0123456789"
    other = api.lease("namespace")["namespace"]
    grants = [api.lease("acquire", key=key, **where).status for where in ({}, {"namespace": ns}, {"namespace": other})]
    assert grants == [201, 201, 201]


@pytest.mark.parametrize(("fingerprint", "status"), [("f", 201), ("f" * 256, 201), ("f" * 257, 400), ("", 400)])
def test_a_fingerprint_has_1_to_256_characters(api, ns, fingerprint, status) -> None:
    assert api.lease("acquire", key=f"fp{len(fingerprint)}", namespace=ns, fingerprint=fingerprint).status == status


def test_a_held_answer_tells_how_long_and_by_which_fence(api, ns) -> None:
    granted = api.lease("acquire", key="h", namespace=ns, ttl_seconds=30, holder="worker 7")
    held = api.lease("acquire", key="h", namespace=ns)
    assert (held.status, held["ok"], held["status"], held["code"]) == (409, False, "held", "lease_held")
    assert held["error"] == "Lease is held"
    assert held["fencing_token"] == granted["fencing_token"]
    assert held["lease_expires_at"] == granted["lease_expires_at"]
    assert 1 <= held["retry_after_seconds"] <= 30
    assert held.headers["retry-after"] == str(held["retry_after_seconds"])
    assert held["holder"] == "worker 7"
    assert "held_since_at_timestamp" in held.body
    assert "owner_token" not in held.body


def test_a_conflict_shows_neither_owner_nor_result_nor_fence(api, ns) -> None:
    granted = api.lease("acquire", key="c", namespace=ns, fingerprint="one")
    for sent in ({"fingerprint": "two"}, {}):
        conflict = api.lease("acquire", key="c", namespace=ns, **sent)
        assert (conflict.status, conflict["status"], conflict["code"]) == (409, "conflict", "lease_conflict")
        assert conflict["absolute_expires_at"] == granted["absolute_expires_at"]
        assert not {"owner_token", "result", "fencing_token", "holder"} & set(conflict.body)
    api.lease("complete", key="c", namespace=ns, owner_token=granted["owner_token"], result=1)
    assert api.lease("acquire", key="c", namespace=ns, fingerprint="two")["status"] == "conflict"
    assert api.lease("acquire", key="c", namespace=ns, fingerprint="one")["status"] == "completed"


@pytest.mark.parametrize(
    "result",
    [
        "null",
        "false",
        "0",
        '""',
        "{}",
        "[]",
        "1e400",
        "1.10",
        "-0.0",
        '{"b":1,"a":[2,1]}',
        '"\\u00e9\\/\\u0000"',
        "9" * 400,
    ],
)
def test_a_result_comes_back_exactly_as_sent(api, ns, result) -> None:
    key = f"x{abs(hash(result))}"
    owner = api.lease("acquire", key=key, namespace=ns)["owner_token"]
    body = f'{{"key":"{key}","namespace":"{ns}","owner_token":"{owner}","result": {result} }}'
    done = api.text(f"{V1}/lease/complete", body)
    assert (done.status, done["status"]) == (200, "completed")
    later = api.lease("acquire", key=key, namespace=ns)
    assert later.status == 200
    for answer in (done, later):
        assert f'"result":{result},'.encode() in answer.raw
    assert "owner_token" not in later.body
    assert later["completed_at"] == done["completed_at"]


def test_a_result_is_required_and_null_is_one(api, ns) -> None:
    owner = api.lease("acquire", key="req", namespace=ns)["owner_token"]
    missing = api.lease("complete", key="req", namespace=ns, owner_token=owner)
    assert (missing.status, missing["field"]) == (400, "result")
    assert api.lease("complete", key="req", namespace=ns, owner_token=owner, result=None).status == 200


@pytest.mark.parametrize(("size", "status"), [(32_767, 200), (32_768, 200), (32_769, 413)])
def test_a_result_of_32_kib_is_kept_and_one_byte_more_leaves_the_lease_held(api, ns, size, status) -> None:
    key = f"size{size}"
    owner = api.lease("acquire", key=key, namespace=ns)["owner_token"]
    done = api.lease("complete", key=key, namespace=ns, owner_token=owner, result="x" * (size - 2))
    assert done.status == status
    if status == 413:
        assert done["code"] == "result_too_large"
        assert str(size) in json.dumps(done.body)
        assert api.lease("complete", key=key, namespace=ns, owner_token=owner, result="less").status == 200


def test_secret_members_of_a_result_are_redacted_before_they_are_stored(api, ns) -> None:
    owner = api.lease("acquire", key="red", namespace=ns)["owner_token"]
    result = {"total_tokens": 512, "Api-Key": 5, "nested": [{"dbPassword": "hunter2", "n": 1}]}
    done = api.lease("complete", key="red", namespace=ns, owner_token=owner, result=result)
    assert done["result"] == {
        "total_tokens": 512,
        "Api-Key": "[redacted]",
        "nested": [{"dbPassword": "[redacted]", "n": 1}],
    }
    repeated = api.lease("complete", key="red", namespace=ns, owner_token=owner, result=result)
    assert (repeated.status, repeated["repeated"]) == (200, True)


def test_renewal_replaces_the_end_and_keeps_the_fence(api, ns) -> None:
    granted = api.lease("acquire", key="rn", namespace=ns, ttl_seconds=100)
    renewed = api.lease("renew", key="rn", namespace=ns, owner_token=granted["owner_token"], ttl_seconds=10)
    assert (renewed.status, renewed["status"], renewed["ttl_seconds"]) == (200, "held", 10)
    assert renewed["fencing_token"] == granted["fencing_token"]
    assert renewed["absolute_expires_at"] == granted["absolute_expires_at"]
    assert renewed["lease_expires_at_timestamp"] <= granted["lease_expires_at_timestamp"] - 89
    assert "owner_token" not in renewed.body


@pytest.mark.parametrize("token", ["own_" + "x" * 43, "nonsense", "", "own_é", "\u0000"])
def test_a_wrong_owner_is_lost_and_nothing_changes(api, ns, token) -> None:
    key = "lost"
    api.lease("acquire", key=key, namespace=ns)
    before = api.lease("status", key=key, namespace=ns).body
    for route, more in (("renew", {}), ("release", {}), ("complete", {"result": 1})):
        lost = api.lease(route, key=key, namespace=ns, owner_token=token, **more)
        assert (lost.status, lost["status"], lost["code"]) == (409, "lost", "lease_lost")
        unknown = api.lease(route, key="never-seen", namespace=ns, owner_token=token, **more)
        assert unknown.raw == lost.raw
    after = api.lease("status", key=key, namespace=ns).body
    before.pop("retry_after_seconds"), after.pop("retry_after_seconds")
    assert after == before


def test_release_frees_at_once_and_can_be_repeated_until_the_next_grant(api, ns) -> None:
    first = api.lease("acquire", key="rel", namespace=ns)
    released = api.lease("release", key="rel", namespace=ns, owner_token=first["owner_token"])
    assert released.body == {"ok": True, "status": "released", "fencing_token": first["fencing_token"]}
    again = api.lease("release", key="rel", namespace=ns, owner_token=first["owner_token"])
    assert again.body == {**released.body, "repeated": True}
    second = api.lease("acquire", key="rel", namespace=ns)
    assert (second.status, second["attempt"]) == (201, 2)
    assert second["fencing_token"] > first["fencing_token"]
    assert second["absolute_expires_at"] == first["absolute_expires_at"]
    assert api.lease("release", key="rel", namespace=ns, owner_token=first["owner_token"]).status == 409


def test_a_completion_repeats_only_with_an_equal_result(api, ns) -> None:
    owner = api.lease("acquire", key="cr", namespace=ns)["owner_token"]
    first = api.lease("complete", key="cr", namespace=ns, owner_token=owner, result={"a": 1})
    again = api.lease("complete", key="cr", namespace=ns, owner_token=owner, result={"a": 1})
    assert again.body == {**first.body, "repeated": True}
    other = api.lease("complete", key="cr", namespace=ns, owner_token=owner, result={"a": 2})
    assert (other.status, other["status"], other["code"]) == (409, "lost", "already_completed")
    assert api.lease("acquire", key="cr", namespace=ns)["result"] == {"a": 1}


def test_an_acquire_with_the_callers_own_token_can_be_sent_again(api, ns) -> None:
    token = own("r")
    first = api.lease("acquire", key="own", namespace=ns, owner_token=token, ttl_seconds=50)
    again = api.lease("acquire", key="own", namespace=ns, owner_token=token, ttl_seconds=9)
    assert (first.status, again.status) == (201, 201)
    assert again.body == {**first.body, "repeated": True}
    assert api.lease("acquire", key="own", namespace=ns).status == 409
    api.lease("release", key="own", namespace=ns, owner_token=token)
    spent = api.lease("acquire", key="own", namespace=ns, owner_token=token)
    assert (spent.status, spent["status"], spent["code"]) == (409, "lost", "lease_lost")


def test_a_spent_token_is_told_the_result_of_a_completed_key(api, ns) -> None:
    token = own("s")
    api.lease("acquire", key="sp", namespace=ns, owner_token=token)
    api.lease("complete", key="sp", namespace=ns, owner_token=token, result=7)
    told = api.lease("acquire", key="sp", namespace=ns, owner_token=token)
    assert (told.status, told["status"], told["result"]) == (200, "completed", 7)


@pytest.mark.parametrize("bad", ["own_short", "own_" + "a" * 43, "nst_" + NS_ALPHABET * 2, "", 7])
def test_a_malformed_own_token_is_refused_on_acquire(api, ns, bad) -> None:
    refused = api.lease("acquire", key="mal", namespace=ns, owner_token=bad)
    assert (refused.status, refused["field"]) == (400, "owner_token")
    assert str(bad) not in refused["error"] or bad == ""


@pytest.mark.parametrize(("holder", "status"), [("h", 201), ("é" * 120, 201), ("h" * 121, 400), ("", 400)])
def test_a_holder_label_has_1_to_120_characters(api, ns, holder, status) -> None:
    assert api.lease("acquire", key=f"hl{len(holder)}", namespace=ns, holder=holder).status == status


def test_a_lease_lapses_at_its_end_and_the_old_owner_stays_lost(server, api, ns) -> None:
    first = api.lease("acquire", key="lapse", namespace=ns, ttl_seconds=600)
    advance(server, 590)
    assert api.lease("acquire", key="lapse", namespace=ns)["retry_after_seconds"] <= 10
    advance(server, 10)
    for route, more in (("renew", {}), ("release", {}), ("complete", {"result": 1})):
        lost = api.lease(route, key="lapse", namespace=ns, owner_token=first["owner_token"], **more)
        assert (lost.status, lost["code"]) == (409, "lease_lost")
    assert api.lease("verify", key="lapse", namespace=ns, fencing_token=first["fencing_token"])["fence"] == "ended"
    second = api.lease("acquire", key="lapse", namespace=ns)
    assert second["fencing_token"] > first["fencing_token"]
    assert second["absolute_expires_at"] == first["absolute_expires_at"]


def test_near_the_end_of_the_lifecycle_the_ttl_is_cut_and_the_end_never_moves(server, api, ns) -> None:
    first = api.lease("acquire", key="edge", namespace=ns, ttl_seconds=86_400)
    advance(server, 86_390)
    renewed = api.lease("renew", key="edge", namespace=ns, owner_token=first["owner_token"], ttl_seconds=86_400)
    assert renewed.status == 200
    assert 1 <= renewed["ttl_seconds"] <= 10
    assert renewed["absolute_expires_at"] == first["absolute_expires_at"]
    advance(server, 11)
    assert api.lease("renew", key="edge", namespace=ns, owner_token=first["owner_token"]).status == 409
    anew = api.lease("acquire", key="edge", namespace=ns, fingerprint="another")
    assert (anew.status, anew["attempt"]) == (201, 1)
    assert anew["fencing_token"] > first["fencing_token"]


def test_status_tells_a_stranger_no_more_than_it_may_know_and_makes_no_row(api, ns) -> None:
    assert api.lease("status", key="st", namespace=ns).body == {"ok": True, "status": "free", "attempt": 0}
    granted = api.lease("acquire", key="st", namespace=ns, holder="me")
    held = api.lease("status", key="st", namespace=ns)
    assert (held["status"], held["holder"], held["fencing_token"]) == ("held", "me", granted["fencing_token"])
    assert held["lease_expires_at"] == granted["lease_expires_at"]
    api.lease("complete", key="st", namespace=ns, owner_token=granted["owner_token"], result="secret stuff")
    done = api.lease("status", key="st", namespace=ns)
    assert done["status"] == "completed"
    assert "result" not in done.body
    assert "owner_token" not in done.body


def test_verify_tells_the_four_standings_of_a_fence(api, ns) -> None:
    def standing(fence: int) -> tuple[bool, str]:
        answer = api.lease("verify", key="v", namespace=ns, fencing_token=fence)
        return answer["current"], answer["fence"]

    first = api.lease("acquire", key="v", namespace=ns)
    assert standing(first["fencing_token"]) == (True, "current")
    assert standing(first["fencing_token"] + 1_000_000) == (False, "unknown")
    api.lease("release", key="v", namespace=ns, owner_token=first["owner_token"])
    assert standing(first["fencing_token"]) == (False, "ended")
    second = api.lease("acquire", key="v", namespace=ns)
    assert standing(first["fencing_token"]) == (False, "stale")
    assert standing(second["fencing_token"]) == (True, "current")


@pytest.mark.parametrize(("fence", "status"), [(0, 400), (1, 200), (2**53 - 1, 200), (2**53, 400), ("1", 400)])
def test_a_fence_is_a_whole_number_below_2_to_the_53(api, ns, fence, status) -> None:
    assert api.lease("verify", key="v", namespace=ns, fencing_token=fence).status == status


@pytest.mark.parametrize(("wait", "status"), [(0, 201), (25, 201), (26, 400), (-1, 400), ("1", 400), (1.0, 400)])
def test_a_waiting_time_is_0_to_25(api, ns, wait, status) -> None:
    assert api.lease("acquire", key=f"w{wait}", namespace=ns, wait_seconds=wait).status == status


def test_a_misspelt_member_is_named_with_the_nearest_known_one(api, ns) -> None:
    refused = api.lease("acquire", key="m", namespace=ns, fingerprnt="x")
    assert (refused.status, refused["field"]) == (400, "fingerprnt")
    assert 'did you mean "fingerprint"' in refused["error"]


def test_null_counts_as_absent_for_optional_members_only(api, ns) -> None:
    absent = dict.fromkeys(("ttl_seconds", "fingerprint", "owner_token", "wait_seconds", "holder"))
    assert api.lease("acquire", key="nul", namespace=ns, **absent)["ttl_seconds"] == 60
    assert api.lease("acquire", key=None, namespace=ns).status == 400
