"""A name server on the loopback that says what it is told, changes its mind, or says nothing."""

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from ipaddress import ip_address

import gevent
from gevent import socket

A, AAAA = 1, 28
SERVFAIL, NXDOMAIN = 2, 3

Answers = list[str] | int | None
"""Addresses of both kinds, an error code, or None to stay silent."""


@dataclass
class NameServer:
    """`answer` is asked for each question; `asked` lists them, the kind last."""

    answer: Callable[[str, int], Answers]
    port: int = 0
    ttl_seconds: int = 0
    asked: list[tuple[str, int]] = field(default_factory=list)

    def reply(self, question: bytes) -> bytes | None:
        name, kind, end = _question(question)
        self.asked.append((name, kind))
        answers = self.answer(name, kind)
        if answers is None:
            return None
        code = answers if isinstance(answers, int) else 0
        records = [] if isinstance(answers, int) else [ip_address(text).packed for text in answers]
        records = [packed for packed in records if len(packed) == (4 if kind == A else 16)]
        head = question[:2] + struct.pack(">HHHHH", 0x8180 | code, 1, len(records), 0, 0)
        answer = b"".join(
            struct.pack(">HHHIH", 0xC00C, kind, 1, self.ttl_seconds, len(packed)) + packed for packed in records
        )
        return head + question[12:end] + answer


def _question(packet: bytes) -> tuple[str, int, int]:
    labels, place = [], 12
    while packet[place]:
        length = packet[place]
        labels.append(packet[place + 1 : place + 1 + length].decode("ascii"))
        place += 1 + length
    return ".".join(labels).lower(), struct.unpack(">H", packet[place + 1 : place + 3])[0], place + 5


@contextmanager
def name_server(
    answer: Callable[[str, int], Answers], *, address: str = "127.0.0.1", port: int = 0, ttl_seconds: int = 0
) -> Iterator[NameServer]:
    """Run it until the end of the block. By default answers may live for no time at all, so nobody may keep them."""
    stub = NameServer(answer, ttl_seconds=ttl_seconds)
    listener = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    listener.bind((address, port))
    stub.port = listener.getsockname()[1]

    def serve() -> None:
        while True:
            question, asker = listener.recvfrom(4_096)
            reply = stub.reply(question)
            if reply is not None:
                listener.sendto(reply, asker)

    server = gevent.spawn(serve)
    try:
        yield stub
    finally:
        server.kill()
        listener.close()
