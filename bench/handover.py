"""From a release to the moment the next in line has read its grant, with so many callers in line.

Each caller waits on a connection of its own. The holder releases, the head of the line is granted and becomes the
holder, and so on down the line; callers whose 25 seconds run out are replaced, so that the line keeps its length.
"""

import json
import socket
import time
from collections import deque
from dataclasses import dataclass
from statistics import quantiles

from tests.real.api import V1, Api, open_request
from tests.real.server import RunningServer

LINES = (1, 100, 1000)
_PARKED_SECONDS = 20.0


@dataclass
class _Waiting:
    connection: socket.socket
    since: float


def measure(server: RunningServer, callers: int, handovers: int) -> tuple[float, float]:
    """Median and 99th percentile in milliseconds over so many hand-overs."""
    key = f"line-of-{callers}"
    took: list[float] = []
    with Api(server.port) as api:
        namespace = api.lease("namespace")["namespace"]
        ask = {"key": key, "namespace": namespace, "ttl_seconds": 600}
        owner = api.lease("acquire", **ask)["owner_token"]
        body = json.dumps({**ask, "wait_seconds": 25})
        line = deque(_join(server, body) for _ in range(callers))
        time.sleep(0.5 + callers / 500)
        while len(took) < handovers:
            waiting = line.popleft()
            line.append(_join(server, body))
            if time.monotonic() - waiting.since > _PARKED_SECONDS:
                waiting.connection.close()
                continue
            began = time.perf_counter()
            api.lease("release", key=key, namespace=namespace, owner_token=owner)
            granted = _owner_of_grant(waiting.connection)
            if granted is None:  # its time was up at that very moment, and the one behind it has the lease
                owner = _next_owner(line)
                continue
            owner = granted
            took.append((time.perf_counter() - began) * 1000)
        for waiting in line:
            waiting.connection.close()
    return quantiles(took, n=100)[49], quantiles(took, n=100)[98]


def rows(handovers: int) -> list[str]:
    """A table row for each length of the line."""
    made = []
    for callers in LINES:
        with RunningServer(test_mode=False, environment={"FENCEPOST_LOG_LEVEL": "warning"}) as server:
            middle, tail = measure(server, callers, handovers)
        made.append(f"| {callers:,} | {middle:.1f} | {tail:.1f} |")
    return made


def _join(server: RunningServer, body: str) -> _Waiting:
    return _Waiting(open_request(server.port, f"{V1}/lease/acquire", body), time.monotonic())


def _next_owner(line: deque[_Waiting]) -> str:
    while True:
        owner = _owner_of_grant(line.popleft().connection)
        if owner is not None:
            return owner


def _owner_of_grant(connection: socket.socket) -> str | None:
    """Read one answer: the owner token of a grant, None for a refusal."""
    received = b""
    while b"}" not in received:
        piece = connection.recv(65_536)
        assert piece, "the connection was closed without an answer"
        received += piece
    connection.close()
    answer = json.loads(received.partition(b"\r\n\r\n")[2])
    return str(answer["owner_token"]) if answer["ok"] else None
