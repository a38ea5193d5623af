"""Which web pages may call: the origins that a browser's `Origin` header may name.

A browser sends a person's reach along with whatever a page asks of it, so a server on somebody's own machine must not
answer the pages of strangers. A program sends no such header and is let through. What an origin is judged by is a list
made at start and never the request's `Host`, which a rebound name makes equal to any origin.
"""

from collections.abc import Iterable
from urllib.parse import urlsplit

_DEFAULT_PORTS = {"http": 80, "https": 443}
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


def origin_of(url: str) -> str | None:
    """`scheme://host:port` in lower case with the port written out; None for what is no web origin."""
    try:
        parts = urlsplit(url.strip().lower())
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in _DEFAULT_PORTS or not parts.hostname or parts.username is not None:
        return None
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}:{port or _DEFAULT_PORTS[parts.scheme]}"


class Origins:
    """The allowed ones. One of the loopback's three names stands for all three: they are the same machine."""

    def __init__(self, urls: Iterable[str]) -> None:
        self._allowed: set[str] = set()
        for origin in filter(None, map(origin_of, urls)):
            self._allowed.add(origin)
            scheme, host, port = _parts(origin)
            if host in _LOOPBACK:
                self._allowed |= {f"{scheme}://{name}:{port}" for name in _LOOPBACK}

    def allow(self, header: str | None) -> bool:
        """Whether a request with this `Origin` header may be answered; None is a request without one."""
        return header is None or origin_of(header) in self._allowed


def _parts(origin: str) -> tuple[str, str, str]:
    scheme, rest = origin.split("://")
    host, _, port = rest.rpartition(":")
    return scheme, host, port
