"""Sends one notice to one receiver, once.

The order is the defence. The URL is read once; the name is looked up once; every address that came back is judged; the
connection goes to one of those very addresses, with the host's own name in the Host header and in TLS. Nothing in
between asks again, so a name that changes its mind between check and use changes nothing.

The rest follows from not being a browser: no redirects, no proxies, no netrc, no cookies, because nothing here knows of
them. Of the answer one kibibyte is read, enough for its status, and none is kept. A deadline on the event loop covers
everything from the lookup to the last byte, so a receiver that drips lives no longer than one that is silent.
"""

import ssl
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import cache

import gevent
from gevent import socket
from gevent.ssl import SSLContext

from app import __version__
from app.clock import wall
from app.core.outbox import Answered, Notice, Undelivered
from app.push.answer import read_answer
from app.push.guard import Allowed, Policy, judge_destination, judge_url
from app.push.names import Lookup, NoAddress
from app.push.target import Address, Target
from app.tokens import notify_secret, sign_notice

DEADLINE_SECONDS = 5.0
_MOST_ADDRESSES_TRIED = 3
_CONNECT_SECONDS = 2.0

Connect = Callable[[Sequence[Address], int], socket.socket | None]


def connect(addresses: Sequence[Address], port: int) -> socket.socket | None:
    """A connection to the first of these addresses that takes one. They are numbers: nothing is looked up."""
    tried = addresses[:_MOST_ADDRESSES_TRIED]
    for address in tried:
        connection = socket.socket(socket.AF_INET if address.version == 4 else socket.AF_INET6, socket.SOCK_STREAM)
        try:
            connection.settimeout(_CONNECT_SECONDS if len(tried) > 1 else None)
            connection.connect((str(address), port))
        except OSError:
            connection.close()
        except BaseException:
            connection.close()
            raise
        else:
            connection.settimeout(None)
            return connection
    return None


class Webhook:
    """Delivers notices. `server_keys` holds the signing key, and after it older ones still to be signed with too."""

    def __init__(
        self,
        *,
        policy: Policy,
        lookup: Lookup,
        server_keys: Sequence[bytes],
        deadline_seconds: float = DEADLINE_SECONDS,
        trust: SSLContext | None = None,
        connect: Connect = connect,
        wall: Callable[[], float] = wall,
    ) -> None:
        self._policy = policy
        self._lookup = lookup
        self._server_keys = tuple(server_keys)
        self._deadline_seconds = deadline_seconds
        self._trust = trust
        self._connect = connect
        self._wall = wall

    def send(self, notice: Notice) -> Answered | Undelivered:
        """Try once, within the deadline. Never raises for what a receiver or a name server does."""
        with gevent.Timeout(self._deadline_seconds) as deadline:
            try:
                return self._send(notice)
            except gevent.Timeout as fault:
                if fault is not deadline:
                    raise
                return Undelivered("timeout")

    def _send(self, notice: Notice) -> Answered | Undelivered:
        verdict = judge_url(notice.url, self._policy)
        if not isinstance(verdict, Allowed):
            return Undelivered("refused")
        target = verdict.target
        try:
            addresses = [target.address] if target.address is not None else self._lookup(target.host)
        except NoAddress:
            return Undelivered("name")
        if not addresses:
            return Undelivered("name")
        if any(judge_destination(address, target.port, self._policy) for address in addresses):
            return Undelivered("refused")
        connection = self._connect(addresses, target.port)
        if connection is None:
            return Undelivered("connection")
        with closing(connection):
            return self._exchange(connection, target, notice)

    def _exchange(self, connection: socket.socket, target: Target, notice: Notice) -> Answered | Undelivered:
        try:
            if target.scheme == "https":
                connection = (self._trust or _system_trust()).wrap_socket(connection, server_hostname=target.host)
        except (ssl.SSLError, OSError, ValueError):
            return Undelivered("tls")
        with closing(connection):
            try:
                connection.sendall(self._request(target, notice))
                return read_answer(connection.recv, now=self._wall()) or Undelivered("answer")
            except OSError:
                return Undelivered("connection")

    def _request(self, target: Target, notice: Notice) -> bytes:
        stamp = int(self._wall())
        secrets = [notify_secret(key, notice.handoff_id) for key in self._server_keys]
        lines = (
            f"POST {target.path} HTTP/1.1",
            f"Host: {target.authority}",
            f"User-Agent: Fencepost/{__version__}",
            "Content-Type: application/json",
            f"Content-Length: {len(notice.body)}",
            f"webhook-id: {notice.message_id}",
            f"webhook-timestamp: {stamp}",
            f"webhook-signature: {sign_notice(secrets, notice.message_id, stamp, notice.body)}",
            "Connection: close",
        )
        return "".join(f"{line}\r\n" for line in lines).encode("ascii") + b"\r\n" + notice.body


@cache
def _system_trust() -> SSLContext:
    """Made at the first delivery that needs it: reading the certificates takes a noticeable part of a start."""
    context = SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_default_certs()
    return context
