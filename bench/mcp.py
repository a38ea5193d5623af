"""`python -m bench.mcp [--rounds N] [--seconds S]`: the same jobs over REST and as MCP tools, interleaved.

Beside the rates stands what the serving process spent of its processor on a request, which other programs on the
machine disturb less.
"""

import argparse
import os
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench import load
from bench.tables import keep
from tests.real.server import RunningServer

CONNECTIONS = (1, 16, 64)
GOAL = 0.75


@dataclass(frozen=True)
class Round:
    """One run over one surface: requests a second, microseconds of processor for each."""

    rate: float
    cpu: float


def main() -> None:
    """Measure, print, and keep it in the docs."""
    parser = argparse.ArgumentParser(prog="python -m bench.mcp", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0)
    given = parser.parse_args()
    lines = [
        f"{given.rounds} rounds of {given.seconds:g} s for each surface, interleaved; medians. The goal is {GOAL:.0%}.",
        "",
        "| connections | REST requests/s | tools/call requests/s | rate, tool of REST | µs of processor, REST | tool | "
        "cost, REST of tool |",
        "| ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    with RunningServer(test_mode=False, environment={"FENCEPOST_LOG_LEVEL": "warning"}) as server:
        for connections in CONNECTIONS:
            rounds = [
                tuple(_run(server, surface, connections, given.seconds) for surface in ("rest", "mcp"))
                for _ in range(given.rounds)
            ]
            lines.append(_row(connections, rounds))
    text = "\n".join(lines)
    print(text)
    keep("tools", "python -m bench.mcp", text)


def _run(server: RunningServer, surface: str, connections: int, seconds: float) -> Round:
    before = processor_seconds(server)
    made = load.run(server.url, "mcp.lua", surface, connections=connections, seconds=seconds)
    return Round(made.rate, (processor_seconds(server) - before) / (made.rate * seconds) * 1e6)


def processor_seconds(server: RunningServer) -> float:
    """What the serving processes have used so far."""
    ticks = 0
    for pid in server.worker_pids:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def _row(connections: int, rounds: list[tuple[Round, ...]]) -> str:
    rates = [median(pair[place].rate for pair in rounds) for place in (0, 1)]
    costs = [median(pair[place].cpu for pair in rounds) for place in (0, 1)]
    rate = median(tool.rate / rest.rate for rest, tool in rounds)
    cost = median(rest.cpu / tool.cpu for rest, tool in rounds)
    shown = (
        f"{rates[0]:,.0f}",
        f"{rates[1]:,.0f}",
        f"{rate:.0%}",
        f"{costs[0]:,.0f}",
        f"{costs[1]:,.0f}",
        f"{cost:.0%}",
    )
    return f"| {connections} | {' | '.join(shown)} |"


if __name__ == "__main__":
    main()
