"""`python -m bench.metering [--against FOLDER]`: what a claim costs without a price and with one, interleaved.

`FOLDER` is a checkout of another release, run beside this one. What the serving process spent of its processor on a
claim is the figure to trust: other programs on the machine disturb it least.
"""

import argparse
import secrets
import subprocess
import sys
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from statistics import median

from bench import load
from bench.mcp import Round, processor_seconds
from bench.tables import keep
from tests.real.server import ROOT, RunningServer

_CONNECTIONS = 16
_QUIET = {"FENCEPOST_LOG_LEVEL": "warning"}
_PRICED = {**_QUIET, "FENCEPOST_PRICE_ONCE_CLAIM": "0.000001"}
_runs = count()


def main() -> None:
    """Measure, print, and keep it in the docs."""
    parser = argparse.ArgumentParser(prog="python -m bench.metering", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--against", type=Path, metavar="FOLDER")
    given = parser.parse_args()
    environments = {"no price": _QUIET, "a price": _PRICED}
    if given.against:
        environments = {"before metering": {**_QUIET, "PYTHONPATH": str(given.against.resolve())}, **environments}
    with ExitStack() as stack:
        servers = {
            what: stack.enter_context(RunningServer(test_mode=False, environment=environment))
            for what, environment in environments.items()
        }
        credit = _granted(servers["a price"])
        rounds = []
        for number in range(given.rounds):  # each begins with another one, since who comes first has it easier
            order = [*servers][number % len(servers) :] + [*servers][: number % len(servers)]
            rounds.append(
                {what: _run(servers[what], credit if what == "a price" else "", given.seconds) for what in order}
            )
    first = next(iter(servers))
    lines = [
        f"{given.rounds} rounds of {given.seconds:g} s for each, interleaved, {_CONNECTIONS} connections; medians.",
        "",
        f"| server | claims/s | µs of processor for each | cost, of {first} |",
        "| --- | ---: | ---: | ---: |",
        *(_row(what, first, rounds) for what in servers),
    ]
    text = "\n".join(lines)
    print(text)
    keep("metering", "python -m bench.metering", text)


def _granted(server: RunningServer) -> str:
    words = [sys.executable, "-m", "app.cli.main", "credits", "grant", "9999"]
    done = subprocess.run(words, cwd=ROOT, env=server.environment, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[0]


def _run(server: RunningServer, credit: str, seconds: float) -> Round:
    name, owner = f"run-{next(_runs)}", "nst_" + secrets.token_urlsafe(32)
    before = processor_seconds(server)
    made = load.run(server.url, "claim.lua", name, owner, credit, connections=_CONNECTIONS, seconds=seconds)
    return Round(made.rate, (processor_seconds(server) - before) / (made.rate * seconds) * 1e6)


def _row(what: str, first: str, rounds: list[dict[str, Round]]) -> str:
    rate, cpu = (median(getattr(one[what], name) for one in rounds) for name in ("rate", "cpu"))
    cost = median(one[what].cpu / one[first].cpu for one in rounds)
    return f"| {what} | {rate:,.0f} | {cpu:,.0f} | {cost:.0%} |"


if __name__ == "__main__":
    main()
