"""The server under load and with a stuck disk, and what it leaves on disk."""

import http.client
import json
import random
import threading
import time
from pathlib import Path

import pytest

from tests.real.api import Api, Crowd
from tests.real.server import AS_SHIPPED, ENGINES, RunningServer

DOWN = (OSError, http.client.HTTPException)
TOKEN = "own_abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG"


def mixed_work(
    server: RunningServer, ns: str, seed: int, seconds: float, statuses: list[int], counts: list[int]
) -> None:
    rng = random.Random(seed)
    until = time.monotonic() + seconds
    with Api(server.port) as api:
        while time.monotonic() < until:
            key = f"k{rng.randrange(200)}"
            granted = api.lease("acquire", key=key, namespace=ns, ttl_seconds=30)
            statuses.append(granted.status)
            counts[seed] += 1
            if granted.status != 201:
                statuses.append(api.lease("status", key=key, namespace=ns).status)
                continue
            owner = granted["owner_token"]
            statuses.append(api.lease("renew", key=key, namespace=ns, owner_token=owner).status)
            statuses.append(api.lease("verify", key=key, namespace=ns, fencing_token=granted["fencing_token"]).status)
            statuses.append(api.lease("release", key=key, namespace=ns, owner_token=owner).status)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("seconds", [6, pytest.param(60, marks=pytest.mark.long)])
def test_64_mixed_clients_see_no_5xx_and_none_is_starved(seconds: float, engine: str) -> None:
    with RunningServer(engine=engine) as server:
        with Api(server.port) as api:
            ns = api.lease("namespace")["namespace"]
        statuses: list[int] = []
        counts = [0] * 64
        threads = [
            threading.Thread(target=mixed_work, args=(server, ns, seed, seconds, statuses, counts))
            for seed in range(64)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(statuses) > 200
        assert {status for status in statuses if status >= 500} == set()
        assert set(statuses) <= {200, 201, 409}
        assert min(counts) >= 0.5 * max(counts) - 2, sorted(counts)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_stuck_disk_stops_only_the_writes_and_those_with_a_503(engine: str) -> None:
    with (
        RunningServer(engine=engine, environment=AS_SHIPPED) as server,
        Api(server.port) as api,
        Crowd(server.port, 8) as crowd,
    ):
        ns = api.lease("namespace")["namespace"]
        api.lease("acquire", key="before", namespace=ns)
        server.failpoint("before-commit pause 5000")
        stuck = [crowd.lease("acquire", key=f"k{number}", namespace=ns) for number in range(8)]
        time.sleep(0.5)
        took = []
        for _ in range(20):
            began = time.monotonic()
            assert api.get("/healthz").status == 200
            took.append(time.monotonic() - began)
            assert api.lease("status", key="before", namespace=ns).status == 200
            time.sleep(0.02)
        assert sorted(took)[len(took) // 2] < 0.2, took
        server.failpoint()
        for answer in (call.result() for call in stuck):
            assert (answer.status, answer["code"]) == (503, "unavailable")
            assert int(answer.headers["retry-after"]) >= 1
            assert answer["committed"] in ("no", "unknown")
        deadline = time.monotonic() + 15
        while api.lease("acquire", key="after", namespace=ns).status == 503:
            assert time.monotonic() < deadline
            time.sleep(0.2)
        assert api.lease("acquire", key="k0", namespace=ns).status in (201, 409)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("point", ["before-commit", "after-commit"])
def test_a_kill_beside_the_commit_keeps_exactly_what_was_committed(point: str, engine: str) -> None:
    with RunningServer(engine=engine) as server:
        with Api(server.port) as api:
            ns = api.lease("namespace")["namespace"]
            api.lease("acquire", key="warm", namespace=ns)
            server.failpoint(f"{point} kill")
            with pytest.raises(DOWN):
                api.lease("acquire", key="k", namespace=ns, owner_token=TOKEN)
            server.failpoint()
            server.await_answer()
        with Api(server.port) as api:
            again = api.lease("acquire", key="k", namespace=ns, owner_token=TOKEN)
            assert again.status == 201
            assert again.body.get("repeated", False) == (point == "after-commit")


@pytest.mark.parametrize("engine", ENGINES)
def test_a_dropped_answer_is_repaired_by_sending_the_same_acquire_again(engine: str) -> None:
    with RunningServer(engine=engine) as server, Api(server.port) as api:
        ns = api.lease("namespace")["namespace"]
        server.failpoint("after-commit drop-answer")
        with pytest.raises(DOWN):
            api.lease("acquire", key="k", namespace=ns, owner_token=TOKEN)
        server.failpoint()
        again = api.lease("acquire", key="k", namespace=ns, owner_token=TOKEN)
        assert (again.status, again["repeated"]) == (201, True)


def test_no_secret_is_left_on_disk_or_in_the_logs() -> None:
    secrets = {"fingerprint-in-the-clear", "a-key-that-nobody-may-read", "hunter2-value"}
    with RunningServer() as server:
        with Api(server.port) as api:
            ns = api.lease("namespace")["namespace"]
            secrets.add(ns)
            for number in range(50):
                key = f"a-key-that-nobody-may-read-{number}"
                granted = api.lease("acquire", key=key, namespace=ns, fingerprint="fingerprint-in-the-clear")
                secrets.add(granted["owner_token"])
                result = {"password": "hunter2-value", "n": number}
                if number % 2:
                    api.lease("complete", key=key, namespace=ns, owner_token=granted["owner_token"], result=result)
            api.get(f"/services/v1/lease/status?key={ns}")
            api.get(f"/{ns}")
            api.post(
                "/services/v1/lease/acquire", key=ns, headers={"Authorization": f"Bearer {ns}", "X-Request-Id": "x"}
            )
            api.text("/services/v1/lease/acquire", json.dumps({ns: 1, "key": ns, "namespace": ns + "!"}))
            found = leaks(server.folder, secrets)
        server.terminate()
        found |= leaks(server.folder, secrets)
        assert found == set()
        assert "acquire" in server.stdout + server.stderr


def leaks(folder: Path, secrets: set[str]) -> set[tuple[str, str]]:
    files = [file for file in folder.rglob("*") if file.is_file()]
    assert any(file.name.endswith(".db") for file in files)
    return {(file.name, secret) for file in files for secret in secrets if secret.encode() in file.read_bytes()}
