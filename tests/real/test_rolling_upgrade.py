"""Two releases at once on one PostgreSQL, under load: the older one goes on serving on the newer one's schema.

The older release is the last commit before the newest migration, taken from the history of this repository, so a whole
clone is needed.
"""

import io
import subprocess
import sys
import tarfile
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.house.tree import ROOT
from tests.real.api import Api
from tests.real.cluster import shared_cluster
from tests.real.handoffs import Made, look, make, move
from tests.real.server import RunningServer

pytestmark = [pytest.mark.real, pytest.mark.postgres, pytest.mark.long]  # not for CI: it may have no history
VERSIONS = "migrations/versions"
CALLERS = 4


def git(*words: str) -> bytes:
    """What git says of this repository."""
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True).stdout


def release_before(folder: Path) -> Path:
    """The tree before the newest migration came."""
    newest = max(path.name for path in (ROOT / VERSIONS).glob("[0-9]*.py"))
    added = git("log", "--diff-filter=A", "--format=%H", "--", f"{VERSIONS}/{newest}").split()
    assert added, f"no commit adds {newest}: is this a whole clone?"
    with tarfile.open(fileobj=io.BytesIO(git("archive", f"{added[-1].decode()}^"))) as packed:
        packed.extractall(folder, filter="data")
    assert not (folder / VERSIONS / newest).exists()
    return folder


class Load:
    """Callers who work on one server after the other, and remember what they were told."""

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace
        self.ports: list[int] = []
        self.fences: dict[str, list[int]] = {}
        self.done: dict[str, int] = {}
        self.moved: list[Made] = []
        self.faults: list[str] = []
        self.rounds = 0
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(who,)) for who in range(CALLERS)]

    def __enter__(self) -> "Load":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *fault: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Let every caller end its round."""
        self._stop.set()
        for thread in self._threads:
            thread.join(30)

    def go_on(self, rounds: int) -> None:
        """Wait for so many rounds more."""
        wanted, deadline = self.rounds + rounds, time.monotonic() + 60
        while self.rounds < wanted and not self.faults:
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def _run(self, who: int) -> None:
        number = 0
        while not self._stop.is_set():
            number += 1
            for port in list(self.ports):
                try:
                    with Api(port) as api:
                        self._round(api, f"{who}-{number}-{port}")
                except OSError:
                    continue  # it was told to go

    def _told(self, answer: Any, *wanted: int) -> Any:
        if answer.status not in wanted:
            self.faults.append(f"{answer.status} {answer.raw!r}")
        return answer

    def _round(self, api: Api, name: str) -> None:
        hot = {"key": "hot", "namespace": self.namespace}
        held = self._told(api.lease("acquire", **hot), 201, 409)
        if held.status == 201:
            self.fences.setdefault("hot", []).append(held["fencing_token"])
            self._told(api.lease("release", owner_token=held["owner_token"], **hot), 200)
        own = {"key": name, "namespace": self.namespace}
        token = self._told(api.lease("acquire", **own), 201)["owner_token"]
        self._told(api.lease("complete", owner_token=token, result=len(name), **own), 200)
        self.done[name] = len(name)
        made = make(api)
        self._told(move(api, made, "done", "offered"), 200)
        self.moved.append(made)
        self.rounds += 1


def test_nothing_is_lost_while_one_release_takes_over_from_the_other(tmp_path: Path) -> None:
    older = release_before(tmp_path / "older")
    shared = {"FENCEPOST_DATABASE_URL": shared_cluster().database(), "FENCEPOST_LIMITS": "off"}
    shared |= {"FENCEPOST_LIMIT_LIVE_HANDOFFS": "1000000"}
    serve = [sys.executable, "-m", "app.cli.main", "serve"]
    with RunningServer(engine="postgresql", environment=shared | {"PYTHONPATH": str(older)}, command=serve) as before:
        with Api(before.port) as api:
            namespace = api.lease("namespace")["namespace"]
        with Load(namespace) as load:
            load.ports.append(before.port)
            load.go_on(40)
            with RunningServer(engine="postgresql", environment=shared) as after:
                load.ports.append(after.port)
                load.go_on(100)
                load.ports.remove(before.port)
                assert before.terminate() == 0
                load.go_on(40)
                load.stop()
                assert load.faults == []
                fences = load.fences["hot"]
                assert len(set(fences)) == len(fences)
                with Api(after.port) as api:
                    for name, result in load.done.items():
                        answer = api.lease("acquire", key=name, namespace=namespace)
                        assert (answer.status, answer["result"]) == (200, result), name
                    assert {look(api, made)["state"] for made in load.moved} == {"done"}
