"""Text of a variable to a value. A parser that cannot read its text raises ValueError with what it needs.

The message completes the sentence "FENCEPOST_X must be …" and never repeats the text: it may hold a password.
"""

import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

Network = IPv4Network | IPv6Network

_SWITCH = {"1": True, "true": True, "on": True, "yes": True, "0": False, "false": False, "off": False, "no": False}
_HOST = re.compile(r"[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]", re.ASCII)


def words(text: str) -> str:
    """Any text, as it is."""
    return text


def path(text: str) -> Path:
    """A path; `~` is the home folder."""
    return Path(text).expanduser()


def switch(text: str) -> bool:
    """1/true/on/yes or 0/false/off/no."""
    try:
        return _SWITCH[text.strip().lower()]
    except KeyError:
        raise ValueError("on or off (also 1/0, true/false, yes/no)") from None


def whole(least: int, most: int) -> Callable[[str], int]:
    """A whole number in a range, both ends included."""

    def parse(text: str) -> int:
        if re.fullmatch(r"[0-9]{1,18}", text, re.ASCII) and least <= int(text) <= most:
            return int(text)
        raise ValueError(f"a whole number from {least} to {most}")

    return parse


def seconds(least: float, most: float) -> Callable[[str], float]:
    """A number of seconds in a range, fractions allowed."""

    def parse(text: str) -> float:
        if re.fullmatch(r"[0-9]{1,12}(\.[0-9]{1,6})?", text, re.ASCII) and least <= float(text) <= most:
            return float(text)
        raise ValueError(f"a number of seconds from {least:g} to {most:g}")

    return parse


def one_of(*choices: str) -> Callable[[str], str]:
    """One of some words."""

    def parse(text: str) -> str:
        if text.lower() in choices:
            return text.lower()
        raise ValueError("one of " + ", ".join(choices))

    return parse


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]


def ports(text: str) -> tuple[int, ...]:
    """A comma list of port numbers."""
    items = _items(text)
    if not items or not all(re.fullmatch(r"[0-9]{1,5}", item, re.ASCII) and 0 < int(item) < 65536 for item in items):
        raise ValueError("a comma list of port numbers from 1 to 65535")
    return tuple(int(item) for item in items)


def networks(text: str) -> tuple[Network, ...]:
    """A comma list of networks in CIDR form."""
    try:
        return tuple(ip_network(item) for item in _items(text))
    except ValueError:
        raise ValueError("a comma list of networks such as 10.0.0.0/8,fd00::/8 (no host bits set)") from None


def dollars(text: str) -> Decimal | None:
    """A price in US dollars; 0 is free, which is None."""
    try:
        price = Decimal(text) if re.fullmatch(r"[0-9]{1,4}(\.[0-9]{1,6})?", text, re.ASCII) else None
    except InvalidOperation:  # pragma: no cover - the expression admits only decimals
        price = None
    if price is None:
        raise ValueError("a price in US dollars such as 0.010, with at most six decimals")
    return price or None


def _split(text: str) -> SplitResult | None:
    """The parts of an address, None if it cannot be one or its port is out of range."""
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return None
    return parts if text.isprintable() and " " not in text else None


def web_address(text: str) -> str:
    """An http or https address, without a slash at its end."""
    parts = _split(text)
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
        raise ValueError("an address such as https://fencepost.example.com")
    return text.rstrip("/")


def public_url(text: str) -> str:
    """The server's own address: scheme, host and port, nothing after them."""
    address = web_address(text)
    parts = urlsplit(address)
    if parts.path or parts.query or parts.fragment:
        raise ValueError("an address without path, query or fragment, such as https://fencepost.example.com")
    return f"{parts.scheme}://{parts.netloc.lower()}"


def origins(text: str) -> tuple[str, ...]:
    """A comma list of origins."""
    try:
        return tuple(public_url(item) for item in _items(text))
    except ValueError:
        raise ValueError("a comma list of origins such as https://board.example.com") from None


def listen_address(text: str) -> tuple[str, int]:
    """host:port, [v6]:port or :port (every interface)."""
    host, _, port = text.rpartition(":")
    host = host or "0.0.0.0"  # noqa: S104 - written as an empty host on purpose
    if not _HOST.fullmatch(host) or not re.fullmatch(r"[0-9]{1,5}", port, re.ASCII) or int(port) > 65535:
        raise ValueError("an address to listen on such as 127.0.0.1:8000 or [::1]:8000")
    return host, int(port)


def database_url(text: str) -> str:
    """sqlite:///path or postgresql://…; `postgres://` is read as `postgresql://`."""
    address = re.sub(r"^postgres://", "postgresql://", text)
    parts = _split(address)
    if parts is not None and parts.scheme == "postgresql" and len(parts.path) > 1:
        return address
    if address.startswith("sqlite:///") and len(address) > len("sqlite:///"):
        return address
    raise ValueError("sqlite:///FILE (four slashes for an absolute path) or postgresql://USER:PASSWORD@HOST/NAME")


def bus_url(text: str) -> str:
    """redis://… or rediss://…, or the database's own address where a pooler stands before it."""
    parts = _split(text)
    if parts is None or parts.scheme not in ("redis", "rediss", "unix", "postgresql", "postgres"):
        raise ValueError("an address such as redis://localhost:6379/0 or postgresql://…")
    return text


def secret(text: str) -> str:
    """A key of at least 32 characters."""
    if len(text) < 32 or len(set(text)) < 8:
        raise ValueError("at least 32 random characters, for example from `openssl rand -hex 32`")
    return text
