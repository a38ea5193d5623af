"""Runs in a network namespace of its own: sends to every forbidden place, and tells where packets went.

The namespace has a way to everywhere that ends in an interface where nobody listens, so a packet to any address leaves
the sender and is seen, and none leaves the machine. Prints one JSON object: phase to destinations. Started by
test_no_packet_leaves.py with `unshare --net`.
"""

import json
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ipaddress import ip_address

import gevent
from gevent import socket
from gevent.pool import Pool
from gevent.server import StreamServer

from app.core.outbox import Answered, Undelivered
from app.push.guard import Policy
from app.push.names import Names
from app.push.webhook import Webhook
from tests.push.forms import METADATA_IPV4, METADATA_IPV6, PRIVATE_IPV4, PRIVATE_IPV6, REFUSED, carriers
from tests.push.nameserver import Answers, name_server
from tests.push.receivers import KEY, OK, notice, read_request

PUBLIC, PUBLIC6 = "93.184.216.34", "2606:2800:220:1::1"
FORBIDDEN = (
    *PRIVATE_IPV4, *PRIVATE_IPV6, *METADATA_IPV4, *METADATA_IPV6,
    *(inner for text in PRIVATE_IPV4 + METADATA_IPV4 for inner in carriers(text)),
)  # fmt: skip
_EVERYTHING = 3
_IPV4, _IPV6 = 0x0800, 0x86DD
_ICMPV6 = 58


def furnish() -> None:
    """Interfaces, addresses and routes of the namespace."""
    for line in (
        "link set lo up",
        "link add way type veth peer name away",
        "link set way arp off up",
        "link set away arp off up",
        "addr add 192.0.2.2/24 dev way",
        "-6 addr add 2001:db8::2/64 dev way nodad",
        "route add default dev way",
        "-6 route add default dev way",
        f"addr add {PUBLIC}/32 dev lo",
        f"-6 addr add {PUBLIC6}/128 dev lo nodad",
    ):
        subprocess.run(["ip", *line.split()], check=True)


class Capture:
    """Every packet on every interface, as its protocol and destination."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(_EVERYTHING))
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
        self._seen: set[str] = set()
        gevent.spawn(self._read)

    def _read(self) -> None:
        while True:
            packet, address = self._socket.recvfrom(128)
            if address[1] == _IPV4:
                self._note(packet[9], packet[16:20], packet[(packet[0] & 15) * 4 :])
            elif address[1] == _IPV6 and packet[6] != _ICMPV6:  # the kernel's own talk with its neighbours
                self._note(packet[6], packet[24:40], packet[40:])

    def _note(self, protocol: int, destination: bytes, rest: bytes) -> None:
        ports = struct.unpack(">HH", rest[:4]) if protocol in (6, 17) else (0, 0)
        if protocol == 6 and rest[13] & 0x12 != 0x02:
            return  # of a connection, only its first packet says where somebody wanted to go
        name = {6: "tcp", 17: "udp"}.get(protocol, str(protocol))
        is_reply = name == "udp" and ports[0] == 5353
        if not is_reply:
            self._seen.add(f"{name} {ip_address(destination)} {ports[1]}")

    def take(self) -> list[str]:
        """Where packets went since the last call."""
        gevent.sleep(0.3)
        seen, self._seen = sorted(self._seen), set()
        return seen


@contextmanager
def public_receivers() -> Iterator[None]:
    def serve(peer: socket.socket, _address: object) -> None:
        read_request(peer)
        peer.sendall(OK)
        peer.close()

    servers = [StreamServer((address, 80), serve) for address in (PUBLIC, PUBLIC6)]
    for server in servers:
        server.start()
    yield
    for server in servers:
        server.stop()


def names_of(turn: Callable[[], int]) -> Callable[[str, int], Answers]:
    """fN: the N-th forbidden address. mN: with a public one beside it. rebind: another at each question."""

    def answer(name: str, kind: int) -> Answers:
        first = name.partition(".")[0]
        if first == "rebind":
            return [PUBLIC] if turn() % 2 else ["10.0.0.1"]
        if first == "public":
            return [PUBLIC, PUBLIC6]
        forbidden = FORBIDDEN[int(first[1:])]
        return [PUBLIC, forbidden, PUBLIC6] if first[0] == "m" else [forbidden]

    return answer


def main() -> None:
    furnish()
    capture = Capture()
    turns = iter(range(1_000_000))
    with public_receivers(), name_server(names_of(lambda: next(turns)), port=5353) as stub:
        lookup = Names(server="127.0.0.1", port=stub.port)
        sender = Webhook(policy=Policy(), lookup=lookup, server_keys=[KEY], deadline_seconds=2.0)

        def send(urls: list[str]) -> dict[str, int]:
            results: dict[str, int] = {}
            for result in Pool(40).imap_unordered(lambda url: sender.send(notice(url)), urls):
                word = result.cause if isinstance(result, Undelivered) else str(result.status)
                results[word] = results.get(word, 0) + 1
            return results

        told: dict[str, object] = {}
        naive = socket.socket()
        naive.settimeout(0.2)
        try:
            naive.connect(("10.0.0.1", 80))
        except OSError:
            naive.close()
        told["control"] = capture.take()
        told["literals sent"] = send([url for url, _ in REFUSED])
        told["literals"] = capture.take()
        told["names sent"] = send(
            [f"http://{kind}{number}.example/" for number in range(len(FORBIDDEN)) for kind in "fm"]
        )
        told["names"] = capture.take()
        told["rebinding sent"] = [
            isinstance(sender.send(notice("http://rebind.example/")), Answered) for _ in range(500)
        ].count(True)
        told["rebinding"] = capture.take()
        told["public sent"] = send(["http://public.example/", f"http://{PUBLIC}/", f"http://[{PUBLIC6}]/"])
        told["public"] = capture.take()
        lookup.close()
    json.dump(told, sys.stdout)


if __name__ == "__main__":
    main()
