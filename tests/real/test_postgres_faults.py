"""PostgreSQL taken away, frozen, killed and cut off at the commit: nothing acknowledged is lost, nobody is lied to."""

import http.client
import itertools
import random
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack

import psycopg
import pytest

from tests.real.api import Api, Crowd
from tests.real.cluster import Cluster, shared_cluster
from tests.real.history import Grant, History
from tests.real.proxy import Cut, Proxy
from tests.real.server import AS_SHIPPED, RunningServer

pytestmark = pytest.mark.postgres

DOWN = (OSError, http.client.HTTPException)
CUTS: list[Cut] = ["answer", "question", "late"]


def behind(proxy: Proxy, url: str) -> str:
    """The same database through the proxy."""
    head, tail = url.rsplit(":", 1)
    return f"{head}:{proxy.port}/{tail.split('/', 1)[1]}"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    own = Cluster()
    yield own
    own.close()


def serve(stack: ExitStack, url: str, **environment: str) -> RunningServer:
    environment = {"FENCEPOST_DATABASE_URL": url, **AS_SHIPPED, **environment}
    return stack.enter_context(RunningServer(engine="postgresql", environment=environment))


@pytest.mark.parametrize("times", [20, pytest.param(100, marks=pytest.mark.long)])
@pytest.mark.parametrize("cut", CUTS)
def test_a_commit_whose_connection_was_cut_is_answered_as_it_went(cut: Cut, times: int) -> None:
    url = shared_cluster().database()
    with ExitStack() as stack:
        proxy = stack.enter_context(Proxy(shared_cluster().port))
        api = stack.enter_context(Api(serve(stack, behind(proxy, url), FENCEPOST_BUS="redis://127.0.0.1:1").port))
        ns = api.lease("namespace")["namespace"]
        for number in range(times):
            proxy.cut = cut
            granted = api.lease("acquire", key=f"k{number}", namespace=ns)
            assert granted.status == 201, (granted.raw, proxy.cuts)
            assert (granted["attempt"], granted.body.get("repeated")) == (1, None)
            proxy.cut = None
            seen = api.lease("verify", key=f"k{number}", namespace=ns, fencing_token=granted["fencing_token"])
            assert seen["current"] is True
            owner = granted["owner_token"]
            assert api.lease("release", key=f"k{number}", namespace=ns, owner_token=owner).status == 200
        assert proxy.cuts >= times


def test_a_commit_that_nobody_can_ask_about_is_said_to_be_unknown() -> None:
    own = Cluster()
    with ExitStack() as stack:
        stack.callback(own.close)
        proxy = stack.enter_context(Proxy(own.port))
        server = serve(stack, behind(proxy, own.database()), FENCEPOST_BUS="redis://127.0.0.1:1")
        api = stack.enter_context(Api(server.port))
        ns = api.lease("namespace")["namespace"]
        for turn in range(10):  # a commit of the server's own may meet the cut instead of ours
            proxy.cut, proxy.upstream = "question", 1
            refused = api.lease("acquire", key=f"k{turn}", namespace=ns)
            proxy.upstream = own.port
            assert eventually(api, ns, f"k{turn}") in (201, 409)
            if refused.body.get("committed") == "unknown":
                break
        assert (refused.status, refused["code"], refused["committed"]) == (503, "unavailable", "unknown")
        assert int(refused.headers["retry-after"]) >= 1


def eventually(api: Api, ns: str, key: str = "k") -> int:
    deadline = time.monotonic() + 20
    while (status := api.lease("acquire", key=key, namespace=ns).status) == 503:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return status


def test_a_database_that_is_away_is_a_503_in_time_and_comes_back_by_itself(cluster: Cluster) -> None:
    with ExitStack() as stack:
        server = serve(stack, cluster.database())
        api = stack.enter_context(Api(server.port))
        ns = api.lease("namespace")["namespace"]
        assert api.lease("acquire", key="before", namespace=ns).status == 201
        assert api.get("/readyz").status == 200
        cluster.stop(immediate=True)
        began = time.monotonic()
        refused = api.lease("acquire", key="k", namespace=ns)
        assert time.monotonic() - began < 10
        assert (refused.status, refused["committed"]) == (503, "no")
        assert int(refused.headers["retry-after"]) >= 1
        assert api.get("/healthz").status == 200
        unready = api.get("/readyz")
        assert unready.status == 503
        assert "database" in unready["checks"]
        assert unready["checks"]["database"] != "ok"
        cluster.start()
        assert eventually(api, ns) == 201
        assert api.lease("acquire", key="before", namespace=ns).status == 409
        assert api.get("/readyz").status == 200


def test_a_frozen_database_stops_neither_the_loop_nor_the_deadline() -> None:
    with ExitStack() as stack:
        proxy = stack.enter_context(Proxy(shared_cluster().port))
        server = serve(stack, behind(proxy, shared_cluster().database()), FENCEPOST_BUS="redis://127.0.0.1:1")
        api = stack.enter_context(Api(server.port))
        crowd = stack.enter_context(Crowd(server.port, 12))
        ns = api.lease("namespace")["namespace"]
        proxy.frozen = True
        began = time.monotonic()
        stuck = [crowd.lease("acquire", key=f"k{number}", namespace=ns) for number in range(12)]
        for _ in range(10):
            assert api.get("/healthz").status == 200
        assert {call.result().status for call in stuck} == {503}
        assert time.monotonic() - began < 15
        proxy.frozen = False
        proxy.drop_all()
        assert eventually(api, ns, "after") == 201


def test_a_row_that_somebody_keeps_locked_is_a_503_and_others_go_on() -> None:
    url = shared_cluster().database()
    with ExitStack() as stack:
        server = serve(stack, url)
        api = stack.enter_context(Api(server.port))
        ns = api.lease("namespace")["namespace"]
        held = api.lease("acquire", key="locked", namespace=ns)
        with psycopg.connect(url) as other, Crowd(server.port, 30) as crowd:
            other.execute("SELECT * FROM lease FOR UPDATE")
            stuck = [
                crowd.lease("renew", key="locked", namespace=ns, owner_token=held["owner_token"]) for _ in range(30)
            ]
            time.sleep(0.3)
            assert api.lease("acquire", key="free", namespace=ns).status == 201
            answers = [call.result() for call in stuck]
            other.rollback()
        assert {(answer.status, answer.body.get("committed")) for answer in answers} == {(503, "no")}
        assert api.lease("renew", key="locked", namespace=ns, owner_token=held["owner_token"]).status == 200


def test_a_lease_that_waited_for_its_row_lock_is_granted_in_full() -> None:
    url = shared_cluster().database()
    with ExitStack() as stack:
        server = serve(stack, url)
        api = stack.enter_context(Api(server.port))
        ns = api.lease("namespace")["namespace"]
        owner = api.lease("acquire", key="k", namespace=ns)["owner_token"]
        api.lease("release", key="k", namespace=ns, owner_token=owner)
        with psycopg.connect(url) as other, Crowd(server.port, 1) as crowd:
            other.execute("SELECT * FROM lease FOR UPDATE")
            waiting = crowd.lease("acquire", key="k", namespace=ns, ttl_seconds=10)
            time.sleep(2.0)
            other.rollback()
            granted = waiting.result()
            left = api.lease("acquire", key="k", namespace=ns)["retry_after_seconds"]
        assert granted.status == 201
        assert left == 10  # rounded up: between the unlocking and this line not one of the ten seconds was over


class Work:
    """Callers who hold, finish and note what they were told, whatever happens to the database."""

    def __init__(self, server: RunningServer, callers: int = 8) -> None:
        self.server = server
        self.history = History()
        self.completed: dict[str, str] = {}
        self.statuses: set[int] = set()
        self.answers = 0
        self.stop = threading.Event()
        with Api(server.port) as api:
            self.ns = api.lease("namespace")["namespace"]
        self._failures: list[BaseException] = []
        self._threads = [threading.Thread(target=self._run, args=(number,)) for number in range(callers)]
        for thread in self._threads:
            thread.start()

    def finish(self) -> None:
        self.stop.set()
        for thread in self._threads:
            thread.join()
        assert not self._failures, self._failures[0]

    def _run(self, number: int) -> None:
        try:
            for job in itertools.count():
                if self.stop.is_set():
                    return
                try:
                    with Api(self.server.port, timeout_seconds=30) as api:
                        self._shared(api, random.Random(job).choice(["one", "two"]))
                        self._own(api, f"job-{number}-{job}")
                except DOWN:
                    time.sleep(0.05)
        except BaseException as fault:  # noqa: BLE001 - raised again in the test's own thread
            self._failures.append(fault)

    def _note(self, status: int) -> int:
        self.statuses.add(status)
        self.answers += 1
        return status

    def _shared(self, api: Api, key: str) -> None:
        asked = time.monotonic()
        answer = api.lease("acquire", key=key, namespace=self.ns, ttl_seconds=3, wait_seconds=1)
        told = time.monotonic()
        if self._note(answer.status) != 201:
            return
        ending = time.monotonic()
        try:
            self._note(api.lease("release", key=key, namespace=self.ns, owner_token=answer["owner_token"]).status)
        finally:
            self.history.note(Grant(key, answer["fencing_token"], answer["owner_token"], asked, told, 3.0, ending))

    def _own(self, api: Api, key: str) -> None:
        granted = api.lease("acquire", key=key, namespace=self.ns, ttl_seconds=600)
        if self._note(granted.status) != 201:
            return
        assert granted["attempt"] == 1, granted.raw  # a lock that nobody was told of would be in the way
        owner = granted["owner_token"]
        done = api.lease("complete", key=key, namespace=self.ns, owner_token=owner, result=key)
        if self._note(done.status) == 200:
            self.completed[key] = owner
        else:
            assert done.status == 503, done.raw  # the owner is not lost

    def check(self) -> None:
        assert self.history.faults() == []
        assert self.statuses <= {200, 201, 409, 503}, self.statuses
        assert len(self.completed) > 5
        with Api(self.server.port) as api:
            for key in self.completed:
                found = api.lease("acquire", key=key, namespace=self.ns)
                assert (found.status, found["result"]) == (200, key)
            highest = max(grant.fence for grant in self.history.grants)
            assert api.lease("acquire", key="after", namespace=self.ns)["fencing_token"] > highest


@pytest.mark.parametrize("kills", [60, pytest.param(1000, marks=pytest.mark.long)])
def test_a_storm_of_terminated_backends_loses_nothing_that_was_acknowledged(kills: int) -> None:
    url = shared_cluster().database()
    rng = random.Random(kills)
    with ExitStack() as stack:
        server = serve(stack, url)
        work = Work(server)
        killed = 0
        with psycopg.connect(url, autocommit=True) as axe:
            deadline = time.monotonic() + 100 + kills
            while killed < kills and time.monotonic() < deadline:
                pids = axe.execute(
                    "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
                ).fetchall()
                if pids:
                    killed += bool(axe.execute("SELECT pg_terminate_backend(%s)", rng.choice(pids)).fetchone())
                time.sleep(rng.uniform(0.0, 0.05))
        work.finish()
        assert killed == kills
        work.check()


@pytest.mark.parametrize("restarts", [3, pytest.param(30, marks=pytest.mark.long)])
def test_immediate_restarts_of_the_database_lose_nothing_that_was_acknowledged(cluster: Cluster, restarts: int) -> None:
    rng = random.Random(restarts)
    with ExitStack() as stack:
        server = serve(stack, cluster.database())
        work = Work(server)
        for _ in range(restarts):
            time.sleep(rng.uniform(0.3, 1.0))
            cluster.stop(immediate=True)
            cluster.start()
        time.sleep(1.0)
        work.finish()
        work.check()
