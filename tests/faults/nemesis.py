"""What is done to a server while callers are at work. Each nemesis goes on until it is told to stop, as a seed says.

A nemesis writes down when the server could not answer in time, and by how much it moved the deciding clock.
"""

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import psycopg

from tests.faults.caller import Tally
from tests.faults.history import History, Span
from tests.real.cluster import Cluster
from tests.real.server import RunningServer

POINTS = ["after-lock", "after-decide", "before-commit", "after-commit", "after-listen", "sweep-after-select"]
AFTERMATH_SECONDS = 1.0
DAY = 86_400.0


@dataclass
class Scene:
    """What a nemesis acts on."""

    server: RunningServer
    history: History
    tally: Tally
    rng: random.Random
    stop: threading.Event
    database: str | None = None
    cluster: Cluster | None = None
    offset: float = 0.0
    highest: float = 0.0

    def pause(self, shortest: float, longest: float) -> None:
        """Let some time pass, or less if all is over."""
        self.stop.wait(self.rng.uniform(shortest, longest))

    @contextmanager
    def stalled(self) -> Iterator[None]:
        """While this is done, and for a moment after, nobody can expect an answer in time."""
        began = time.monotonic()
        try:
            yield
        finally:
            span = Span(began, time.monotonic() + AFTERMATH_SECONDS)
            with self.history.lock:
                self.history.stalls.append(span)


Nemesis = Callable[[Scene], None]


def quiet(scene: Scene) -> None:
    """Nothing is done to it."""
    scene.stop.wait()


def kill(scene: Scene) -> None:
    """The whole server is killed at a random moment and started again."""
    while not scene.stop.is_set():
        scene.pause(0.1, 1.0)
        with scene.stalled():
            scene.server.kill9()
            scene.server.start()
        scene.tally.add("kills")


def kill_at_failpoints(scene: Scene) -> None:
    """A worker kills itself at a named step; the arbiter starts another one."""
    while not scene.stop.is_set():
        scene.pause(0.1, 0.6)
        with scene.stalled():
            before = set(scene.server.worker_pids)
            scene.server.failpoint(f"{scene.rng.choice(POINTS[:5])} kill")
            deadline = time.monotonic() + 2.0
            while before & set(scene.server.worker_pids) == before and time.monotonic() < deadline:
                time.sleep(0.005)
            scene.server.failpoint()
            if before - set(scene.server.worker_pids):
                scene.tally.add("kills at failpoints")
            scene.server.await_answer()


def freeze(scene: Scene) -> None:
    """SIGSTOP, and SIGCONT up to two seconds later."""
    while not scene.stop.is_set():
        scene.pause(0.05, 0.5)
        with scene.stalled():
            pids = scene.server.worker_pids
            _signal(pids, signal.SIGSTOP)
            time.sleep(scene.rng.choice([0.05, 0.3, 1.0, 2.0]))
            _signal(pids, signal.SIGCONT)
        scene.tally.add("pauses")


def slow_disk(scene: Scene) -> None:
    """Commits take long, or an operation stands still at one of its steps."""
    while not scene.stop.is_set():
        with scene.stalled():
            point = scene.rng.choice(["before-commit", "before-commit", *POINTS[:5]])
            scene.server.failpoint(f"{point} pause {scene.rng.choice([20, 100, 400])}")
            scene.pause(0.2, 1.0)
            scene.server.failpoint()
        scene.tally.add("slow stretches")
        scene.pause(0.1, 0.5)


def drop_answers(scene: Scene) -> None:
    """The server itself closes connections instead of answering what it has committed."""
    while not scene.stop.is_set():
        scene.server.failpoint("after-commit drop-answer")
        scene.pause(0.02, 0.2)
        scene.server.failpoint()
        scene.tally.add("stretches of dropped answers")
        scene.pause(0.05, 0.3)


def step_clock(scene: Scene) -> None:
    """The deciding clock is put forward, and back, which must revive nothing."""
    while not scene.stop.is_set():
        scene.pause(0.2, 0.8)
        step = scene.rng.choice([1.0, 2.5, 10.0, 600.0, DAY, -1.0, -600.0, -DAY])
        scene.offset += step
        forward = max(0.0, scene.offset - scene.highest)
        scene.highest = max(scene.highest, scene.offset)
        began = time.monotonic()
        scene.server.set_clock(scene.offset)
        span = Span(began, time.monotonic() + 0.01, forward)
        with scene.history.lock:
            scene.history.steps.append(span)
        scene.tally.add("clock steps")


def terminate_backends(scene: Scene) -> None:
    """PostgreSQL's connections are ended by its administrator, one after the other."""
    assert scene.database is not None
    find = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    with psycopg.connect(scene.database, autocommit=True) as axe:
        while not scene.stop.is_set():
            with scene.stalled():
                pids = axe.execute(find).fetchall()
                if pids and axe.execute("SELECT pg_terminate_backend(%s)", scene.rng.choice(pids)).fetchone():
                    scene.tally.add("backends terminated")
            scene.pause(0.0, 0.05)


def restart_database(scene: Scene) -> None:
    """PostgreSQL crashes and recovers."""
    assert scene.cluster is not None
    while not scene.stop.is_set():
        scene.pause(0.5, 1.5)
        with scene.stalled():
            scene.cluster.stop(immediate=True)
            scene.cluster.start()
        scene.tally.add("database restarts")


def everything(scene: Scene) -> None:
    """Kills, pauses, slow commits and lost answers by turns."""
    parts: list[Nemesis] = [kill, kill_at_failpoints, freeze, slow_disk, drop_answers]
    while not scene.stop.is_set():
        part = Scene(**{**vars(scene), "stop": threading.Event()})
        thread = threading.Thread(target=scene.rng.choice(parts), args=(part,))
        thread.start()
        scene.pause(0.5, 1.5)
        part.stop.set()
        thread.join()


def _signal(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


NEMESES: dict[str, Nemesis] = {
    "quiet": quiet,
    "kill": kill,
    "failpoints": kill_at_failpoints,
    "pause": freeze,
    "slow": slow_disk,
    "line": quiet,
    "drop": drop_answers,
    "clock": step_clock,
    "backends": terminate_backends,
    "database": restart_database,
    "everything": everything,
}
ONLY_POSTGRESQL = {"backends", "database"}
BAD_LINE = {"line", "everything"}
