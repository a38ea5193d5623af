"""How long a move takes to reach everyone who follows it, and what an idle socket and an idle wait weigh.

    python -m bench.push [followers …]

One server on the embedded engine, as it ships. The clock of a round starts when the request of the move is sent, so
the durable commit is included. The client is one thread on the same machine that only takes down when bytes came: what
is printed is an upper bound of what the server adds. Beside it stands what the serving process spent of its processor
on each follower, which other programs on the machine disturb less.
"""

import gc
import json
import os
import select
import socket
import statistics
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from bench.tables import keep
from tests.real.api import V1, Api
from tests.real.server import RunningServer
from tests.real.stream.rawsocket import RawSocket

ROUNDS = 10
WARM_UP = 100
STATES = [f"s{number}" for number in range(ROUNDS + 2)]


def resident(server: RunningServer) -> int:
    """Bytes of memory of the serving process."""
    [worker] = server.worker_pids
    return int(Path(f"/proc/{worker}/statm").read_text(encoding="ascii").split()[1]) * 4096


def follow(server: RunningServer, handoff: dict[str, str]) -> RawSocket:
    """A socket that is live."""
    ws = RawSocket(server.port, headers={"Authorization": f"Bearer {handoff['receiver_token']}"}, timeout=60)
    ws.send({"t": "sub", "id": "a", "handoff": handoff["handoff_id"], "after": 1})
    ws.next("live", timeout=60)
    return ws


def park(server: RunningServer, handoff: dict[str, str]) -> socket.socket:
    """A waiting read that is under way."""
    raw = socket.create_connection(("127.0.0.1", server.port), timeout=60)
    head = f"GET {V1}/handoff/{handoff['handoff_id']}/wait/25 HTTP/1.1\r\nHost: bench\r\n"
    raw.sendall(f"{head}Authorization: Bearer {handoff['receiver_token']}\r\n\r\n".encode())
    return raw


def arrivals(sockets: list[socket.socket], api: Api, handoff: dict[str, str], number: int) -> list[float]:
    """Move once; seconds until each socket had bytes."""
    poll = select.epoll()
    by_descriptor = {each.fileno(): each for each in sockets}
    for descriptor in by_descriptor:
        poll.register(descriptor, select.EPOLLIN)
    request = json.dumps({"from": STATES[number], "nonce": f"n{number}"}).encode()
    head = f"POST {V1}/handoff/{handoff['handoff_id']}/{STATES[number + 1]} HTTP/1.1\r\nHost: bench\r\n"
    head += f"Authorization: Bearer {handoff['owner_token']}\r\nContent-Type: application/json\r\n"
    mover = socket.create_connection(("127.0.0.1", api.port), timeout=60)
    gc.disable()
    began = time.monotonic()
    mover.sendall(f"{head}Content-Length: {len(request)}\r\n\r\n".encode() + request)
    came: dict[int, float] = {}
    while len(came) < len(by_descriptor):
        for descriptor, _ in poll.poll(30, 10_000):
            by_descriptor[descriptor].recv(65536)
            came.setdefault(descriptor, time.monotonic() - began)
    gc.enable()
    assert b" 200 " in mover.recv(65536)
    mover.close()
    poll.close()
    return list(came.values())


def processor_seconds(server: RunningServer) -> float:
    """What the serving process has used so far."""
    [worker] = server.worker_pids
    fields = Path(f"/proc/{worker}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(followers: int) -> str:
    """A row of the table for so many followers."""
    rounds: list[list[float]] = []
    running = RunningServer(environment={"FENCEPOST_LIMIT_WAITERS": "15000"}, test_mode=False)
    with running as server, Api(server.port) as api:
        handoff = api.post(f"{V1}/handoff", payload={"bench": True}, states=STATES).body
        for ws in [follow(server, handoff) for _ in range(WARM_UP)]:
            ws.cut()
        time.sleep(3)
        before = resident(server)
        following = [follow(server, handoff) for _ in range(followers)]
        time.sleep(3)
        weight = (resident(server) - before) / followers
        spent = processor_seconds(server)
        for number in range(ROUNDS):
            rounds.append(sorted(arrivals([ws.socket for ws in following], api, handoff, number)))
            time.sleep(0.3)
        spent = processor_seconds(server) - spent
        for ws in following:
            ws.cut()
    middle = statistics.median(times[len(times) // 2] for times in rounds) * 1000
    late = statistics.median(times[min(len(times) - 1, len(times) * 99 // 100)] for times in rounds) * 1000
    worst = max(times[-1] for times in rounds) * 1000
    each = f"{spent / ROUNDS / followers * 1e6:,.0f}" if followers > 1 else ""
    heavy = f"{weight / 1000:,.1f}" if followers > 1 else ""
    return f"| {followers:,} | {middle:,.0f} | {late:,.0f} | {worst:,.0f} | {each} | {heavy} |"


def wait_weight(waits: int) -> float:
    """Bytes of an idle waiting read."""
    with RunningServer(environment={"FENCEPOST_LIMIT_WAITERS": "15000"}, test_mode=False) as server:
        with Api(server.port) as api:
            handoff = api.post(f"{V1}/handoff", payload={"bench": True}, states=STATES).body
        warm = [park(server, handoff) for _ in range(WARM_UP)]
        time.sleep(1)
        for raw in warm:
            raw.close()
        time.sleep(3)
        before = resident(server)
        parked = [park(server, handoff) for _ in range(waits)]
        time.sleep(3)
        weight = (resident(server) - before) / waits
        for raw in parked:
            raw.close()
    return weight


def main() -> None:
    """Print the section, and keep it in the docs."""
    load = ", ".join(f"{number:.1f}" for number in os.getloadavg())
    counts = [int(word) for word in sys.argv[1:]] or [1, 1000, 5000]
    lines = [
        f"{ROUNDS} moves each; p50 and p99 over the followers, of these the median over the moves; "
        f"{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} cores, load before the run {load}.",
        "",
        "| followers | p50 ms | p99 ms | the very last of all, ms | µs of processor for each | kB of an idle socket |",
        "| ---: | ---: | ---: | ---: | ---: | ---: |",
        *(measure(followers) for followers in counts),
        "",
        f"An idle waiting read weighs {wait_weight(2000) / 1000:,.1f} kB.",
    ]
    text = "\n".join(lines)
    print(text)
    keep("push", "python -m bench.push", text)


if __name__ == "__main__":
    main()
