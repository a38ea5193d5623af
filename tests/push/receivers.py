"""Receivers of webhooks on the loopback: well-behaved, slow and hostile ones."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from ipaddress import ip_network

import gevent
from gevent import socket
from gevent.server import StreamServer
from gevent.ssl import SSLContext

from app.core.outbox import Notice
from app.push.guard import Policy

LOOPBACK = Policy(allow=(ip_network("127.0.0.0/8"),))
KEY = b"k" * 32
HANDOFF = "0123456789abcdef0123456789abcdef"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"

Behaviour = Callable[[socket.socket], None]


def notice(url: str, *, version: int = 2, body: bytes = b'{"event":"agent_handoff.changed"}') -> Notice:
    return Notice(HANDOFF, version, url, body, expires_at=2**60)


@dataclass
class Receiver:
    """What came in, whole requests only."""

    port: int = 0
    requests: list[bytes] = field(default_factory=list)
    connections: int = 0

    def url(self, path: str = "/hook", *, host: str = "127.0.0.1", scheme: str = "http") -> str:
        return f"{scheme}://{host}:{self.port}{path}"

    def headers(self, number: int = -1) -> dict[str, str]:
        head = self.requests[number].partition(b"\r\n\r\n")[0].decode("ascii")
        lines = head.split("\r\n")[1:]
        names = [line.partition(": ")[0].lower() for line in lines]
        assert len(set(names)) == len(names)
        return dict(zip(names, (line.partition(": ")[2] for line in lines), strict=True))

    def body(self, number: int = -1) -> bytes:
        return self.requests[number].partition(b"\r\n\r\n")[2]


def read_request(peer: socket.socket) -> bytes:
    received = b""
    while b"\r\n\r\n" not in received:
        piece = peer.recv(65_536)
        if not piece:
            return received
        received += piece
    head, _, body = received.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
    while len(body) < length:
        body += peer.recv(65_536)
    return head + b"\r\n\r\n" + body


def says(answer: bytes) -> Behaviour:
    return lambda peer: peer.sendall(answer)


def _ok(peer: socket.socket) -> None:
    peer.sendall(OK)


def says_nothing(peer: socket.socket) -> None:
    gevent.sleep(600)


def says_nothing_until_left(peer: socket.socket) -> None:
    while peer.recv(1_024):
        pass


def drips(start: bytes, drop: bytes, *, pause_seconds: float = 0.02) -> Behaviour:
    """Send `start`, then `drop` again and again, for ever."""

    def behave(peer: socket.socket) -> None:
        peer.sendall(start)
        while True:
            gevent.sleep(pause_seconds)
            peer.sendall(drop)

    return behave


def floods(start: bytes, piece: bytes) -> Behaviour:
    """Send `start`, then `piece` without end, as fast as it goes."""

    def behave(peer: socket.socket) -> None:
        peer.sendall(start)
        while True:
            peer.sendall(piece * 1_000)

    return behave


@contextmanager
def receiver(behave: Behaviour = _ok, *, tls: SSLContext | None = None, reads: bool = True) -> Iterator[Receiver]:
    """A receiver that runs until the end of the block. With `reads` off it behaves before it reads a byte."""
    seen = Receiver()

    def serve(peer: socket.socket, _address: object) -> None:
        seen.connections += 1
        try:
            if reads:
                seen.requests.append(read_request(peer))
            behave(peer)
        except (BrokenPipeError, ConnectionResetError):
            return  # the sender had seen enough
        finally:
            peer.close()

    server = (
        StreamServer(("127.0.0.1", 0), serve, backlog=512)
        if tls is None
        else StreamServer(("127.0.0.1", 0), serve, backlog=512, ssl_context=tls)
    )
    server.start()
    seen.port = int(server.address[1])
    try:
        yield seen
    finally:
        server.stop(timeout=0)
