"""Whose allowance a request uses.

The peer's address, or what a trusted proxy says of it: with N trusted proxies, the N-th entry from the right of
X-Forwarded-For, because everything left of that is the caller's own invention (flask-limiter #41). IPv6 counts by
/64, and an IPv4 address written as IPv6 is the IPv4 address.
"""

from collections.abc import Mapping
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any

_FORWARDING = ("HTTP_X_FORWARDED_FOR", "HTTP_FORWARDED", "HTTP_X_REAL_IP")


def counted_as(address: str) -> str:
    """The form under which an address is counted; text that is no address is itself."""
    try:
        parsed: IPv4Address | IPv6Address = ip_address(address.strip().strip("[]").split("%")[0])
    except ValueError:
        return address.strip()[:64]
    if isinstance(parsed, IPv6Address):
        if parsed.ipv4_mapped is not None:
            return str(parsed.ipv4_mapped)
        return str(ip_network((parsed, 64), strict=False))
    return str(parsed)


@lru_cache(maxsize=1024)
def is_local(address: str) -> bool:
    """Whether it is a loopback, link-local or private address: a peer on this machine or network."""
    try:
        parsed = ip_address(address.split("%")[0])
    except ValueError:
        return True
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped is not None:
        parsed = parsed.ipv4_mapped
    return parsed.is_loopback or parsed.is_private or parsed.is_link_local


def is_forwarded(environ: Mapping[str, Any]) -> bool:
    """Whether a proxy says that it stands in front."""
    return any(name in environ for name in _FORWARDING)


def of_client(environ: Mapping[str, Any], trusted_proxies: int) -> str:
    """The caller's address as this server may believe it."""
    peer = environ.get("REMOTE_ADDR") or ""
    if trusted_proxies > 0:
        entries = [entry.strip() for entry in environ.get("HTTP_X_FORWARDED_FOR", "").split(",") if entry.strip()]
        if len(entries) >= trusted_proxies:
            return _without_port(entries[-trusted_proxies])
    return str(peer)


def _without_port(entry: str) -> str:
    if entry.startswith("["):
        return entry[1:].split("]")[0]
    return entry.split(":")[0] if entry.count(":") == 1 else entry
