"""`python -m bench [--rounds N] [--seconds S]`: run everything interleaved, print ratios, keep them in the docs."""

import argparse
import os
import platform
import subprocess
from datetime import UTC, datetime
from statistics import median

from bench import handover, load
from bench.load import Load
from bench.tables import keep
from tests.real.server import RunningServer

CONNECTIONS = (1, 8, 64, 256)
_QUIET = {"FENCEPOST_LOG_LEVEL": "warning"}
Rounds = dict[str, list[Load]]


def main() -> None:
    """Measure and report."""
    given = _arguments()
    lines = [
        f"{given.rounds} rounds of {given.seconds:g} s, interleaved; medians; {datetime.now(UTC):%Y-%m-%d}, "
        f"commit {_commit()}, {os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}. "
        f"Command: `make bench`.",
        "",
        "| connections | what | requests/s | of the empty route | p50 ms | p99 ms | p99 / p50 |",
        "| ---: | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    with _server() as ours, _server("bench.empty:application") as ceiling:
        for connections in CONNECTIONS:
            rounds = _measure(ours.url, ceiling.url, connections, given.rounds, given.seconds)
            lines += _rows(connections, rounds)
    lines += [
        "",
        f"Hand-over: from the release to the grant in the hands of the next in line, {given.handovers} times.",
        "",
        "| callers in line | p50 ms | p99 ms |",
        "| ---: | ---: | ---: |",
        *handover.rows(given.handovers),
    ]
    text = "\n".join(lines)
    print(text)
    keep("leases", "make bench", text)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--handovers", type=int, default=300)
    return parser.parse_args()


def _server(application: str | None = None) -> RunningServer:
    return RunningServer(test_mode=False, environment=_QUIET, application=application)


def _measure(ours: str, ceiling: str, connections: int, count: int, seconds: float) -> Rounds:
    rounds: Rounds = {"empty route": [], "acquire, release": [], "acquire, complete": []}
    for _ in range(count):
        rounds["empty route"].append(
            load.run(f"{ceiling}/empty", "empty.lua", connections=connections, seconds=seconds)
        )
        for ending in ("release", "complete"):
            rounds[f"acquire, {ending}"].append(
                load.run(ours, "lease.lua", ending, connections=connections, seconds=seconds)
            )
    return rounds


def _rows(connections: int, rounds: Rounds) -> list[str]:
    ceiling = rounds["empty route"]
    rows = []
    for what, loads in rounds.items():
        ratio = median(one.rate / other.rate for one, other in zip(loads, ceiling, strict=True))
        middle, tail = (median(getattr(one, name) for one in loads) for name in ("median_ms", "p99_ms"))
        rate = median(one.rate for one in loads)
        rows.append(
            f"| {connections} | {what} | {rate:,.0f} | {ratio:.0%} | {middle:.1f} | {tail:.1f} | {tail / middle:.1f} |"
        )
    return rows


def _commit() -> str:
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True)
    return done.stdout.strip()


if __name__ == "__main__":
    main()
