"""Runs in a network and mount namespace of its own: a real server among receivers that hang, drip and flood.

Its name server is one that never answers: `/etc/resolv.conf` is bound to a file that names this machine, where port 53
is open and silent. Prints one JSON object of figures. Started by test_webhook_load.py.
"""

import json
import multiprocessing
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from tests.real.api import V1, Api
from tests.real.server import RunningServer

BAD, DEAD_NAMES = 60, 60
SECONDS = 20.0
FILLING_SECONDS, RETRYING_SECONDS = 15, 30
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


def hang(peer: socket.socket) -> None:
    while peer.recv(65_536):
        pass


def drip(peer: socket.socket) -> None:
    peer.sendall(b"HTTP/1.1 500 No\r\n")
    while True:
        time.sleep(0.1)
        peer.sendall(b"x")


def flood(peer: socket.socket) -> None:
    peer.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        peer.sendall(b"y" * 65_536)


def accept(behave: Callable[[socket.socket], None], listener: socket.socket) -> None:
    def serve(peer: socket.socket) -> None:
        try:
            behave(peer)
        except OSError:
            peer.close()

    while True:
        peer, _ = listener.accept()
        threading.Thread(target=serve, args=(peer,), daemon=True).start()


def receivers(pipe: Connection) -> None:
    """All of them, in a process that is not the one that measures."""
    ports = []
    for number in range(BAD):
        listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        ports.append(listener.getsockname()[1])
        behave = (hang, drip, flood)[number % 3]
        threading.Thread(target=accept, args=(behave, listener), daemon=True).start()
    pipe.send(ports)
    pipe.recv()


def moves(api: Api, urls: list[str | None], seconds: float) -> list[float]:
    """How long each move took, one after the other at a steady pace."""
    taken, ends, number = [], time.monotonic() + seconds, 0
    while time.monotonic() < ends:
        url = urls[number % len(urls)]
        number += 1
        members: dict[str, Any] = {"payload": 1, **({"notify_url": url} if url else {})}
        made = api.post(f"{V1}/handoff", **members).body
        headers = {"Authorization": f"Bearer {made['receiver_token']}"}
        began = time.monotonic()
        answer = api.post(f"{V1}/handoff/{made['handoff_id']}/done", headers=headers, **{"from": "offered"})
        taken.append(time.monotonic() - began)
        assert answer.status == 200
        time.sleep(0.02)
    return sorted(taken)


def resident_kib(server: RunningServer) -> int:
    (worker,) = server.worker_pids
    status = Path(f"/proc/{worker}/status").read_text(encoding="ascii")
    return int(status.partition("VmRSS:")[2].split()[0])


def tried(api: Api) -> int:
    """Tries so far, whatever came of them."""
    lines = api.get("/metrics").raw.decode().splitlines()
    return sum(int(float(line.split()[-1])) for line in lines if line.startswith("fencepost_webhook_tries_total{"))


def retry(server: RunningServer, api: Api) -> tuple[int, int]:
    """Let what failed come due again and again, with no move beside it: how many tries, how many KiB more memory.

    New rows would fill the database's caches, which are bounded but not yet full; so nothing new is written here.
    Measured from when every place of the senders has been taken once.
    """
    tries = memory = 0
    for second in range(FILLING_SECONDS + RETRYING_SECONDS):
        if second == FILLING_SECONDS:
            tries, memory = tried(api), resident_kib(server)
        server.set_clock(60.0 * (second + 1))
        time.sleep(1)
    return tried(api) - tries, resident_kib(server) - memory


def main(folder: Path) -> None:
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    (folder / "resolv.conf").write_text("nameserver 127.0.0.1\n", encoding="ascii")
    subprocess.run(["mount", "--bind", folder / "resolv.conf", "/etc/resolv.conf"], check=True)
    silent = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    silent.bind(("127.0.0.1", 53))
    here, there = multiprocessing.Pipe()
    process = multiprocessing.Process(target=receivers, args=(there,), daemon=True)
    process.start()
    bad: list[str | None] = [f"http://127.0.0.1:{port}/" for port in here.recv()]
    bad += [f"http://dead{number}.example:8080/" for number in range(DEAD_NAMES)]
    environment = {"FENCEPOST_NOTIFY_ALLOW": "127.0.0.0/8", "FENCEPOST_LIMIT_LIVE_HANDOFFS": "100000"}
    with RunningServer(environment=environment, data_dir=folder) as server, Api(server.port) as api:
        quiet = moves(api, [None], 8.0)
        moves(api, bad, 8.0)
        among = moves(api, bad, SECONDS)
        retries, grown = retry(server, api)
    here.send("end")
    json.dump(
        {
            "moves": len(among),
            "quiet_p50_ms": round(quiet[len(quiet) // 2] * 1000, 2),
            "quiet_p99_ms": round(quiet[len(quiet) * 99 // 100] * 1000, 2),
            "among_p50_ms": round(among[len(among) // 2] * 1000, 2),
            "among_p99_ms": round(among[len(among) * 99 // 100] * 1000, 2),
            "retries": retries,
            "memory_grown_kib": grown,
        },
        sys.stdout,
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
