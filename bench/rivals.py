"""`python -m bench.rivals [--rounds N] [--seconds S]`: finished jobs a second, beside what people use instead.

A job is: take a key that nobody has, with a time limit and a fence; finish it with a result that the next caller gets.
Every rival runs on this machine with a sync to the disk before each answer, and is loaded by the same generator, one
after the other, round after round. The advisory lock keeps nothing: it is there as the floor.
"""

import argparse
import os
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

import psycopg

from bench import load
from bench.rival_apps import SCHEMA
from bench.tables import keep
from tests.real.cluster import Cluster
from tests.real.ports import free_port
from tests.real.server import RunningServer

CONNECTIONS = (8, 64)
_QUIET = {"FENCEPOST_LOG_LEVEL": "warning"}


@dataclass(frozen=True)
class Subject:
    """Where to send the load, and how many requests a finished job takes there."""

    name: str
    url: str
    script: str
    arguments: tuple[str, ...]
    requests: int


def main() -> None:
    """Measure, print and keep the table."""
    given = _arguments()
    with ExitStack() as stack:
        subjects = _subjects(stack)
        rates = {(subject.name, count): list[float]() for count in CONNECTIONS for subject in subjects}
        for count in CONNECTIONS:
            for _ in range(given.rounds):
                for subject in subjects:
                    done = load.run(
                        subject.url, subject.script, *subject.arguments, connections=count, seconds=given.seconds
                    )
                    rates[subject.name, count].append(done.rate / subject.requests)
    lines = [
        f"{given.rounds} rounds of {given.seconds} s, interleaved; medians; {datetime.now(UTC):%Y-%m-%d}, "
        f"{os.cpu_count()} cores. Command: `python -m bench.rivals`.",
        "",
        "| connections | what | calls for a job | jobs/s | ours to theirs |",
        "| ---: | --- | ---: | ---: | ---: |",
    ]
    ours = subjects[0].name
    for count in CONNECTIONS:
        for subject in subjects:
            rate = median(rates[subject.name, count])
            pairs = zip(rates[ours, count], rates[subject.name, count], strict=True)
            ratio = median(mine / theirs for mine, theirs in pairs)
            lines.append(f"| {count} | {subject.name} | {subject.requests} | {rate:,.0f} | {ratio:.2f} |")
    text = "\n".join(lines)
    print(text)
    keep("rivals", "python -m bench.rivals", text)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.rivals", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3)
    return parser.parse_args()


def _subjects(stack: ExitStack) -> list[Subject]:
    ours = stack.enter_context(RunningServer(test_mode=False, environment=_QUIET))
    redis = _behind_flask(stack, "redis_application", stack.enter_context(_redis()))
    cluster = Cluster()
    stack.callback(cluster.close)
    database = cluster.url()
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(SCHEMA)
    rows = _behind_flask(stack, "rows_application", database)
    advisory = _behind_flask(stack, "advisory_application", database)
    etcd = stack.enter_context(_etcd())
    return [
        Subject("Fencepost, SQLite", ours.url, "lease.lua", ("complete",), 2),
        Subject("etcd, JSON gateway", etcd, "etcd.lua", (), 4),
        Subject("Flask and Redis, log synced always", redis, "lease.lua", ("complete", ""), 2),
        Subject("Flask and PostgreSQL, a row each", rows, "lease.lua", ("complete", ""), 2),
        Subject("Flask and PostgreSQL, advisory lock", advisory, "lease.lua", ("complete", ""), 2),
    ]


def _behind_flask(stack: ExitStack, application: str, store: str) -> str:
    environment = {**_QUIET, "BENCH_STORE": store}
    server = RunningServer(test_mode=False, environment=environment, application=f"bench.rival_apps:{application}")
    return stack.enter_context(server).url


@contextmanager
def _redis() -> Iterator[str]:
    port = free_port()
    options = [
        "--port",
        str(port),
        "--bind",
        "127.0.0.1",
        "--save",
        "",
        "--appendonly",
        "yes",
        "--appendfsync",
        "always",
    ]
    with _program(["redis-server", *options]):
        yield f"redis://127.0.0.1:{port}/0"


@contextmanager
def _etcd() -> Iterator[str]:
    client, peer = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
    options = ["--data-dir", "etcd", "--listen-client-urls", client, "--advertise-client-urls", client]
    options += ["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer]
    options += ["--initial-cluster", f"default={peer}", "--log-level", "error"]
    with _program(["etcd", *options]):
        deadline = time.monotonic() + 30
        while not _answers(f"{client}/health"):
            assert time.monotonic() < deadline, "etcd did not start"
            time.sleep(0.1)
        yield client


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


@contextmanager
def _program(command: list[str]) -> Iterator[None]:
    """Run it in a folder of its own until the block ends."""
    assert shutil.which(command[0]) is not None, f"{command[0]} is not installed; scripts/need installs it"
    with tempfile.TemporaryDirectory(prefix="fencepost-bench-") as folder:
        output = (Path(folder) / "output").open("ab")
        process = subprocess.Popen(command, cwd=folder, stdout=output, stderr=output)
        output.close()
        try:
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(30)


if __name__ == "__main__":
    main()
