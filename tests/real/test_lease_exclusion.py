"""One holder at every instant and fences that only rise: under contention, kill -9, restarts and the sweep."""

import http.client
import random
import threading
import time

import pytest

from tests.real.api import Api
from tests.real.history import Grant, History
from tests.real.server import ENGINES, RunningServer

DOWN = (OSError, http.client.HTTPException)


def contend(
    server: RunningServer, ns: str, keys: list[str], history: History, stop: threading.Event, most: int, seed: int
) -> int:
    """Acquire one of the keys again and again, hold it for a moment, give it up. The number of answers."""
    rng = random.Random(seed)
    answered = 0
    while answered < most and not stop.is_set():
        with Api(server.port, timeout_seconds=10) as api:
            try:
                while answered < most and not stop.is_set():
                    answered += hold_once(api, ns, rng, rng.choice(keys), history)
            except DOWN:
                time.sleep(0.02)
    return answered


def hold_once(api: Api, ns: str, rng: random.Random, key: str, history: History) -> int:
    asked = time.monotonic()
    answer = api.lease("acquire", key=key, namespace=ns, ttl_seconds=5, wait_seconds=rng.choice([0, 0, 1]))
    told = time.monotonic()
    assert answer.status in (201, 409), answer.raw
    if answer.status == 409:
        return 1
    ending: float | None = None
    try:
        ending = time.monotonic()
        api.lease("release", key=key, namespace=ns, owner_token=answer["owner_token"])
    finally:
        history.note(Grant(key, answer["fencing_token"], answer["owner_token"], asked, told, 5.0, ending))
    return 2


def crowd(server: RunningServer, ns: str, keys: list[str], history: History, *, clients: int, each: int) -> int:
    """Let that many clients contend until each had so many answers."""
    stop, counts = threading.Event(), [0] * clients
    failures: list[BaseException] = []

    def run(number: int) -> None:
        try:
            counts[number] = contend(server, ns, keys, history, stop, each, seed=number)
        except BaseException as fault:  # noqa: BLE001 - raised again in the test's own thread
            failures.append(fault)
            stop.set()

    threads = [threading.Thread(target=run, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]
    return sum(counts)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("clients", "each"), [(64, 60), pytest.param(64, 160, marks=pytest.mark.long)])
def test_one_key_has_one_holder_at_every_instant_for_64_clients(clients: int, each: int, engine: str) -> None:
    with RunningServer(engine=engine) as server:
        with Api(server.port) as api:
            ns = api.lease("namespace")["namespace"]
        history = History()
        answered = crowd(server, ns, ["one"], history, clients=clients, each=each)
        assert answered >= clients * each
        assert len(history.grants) > clients
        assert history.faults() == []


def test_a_history_with_two_holders_is_found_out() -> None:
    held = Grant("k", 7, "a", 0.0, 1.0, 60.0, ending=10.0)
    assert History([held, Grant("k", 8, "b", 10.5, 11.0, 60.0)]).faults() == []
    assert History([held, Grant("k", 8, "b", 4.0, 5.0, 60.0)]).faults() == [
        "k: fences 7 and 8: two holders at one instant"
    ]
    assert "granted twice" in History([held, Grant("k", 7, "b", 20.0, 21.0, 60.0)]).faults()[0]
    assert "before the lower" in History([held, Grant("k", 6, "b", 2.0, 3.0, 0.5)]).faults()[0]
    lapsed = Grant("k", 7, "a", 0.0, 1.0, 5.0)
    assert History([lapsed, Grant("k", 8, "b", 1.0, 5.1, 5.0)]).faults() == []
    assert History([lapsed, Grant("k", 8, "b", 1.0, 4.9, 5.0)]).faults() != []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kills", [5, pytest.param(100, marks=pytest.mark.long)])
def test_nothing_acknowledged_is_lost_by_kill_9_under_load(kills: int, engine: str) -> None:
    rng = random.Random(kills)
    acknowledged: dict[str, tuple[str, str]] = {}
    history = History()
    with RunningServer(engine=engine) as server:
        with Api(server.port) as api:
            ns = api.lease("namespace")["namespace"]
        for round_number in range(kills):
            stop = threading.Event()
            threads = [
                threading.Thread(
                    target=finish_jobs, args=(server, ns, round_number, number, acknowledged, history, stop)
                )
                for number in range(8)
            ]
            for thread in threads:
                thread.start()
            time.sleep(rng.uniform(0.05, 0.5))
            busy_until = time.monotonic() + 10
            while len(acknowledged) <= 2 * round_number and time.monotonic() < busy_until:
                time.sleep(0.01)
            server.kill9()
            stop.set()
            for thread in threads:
                thread.join()
            server.start()
        check_acknowledged(server, ns, acknowledged, history)
        assert server.terminate() == 0
        assert engine != "sqlite" or integrity(server) == "ok"


def finish_jobs(
    server: RunningServer,
    ns: str,
    round_number: int,
    number: int,
    acknowledged: dict[str, tuple[str, str]],
    history: History,
    stop: threading.Event,
) -> None:
    """Acquire fresh keys and a shared one, complete the fresh ones, and note what the server said yes to."""
    job = 0
    while not stop.is_set():
        key = f"job-{round_number}-{number}-{job}"
        job += 1
        try:
            with Api(server.port, timeout_seconds=5) as api:
                hold_once(api, ns, random.Random(job), "shared", history)
                asked = time.monotonic()
                granted = api.lease("acquire", key=key, namespace=ns, ttl_seconds=86_400)
                acknowledged[key] = ("held", granted["owner_token"])
                history.note(Grant(key, granted["fencing_token"], "", asked, time.monotonic(), 86_400.0))
                if (
                    api.lease("complete", key=key, namespace=ns, owner_token=granted["owner_token"], result=key).status
                    == 200
                ):
                    acknowledged[key] = ("completed", granted["owner_token"])
        except DOWN:
            continue


def check_acknowledged(
    server: RunningServer, ns: str, acknowledged: dict[str, tuple[str, str]], history: History
) -> None:
    assert len(acknowledged) > 5
    with Api(server.port) as api:
        for key, (said, owner) in acknowledged.items():
            now = api.lease("acquire", key=key, namespace=ns)
            if said == "completed":
                assert (now.status, now["result"]) == (200, key)
            else:
                assert now.status in (409, 200), now.raw
                renewed = api.lease("renew", key=key, namespace=ns, owner_token=owner)
                assert renewed.status == 200 or now.status == 200
        highest = max(grant.fence for grant in history.grants)
        assert api.lease("acquire", key="after-all", namespace=ns)["fencing_token"] > highest
    assert history.faults() == []


def integrity(server: RunningServer) -> str:
    """What SQLite says of the file, once nobody serves it."""
    import sqlite3

    connection = sqlite3.connect(server.data_dir / "fencepost.db")
    try:
        return str(connection.execute("PRAGMA integrity_check").fetchone()[0])
    finally:
        connection.close()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_restart_keeps_the_time_left_and_grants_no_new_one(engine: str) -> None:
    with RunningServer(engine=engine) as server:
        with Api(server.port) as api:
            ns = api.lease("namespace")["namespace"]
            granted = api.lease("acquire", key="r", namespace=ns, ttl_seconds=100)
        server.set_clock(40)
        for stop in (server.kill9, lambda: server.terminate()):
            stop()
            server.start()
            with Api(server.port) as api:
                held = api.lease("acquire", key="r", namespace=ns)
                assert held["lease_expires_at"] == granted["lease_expires_at"]
                assert held["fencing_token"] == granted["fencing_token"]
                assert 1 <= held["retry_after_seconds"] <= 60
        server.set_clock(101)
        with Api(server.port) as api:
            assert api.lease("acquire", key="r", namespace=ns).status == 201


@pytest.mark.parametrize("engine", ENGINES)
def test_a_clock_stepped_back_revives_nothing_and_lengthens_nothing(engine: str) -> None:
    with RunningServer(engine=engine) as server, Api(server.port) as api:
        ns = api.lease("namespace")["namespace"]
        first = api.lease("acquire", key="b", namespace=ns, ttl_seconds=60)
        server.set_clock(3600)
        assert api.lease("status", key="b", namespace=ns)["status"] == "free"
        server.set_clock(0)
        assert api.lease("renew", key="b", namespace=ns, owner_token=first["owner_token"]).status == 409
        second = api.lease("acquire", key="b", namespace=ns, ttl_seconds=60)
        assert second.status == 201
        server.set_clock(-7200)
        assert 1 <= api.lease("acquire", key="b", namespace=ns)["retry_after_seconds"] <= 60
        server.kill9()
        server.start()
        with Api(server.port) as after:
            assert 1 <= after.lease("acquire", key="b", namespace=ns)["retry_after_seconds"] <= 60


@pytest.mark.parametrize("engine", ENGINES)
def test_fences_rise_across_the_sweep_and_new_lifecycles(engine: str) -> None:
    with RunningServer(engine=engine, environment={"FENCEPOST_SWEEP_SECONDS": "1"}) as server, Api(server.port) as api:
        ns = api.lease("namespace")["namespace"]
        fences, offset = [], 0
        for _ in range(3):
            fences.append(api.lease("acquire", key="s", namespace=ns)["fencing_token"])
            offset += 86_401
            server.set_clock(offset)
            swept = time.monotonic() + 20
            while "fencing_token" in api.lease("status", key="s", namespace=ns).body:
                assert time.monotonic() < swept, "the sweep left the row"
                time.sleep(0.05)
        server.kill9()
        server.start()
        with Api(server.port) as after:
            fences.append(after.lease("acquire", key="s", namespace=ns)["fencing_token"])
        assert fences == sorted(set(fences))
