"""One run: a server, callers, a nemesis, and afterwards the judgement of all that they were told.

A seed decides what the callers ask and what is done to the server. It cannot decide when the machine runs whom, so the
same seed replays the same plan and not the same interleaving; what happened is in the history file, which can be judged
again as often as one likes.
"""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.faults.caller import Caller, Line, Tally
from tests.faults.checker import faults
from tests.faults.history import Fault, History
from tests.faults.nemesis import BAD_LINE, NEMESES, ONLY_POSTGRESQL, Scene
from tests.faults.schedule import Schedule
from tests.faults.work import WORK, Meeting, audit, fresh
from tests.real.api import Api
from tests.real.cluster import Cluster, shared_cluster
from tests.real.server import RunningServer

SAID = 20


@dataclass
class Report:
    """What came of it."""

    schedule: Schedule
    operations: int
    unknown: int
    subjects: int
    counts: dict[str, int]
    seconds: float
    faults: list[Fault] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """For a file."""
        return {**asdict(self), "faults": [str(fault) for fault in self.faults[:SAID]], "violations": len(self.faults)}

    def line(self) -> str:
        """For a person."""
        done = ", ".join(f"{number} {name}" for name, number in sorted(self.counts.items()) if "status" not in name)
        verdict = "ok" if not self.faults else f"{len(self.faults)} VIOLATIONS, the first: {self.faults[0]}"
        return (
            f"{self.schedule.name}: {self.operations} operations, {self.unknown} without an answer, {done}: {verdict}"
        )


def run(schedule: Schedule, keep: Path | None = None) -> Report:
    """Run it and judge it; with `keep`, the history is written there."""
    began = time.monotonic()
    history, tally = History(), Tally()
    with ExitStack() as stack:
        server, database, cluster = _start(schedule, stack)
        meeting = _meet(server, history, schedule)
        stop, failures = threading.Event(), list[BaseException]()
        rng = random.Random(f"nemesis {schedule.seed}")
        scene = Scene(server, history, tally, rng, stop, database, cluster)
        threads = [_thread(failures, NEMESES[schedule.nemesis], scene)]
        for work, number in schedule.callers.items():
            for index in range(number):
                caller = _caller(schedule, server, tally, f"{work} {index}")
                threads.append(_thread(failures, _go_on, WORK[work], meeting, caller, stop))
        for thread in threads:
            thread.start()
        _until(time.monotonic() + schedule.seconds, failures)
        stop.set()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]
        server.failpoint()
        server.await_answer()
        audit(meeting, Caller(server.port, random.Random(0), Line(), tally))
    if keep is not None:
        history.save(keep)
    return judged(schedule, history, tally.counts, time.monotonic() - began)


def judged(schedule: Schedule, history: History, counts: Counter[str], seconds: float) -> Report:
    """The report of a history."""
    unknown = sum(op.is_unknown for op in history.ops)
    report = Report(schedule, len(history.ops), unknown, len(history.by_subject()), dict(counts), round(seconds, 1))
    report.faults = faults(history)
    if counts["status 500"]:
        report.faults.append(Fault("S1", "server", f"{counts['status 500']} answers were 500"))
    return report


def _start(schedule: Schedule, stack: ExitStack) -> tuple[RunningServer, str | None, Cluster | None]:
    environment: dict[str, str | None] = {"FENCEPOST_LIMITS": "off", "FENCEPOST_LIMIT_LIVE_HANDOFFS": "1000000"}
    environment |= {"FENCEPOST_SWEEP_SECONDS": "1", **dict(schedule.environment)}
    database, cluster = None, None
    if schedule.engine == "postgresql":
        if schedule.nemesis in ONLY_POSTGRESQL:
            cluster = Cluster()
            stack.callback(cluster.close)
        database = (cluster or shared_cluster()).database()
        environment |= {"FENCEPOST_DATABASE_URL": database, "FENCEPOST_WORKERS": "2"}
    server = RunningServer(engine=schedule.engine, environment=environment, application=schedule.application)
    return stack.enter_context(server), database, cluster


def _meet(server: RunningServer, history: History, schedule: Schedule) -> Meeting:
    token = fresh("nst_", random.Random("namespace"))
    with Api(server.port) as api:
        namespace = api.lease("namespace")["namespace"]
        founded = api.post("/once-key", namespace="faults", action_key="founding", namespace_token=token)
        assert founded["status"] == "claimed", founded.raw
    return Meeting(history, namespace, token, time.monotonic(), schedule.keys, schedule.generation_seconds)


def _caller(schedule: Schedule, server: RunningServer, tally: Tally, name: str) -> Caller:
    line = Line(lost=0.15, twice=0.15) if schedule.nemesis in BAD_LINE else Line()
    return Caller(server.port, random.Random(f"{name} {schedule.seed}"), line, tally)


def _go_on(work: Callable[[Meeting, Caller], None], meeting: Meeting, caller: Caller, stop: threading.Event) -> None:
    while not stop.is_set():
        work(meeting, caller)
    caller.close()


def _thread(failures: list[BaseException], act: Callable[..., None], *arguments: object) -> threading.Thread:
    def run() -> None:
        try:
            act(*arguments)
        except BaseException as fault:  # noqa: BLE001 - raised again in the run's own thread
            failures.append(fault)

    return threading.Thread(target=run)


def _until(deadline: float, failures: list[BaseException]) -> None:
    while time.monotonic() < deadline and not failures:
        time.sleep(0.05)
