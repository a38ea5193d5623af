"""How long a move takes to reach everyone who follows it, and what an idle socket and an idle wait weigh.

    python -m bench.push [followers …]

One server on the embedded engine, as it ships. The clock of a round starts when the request of the move is sent, so
the durable commit is included. The client is one thread that only takes down when bytes came, on the same machine:
what is printed is an upper bound of what the server adds.
"""

import gc
import json
import select
import socket
import statistics
import sys
import time
from pathlib import Path

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


def measure(followers: int) -> dict[str, float]:
    """Milliseconds and bytes for so many followers."""
    running = RunningServer(environment={"FENCEPOST_LIMIT_WAITERS": "15000"}, test_mode=False)
    with running as server, Api(server.port) as api:
        handoff = api.post(f"{V1}/handoff", payload={"bench": True}, states=STATES).body
        warm = [follow(server, handoff) for _ in range(WARM_UP)]
        for ws in warm:
            ws.cut()
        time.sleep(3)
        before = resident(server)
        following = [follow(server, handoff) for _ in range(followers)]
        time.sleep(3)
        weight = (resident(server) - before) / followers
        times = []
        for number in range(ROUNDS):
            times += arrivals([ws.socket for ws in following], api, handoff, number)
            time.sleep(0.3)
        for ws in following:
            ws.cut()
    times.sort()
    return {
        "p50 ms": statistics.median(times) * 1000,
        "p99 ms": times[min(len(times) - 1, len(times) * 99 // 100)] * 1000,
        "worst ms": times[-1] * 1000,
        "bytes per idle socket": weight,
    }


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
    """Print a table."""
    for followers in [int(word) for word in sys.argv[1:]] or [1, 1000, 5000]:
        measured = measure(followers)
        print(f"{followers:>6} followers  " + "  ".join(f"{name} {value:,.1f}" for name, value in measured.items()))
    print(f"  2000 waits      bytes per idle wait {wait_weight(2000):,.0f}")


if __name__ == "__main__":
    main()
