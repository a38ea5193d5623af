"""Looks up the addresses of a name without a thread.

A name server that never answers must cost nobody else anything. The system's resolver blocks a thread for up to
half a minute, and gevent lends it ten threads that it shares with everything else (gevent #1904); with a name server
of their own, ten handoffs would stop every lookup of the process. c-ares asks over sockets on the event loop: a
hundred lookups that hang are a hundred small records. It reads /etc/hosts and resolv.conf, and no other source.
"""

from collections.abc import Callable
from ipaddress import ip_address
from socket import SOCK_STREAM, gaierror

from gevent.resolver.ares import Resolver

from app.push.target import Address

Lookup = Callable[[str], list[Address]]
"""All addresses of a name. Raises NoAddress; gives up by itself after a few seconds."""


class NoAddress(Exception):
    """The name does not exist, has no address, or no name server said so in time."""


class Names:
    """The lookups of one process. Make it on the event loop that uses it, and close it."""

    def __init__(self, *, server: str | None = None, port: int = 53) -> None:
        self._resolver = Resolver(
            use_environ=False,
            servers=None if server is None else [server],
            udp_port=port,
            tcp_port=port,
            timeout=1.5,
            tries=2,
        )

    def __call__(self, host: str) -> list[Address]:
        """Every address of `host`, an ASCII name, as the name servers say it now."""
        try:
            found = self._resolver.getaddrinfo(host, 0, 0, SOCK_STREAM)
        except gaierror as fault:
            raise NoAddress(host) from fault
        return [ip_address(entry[4][0]) for entry in found]

    def close(self) -> None:
        """Let go of the sockets; lookups under way fail."""
        self._resolver.close()
