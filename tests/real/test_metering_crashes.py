"""A server killed anywhere between a debit and its claim: both are there afterwards, or neither."""

import http.client
from collections.abc import Iterator

import pytest

from tests.real.oncecalls import Once, fresh
from tests.real.server import ENGINES, RunningServer
from tests.real.test_metering_rows import METERED, balance, grant
from tests.real.test_once_crashes import restart_after_kill

pytestmark = pytest.mark.real

NEITHER = ("after-lock", "after-decide", "before-debit", "before-commit")


@pytest.fixture(params=ENGINES)
def server(request: pytest.FixtureRequest) -> Iterator[RunningServer]:
    with RunningServer(engine=request.param, environment=METERED) as running:
        yield running


def test_killed_at_any_failpoint_a_claim_and_its_debit_are_both_there_or_neither(server: RunningServer) -> None:
    credit = grant(server, "1")
    with Once(server.port) as once:
        once.claim("founding", credit_token=credit)
    calls = 1
    for point in (*NEITHER, "after-commit"):
        who = fresh("clm_")
        server.failpoint(f"{point} kill")
        with Once(server.port, token=once.token) as killed, pytest.raises((OSError, http.client.HTTPException)):
            killed.claim(point, credit_token=credit, claim_token=who)
        server.failpoint()
        restart_after_kill(server)
        with Once(server.port, token=once.token) as again:
            calls += point not in NEITHER
            assert again.once("status", point)["status"] == ("free" if point in NEITHER else "held")
            assert balance(again, credit)["calls"] == calls
            answer = again.claim(point, credit_token=credit, claim_token=who)
            calls += point in NEITHER
            assert answer["status"] == "claimed"
            assert ("repeated" in answer.body) is (point not in NEITHER)
            held = balance(again, credit)
            assert (held["calls"], held["spent_usd"]) == (calls, f"0.{calls:02d}0000")


def test_a_first_claim_killed_before_its_commit_owns_nothing_and_paid_nothing(server: RunningServer) -> None:
    credit = grant(server, "1")
    server.failpoint("before-debit kill")
    with Once(server.port) as once, pytest.raises((OSError, http.client.HTTPException)):
        once.claim(credit_token=credit)
    server.failpoint()
    restart_after_kill(server)
    with Once(server.port) as once:
        assert balance(once, credit)["calls"] == 0
        assert "namespace_token" in once.claim(credit_token=credit).body
