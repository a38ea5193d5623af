"""How often an operation asks PostgreSQL: what docs/scale.md counts with."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.clock import ManualClock
from app.push.deadlines import Deadlines
from app.push.hub import Hub
from app.push.line import Lines
from app.push.seats import Seats
from app.services.claim import Claims
from app.services.lease import Leases
from app.services.waiting import Waiting
from app.storage.postgres import PostgresEngine
from tests.real.cluster import shared_cluster
from tests.services.oncekeys import FakeCaller

pytestmark = pytest.mark.postgres

KEY: dict[str, Any] = {"key": "abcdefghijklmnopqrstuvwxyz0123456789", "namespace": None}
ONCE: dict[str, Any] = {"namespace": "billing", "action_key": "charge"}
SCALE = Path(__file__).resolve().parents[2] / "docs" / "scale.md"


@pytest.fixture
def engine() -> Iterator[PostgresEngine]:
    opened = PostgresEngine(shared_cluster().database(), deadline_seconds=30.0)
    yield opened
    opened.close()


@pytest.fixture
def waiting() -> Waiting:
    hub = Hub()
    return Waiting(Lines(hub), Deadlines(ManualClock(), hub), Seats(10), looks_first=True)


def documented() -> dict[str, int]:
    """The table of docs/scale.md: operation to trips."""
    rows = re.findall(r"^\| ([a-z, -]+) \| (\d) \|", SCALE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {name: int(trips) for name, trips in rows}


def test_every_operation_takes_the_trips_that_the_documentation_says(engine: PostgresEngine, waiting: Waiting) -> None:
    leases, claims, told = Leases(engine, waiting), Claims(engine, waiting), {}

    def count(name: str, call: Any) -> Any:
        before = engine.trips
        answer = call()
        told[name] = engine.trips - before
        return answer

    def acquire() -> Any:
        members: dict[str, Any] = {"fingerprint": None, "owner_token": None, "wait_seconds": 0, "holder": None}
        return leases.acquire(**KEY, **members, ttl_seconds=60, caller=FakeCaller())

    owner = count("acquire, granted", acquire).owner_token
    count("acquire, refused", acquire)
    count("acquire, refused again", acquire)
    count("renew", lambda: leases.renew(**KEY, owner_token=owner, ttl_seconds=60))
    count("lease status", lambda: leases.status(**KEY))
    count("lease verify", lambda: leases.verify(**KEY, fence=1))
    count("release", lambda: leases.release(**KEY, owner_token=owner))
    count("renew, lost", lambda: leases.renew(**KEY, owner_token=owner, ttl_seconds=60))

    def claim(token: str | None) -> Any:
        members: dict[str, Any] = {"payload_sha256": None, "ttl_seconds": 60, "lease_ttl_seconds": None}
        return claims.claim(
            **ONCE, **members, namespace_token=token, claim_token=None, wait_seconds=0, caller=FakeCaller()
        )

    first = claim(None)
    token = first.namespace_token
    ONCE["action_key"] = "another"
    again = count("claim", lambda: claim(token))
    members = {"namespace_token": token, "claim_token": again.claim_token}
    count("claim status", lambda: claims.status(**ONCE, namespace_token=token))
    count("claim complete", lambda: claims.complete(**ONCE, **members, result="1", ttl_seconds=60))
    assert told == {name: trips for name, trips in documented().items() if name in told}
    assert len(told) == 11
