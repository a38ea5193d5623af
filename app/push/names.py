"""Looks up the addresses of a name without a thread.

A name server that never answers must cost nobody else anything. The system's resolver blocks a thread for up to
half a minute, and gevent lends it ten threads that it shares with everything else (gevent #1904); with a name server
of their own, ten handoffs would stop every lookup of the process. c-ares asks over sockets on the event loop: a
hundred lookups that hang are a hundred small records. It reads /etc/hosts and resolv.conf, and no other source.
"""

from collections.abc import Callable
from ipaddress import ip_address
from pathlib import Path
from socket import SOCK_STREAM, gaierror

from gevent.resolver.ares import Resolver

from app.push.target import Address

Lookup = Callable[[str], list[Address]]
"""All addresses of a name. Raises NoAddress; gives up by itself after a few seconds."""


class NoAddress(Exception):
    """The name does not exist, has no address, or no name server said so in time."""


class Names:
    """The lookups of one process. Make it on the event loop that uses it, and close it.

    `server` and `port` name one name server; else those of `configuration` are asked, which is read again when the
    file changes: a server that runs for months outlives networks.
    """

    def __init__(
        self, *, server: str | None = None, port: int = 53, configuration: Path = Path("/etc/resolv.conf")
    ) -> None:
        self._server = server
        self._port = port
        self._configuration = configuration
        self._version = self._configured()
        self._resolver = self._open()

    def __call__(self, host: str) -> list[Address]:
        """Every address of `host`, an ASCII name, as the name servers say it now."""
        version = self._configured()
        if version != self._version:
            self._version = version
            self._resolver.close()
            self._resolver = self._open()
        try:
            found = self._resolver.getaddrinfo(host, 0, 0, SOCK_STREAM)
        except gaierror as fault:
            raise NoAddress(host) from fault
        return [ip_address(entry[4][0]) for entry in found]

    def close(self) -> None:
        """Let go of the sockets; lookups under way fail."""
        self._resolver.close()

    def _configured(self) -> int | None:
        try:
            return self._configuration.stat().st_mtime_ns
        except FileNotFoundError:
            return None

    def _open(self) -> Resolver:
        return Resolver(
            use_environ=False,
            servers=None if self._server is None else [self._server],
            udp_port=self._port,
            tcp_port=self._port,
            timeout=1.5,
            tries=2,
        )
