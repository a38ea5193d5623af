"""/metrics of a server that has done a little of everything: it parses, is documented, and names nobody."""

import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from app.wire.codes import Code
from tests.real import handoffs
from tests.real.api import V1, Api, open_request
from tests.real.server import ENGINES, RunningServer

pytestmark = pytest.mark.real
PAGE = Path(__file__).resolve().parents[2] / "docs" / "metrics.md"
NAMESPACE = f"ns_{handoffs.BODY}"
STATUSES = {"ok", "held", "released", "completed", "free", "claimed", "lost"}
Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


@pytest.fixture(params=ENGINES, scope="module")
def busy(request: pytest.FixtureRequest) -> Iterator[RunningServer]:
    """A server on which leases, handoffs, waits and mistakes were made."""
    with RunningServer(engine=request.param, environment={"FENCEPOST_SWEEP_SECONDS": "0.2"}) as server:
        with Api(server.port) as api:
            grant = api.post(f"{V1}/lease/acquire", namespace=NAMESPACE, key="invoice-4711", ttl_seconds=60)
            assert grant.status == 201, grant.raw
            api.post(f"{V1}/lease/acquire", namespace=NAMESPACE, key="invoice-4711", ttl_seconds=60)
            made = handoffs.make(api)
            handoffs.wait(api, made, 1, known=0)
            api.get("/own_secret/path")
            api.send("BREW", f"{V1}/lease/acquire")
        yield server


def scrape(server: RunningServer) -> tuple[str, Samples]:
    status, text = server.get("/metrics")
    assert status == 200
    said = text.decode("utf-8")
    samples: Samples = {}
    for family in text_string_to_metric_families(said):
        for sample in family.samples:
            samples[sample.name, tuple(sorted(sample.labels.items()))] = sample.value
    return said, samples


def test_a_scrape_parses_and_every_metric_is_told(busy: RunningServer) -> None:
    said, samples = scrape(busy)
    told = set(re.findall(r"`([a-z_]+)(?=[`{])", PAGE.read_text(encoding="utf-8")))
    names = {re.sub(r"_(bucket|sum|count)$", "", name) for name, _ in samples}
    assert {name for name in names if name not in told and not name.startswith("python_info")} == set()
    assert all(line.startswith("#") or " " in line for line in said.splitlines())


def test_every_metric_that_is_told_exists(busy: RunningServer) -> None:
    said, _ = scrape(busy)
    listed = re.findall(r"^# TYPE ([a-z_]+) ", said, flags=re.MULTILINE)
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    if 'engine="postgresql"' in said:
        rows = [row for row in rows if "(SQLite)" not in row]
    told = [name for row in rows for name in re.findall(r"`([a-z_]+)`", row.split(" | ")[0])]
    assert set(told) - set(listed) == set()


def test_what_happened_is_counted(busy: RunningServer) -> None:
    _, samples = scrape(busy)

    def requests(**labels: str) -> float:
        return samples.get(("fencepost_requests_total", tuple(sorted(labels.items()))), 0.0)

    acquire = {"method": "POST", "route": f"{V1}/lease/acquire"}
    assert requests(**acquire, status="201", outcome="held") == 1
    assert requests(**acquire, status="409", outcome="lease_held") == 1
    assert requests(method="GET", route="unknown", status="404", outcome="unknown_route") == 1
    assert requests(method="other", route="unknown", status="405", outcome="method_not_allowed") == 1
    assert samples["fencepost_store_commit_seconds_count", ()] >= 2
    assert samples["fencepost_limit", (("name", "live_handoffs"),)] == 4096
    assert samples["fencepost_seats_taken", (("use", "wait"),)] == 0
    assert sum(value for (name, _), value in samples.items() if name == "fencepost_not_ready") == 0


def test_no_label_names_anybody(busy: RunningServer) -> None:
    said, samples = scrape(busy)
    for secret in ("invoice-4711", handoffs.BODY, "127.0.0.1", "BREW"):
        assert secret not in said
    assert not re.search(r"\b(own|howner|hrecv|ns)_", said)
    values = {(name, value) for _, labels in samples for name, value in labels}
    assert {value for name, value in values if name == "outcome"} <= STATUSES | set(Code)
    assert all(re.fullmatch(r"[\w./:<>+-]{0,60}", value) for _, value in values)
    assert not re.search(r"[0-9a-f]{32}", said)


def test_a_woken_wait_is_measured(start_server: Callable[..., RunningServer]) -> None:
    server = start_server()
    with Api(server.port) as api:
        made = handoffs.make(api)
        with handoffs.waiting(server, made):
            until_waiting(server, 1)
            assert handoffs.move(api, made, "accepted", "offered").status == 200
    _, samples = scrape(server)
    assert samples["fencepost_wake_seconds_count", ()] >= 1
    assert samples["fencepost_wake_seconds_bucket", (("le", "10.0"),)] >= 1


def test_callers_who_hang_up_while_they_wait_are_no_fault_of_the_store(
    start_server: Callable[..., RunningServer],
) -> None:
    server = start_server()
    with Api(server.port) as api:
        key = {"namespace": NAMESPACE, "key": "k"}
        api.lease("acquire", **key)
        once: dict[str, Any] = {"namespace": "app", "action_key": "a"}
        once["namespace_token"] = api.post("/once-key", **once)["namespace_token"]
        tool = {"name": "acquire_lease", "arguments": {**key, "wait_seconds": 20}}
        for path, members in (
            (f"{V1}/lease/acquire", {**key, "wait_seconds": 20}),
            ("/once-key", {**once, "wait_seconds": 20}),
            ("/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": tool}),
        ):
            with open_request(server.port, path, json.dumps(members)):
                until_waiting(server, 1)
            until_waiting(server, 0)
    said, samples = scrape(server)
    hung_up = [dict(labels) for name, labels in samples if name.endswith("_total") and ("outcome", "hung_up") in labels]
    assert sorted((labels["route"], labels["status"]) for labels in hung_up) == [
        ("/mcp", "200"),
        ("/once-key", "499"),
        (f"{V1}/lease/acquire", "499"),
    ]
    assert 'status="503"' not in said
    assert '"warning"' not in server.stdout


def until_waiting(server: RunningServer, callers: int) -> None:
    deadline = time.monotonic() + 15
    while scrape(server)[1]["fencepost_seats_taken", (("use", "wait"),)] != callers:
        assert time.monotonic() < deadline


def test_only_get_is_taken_and_it_is_not_counted_by_the_limits(start_server: Callable[..., RunningServer]) -> None:
    server = start_server(environment={"FENCEPOST_LIMITS": "on", "FENCEPOST_LIMIT_REQUESTS_PER_DAY": "1"})
    with Api(server.port) as api:
        for _ in range(3):
            assert api.get("/metrics").status == 200
        assert api.post("/metrics").status == 405


def test_workers_that_share_an_address_say_which_one_answers(start_server: Callable[..., RunningServer]) -> None:
    server = start_server(engine="postgresql", environment={"FENCEPOST_WORKERS": "2"})
    workers = {str(pid) for pid in server.worker_pids}
    _, samples = scrape(server)
    met = {dict(labels).get("worker") for name, labels in samples if name.startswith("fencepost_")}
    assert len(met) == 1
    assert met <= workers
