"""Reads a webhook's URL: the only parser of one, so that what was judged is what is connected to.

Most forged-request holes are two parsers that disagree about one text. Here the text becomes a `Target` once; the
sender takes host, port and path from it and never sees the text again. What two readers could take differently
(a backslash, white space, a control character, user information) is refused instead of repaired.

A host is one of three things, decided as browsers decide it: an IPv6 literal in brackets; an IPv4 literal, when its
last label is a number, in any spelling that `inet_aton` takes (`127.1`, `0x7f000001`, `0177.0.0.1`); else a name.
Characters outside ASCII are mapped first (UTS 46), so that full-width digits and ideographic dots are just digits
and dots.
"""

import re
import unicodedata
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import Literal

import idna

LONGEST_URL = 2_048
DEFAULT_PORTS = {"http": 80, "https": 443}

Address = IPv4Address | IPv6Address
Reason = Literal["length", "characters", "scheme", "user_info", "host", "port", "address", "metadata"]

_PARTS = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<authority>[^/?#]*)(?P<path>[^?#]*)(?P<query>[^#]*)")
_AUTHORITY = re.compile(r"(?P<host>\[[^\[\]]*\]|[^:\[\]]*)(?::(?P<port>.*))?", re.DOTALL)
_PORT = re.compile(r"[1-9][0-9]{0,4}", re.ASCII)
_BRACKETED = re.compile(r"[0-9A-Fa-f:.]+", re.ASCII)
_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)", re.ASCII)
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*", re.ASCII)
_ESCAPED = frozenset('"<>^`{|}')


@dataclass(frozen=True, slots=True)
class Refused:
    """A webhook may not go there. `reason` is a stable word, `says` a sentence for the caller."""

    reason: Reason
    says: str


@dataclass(frozen=True, slots=True)
class Target:
    """Where a webhook goes.

    `host` is lower-case ASCII without brackets or a closing dot; `address` is set when it is a literal, and `host`
    then is its usual spelling. `path` is what the request line carries, the query included.
    """

    scheme: str
    host: str
    port: int
    path: str
    address: Address | None

    @property
    def authority(self) -> str:
        """The value of the Host header: brackets round IPv6, the port unless it is the scheme's own."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def shown(self) -> str:
        """The URL for people: without its query, which may hold a secret."""
        return f"{self.scheme}://{self.authority}{self.path.partition('?')[0]}"


def read(url: str) -> Target | Refused:
    """Take a URL apart. Judges its form only, not where it leads."""
    if len(url) > LONGEST_URL:
        return Refused("length", f"The URL is longer than {LONGEST_URL:,} characters")
    if any(_is_ambiguous(character) for character in url):
        return Refused("characters", "The URL holds white space, a control character or a backslash")
    parts = _PARTS.match(url)
    if parts is None or parts["scheme"].lower() not in DEFAULT_PORTS:
        return Refused("scheme", "The URL does not begin with http:// or https://")
    if "@" in parts["authority"]:
        return Refused("user_info", "The URL holds user information before its host")
    scheme = parts["scheme"].lower()
    authority = _AUTHORITY.fullmatch(parts["authority"])
    if authority is None:
        return Refused("host", "The URL's host is malformed")
    port = _port(authority["port"], DEFAULT_PORTS[scheme])
    if port is None:
        return Refused("port", "The URL's port is not a number from 1 to 65535")
    host = _host(authority["host"])
    if host is None:
        return Refused("host", "The URL's host is neither a host name nor an address")
    path = _escape((parts["path"] or "/") + parts["query"])
    literal = None if isinstance(host, str) else host
    return Target(scheme, str(host), port, path, literal)


def _is_ambiguous(character: str) -> bool:
    return character == "\\" or unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zs", "Zl", "Zp")


def _port(text: str | None, default: int) -> int | None:
    if text is None:
        return default
    if _PORT.fullmatch(text) is None or int(text) > 65_535:
        return None
    return int(text)


def _host(text: str) -> str | Address | None:
    """The name in lower-case ASCII, the address that the literal means, or None for neither."""
    if text.startswith("["):
        return _ipv6(text[1:-1])
    if not text.isascii():
        try:
            text = idna.encode(text, uts46=True, std3_rules=True).decode("ascii")
        except UnicodeError:
            return None
    text = text.lower().removesuffix(".")
    labels = text.split(".")
    if _NUMBER.fullmatch(labels[-1]):
        return _ipv4(labels)
    if len(text) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        return None
    return text


def _ipv6(text: str) -> Address | None:
    """A bracketed literal; one with a zone is none, since a zone names an interface of this machine."""
    if _BRACKETED.fullmatch(text) is None:
        return None
    try:
        address = IPv6Address(text)
    except AddressValueError:
        return None
    return address.ipv4_mapped or address


def _ipv4(labels: list[str]) -> IPv4Address | None:
    """One to four numbers, decimal, octal or hexadecimal; the last fills what the others leave."""
    if len(labels) > 4:
        return None
    numbers = [_number(label) for label in labels]
    value = 0
    for place, number in enumerate(numbers[:-1]):
        if number is None or number > 255:
            return None
        value |= number << (24 - 8 * place)
    last = numbers[-1]
    if last is None or last >= 1 << (8 * (5 - len(labels))):
        return None
    return IPv4Address(value | last)


def _number(label: str) -> int | None:
    if _NUMBER.fullmatch(label) is None or label == "0x":
        return None
    if label.startswith("0x"):
        return int(label[2:], 16)
    if label.startswith("0") and len(label) > 1:
        return int(label, 8) if set(label) <= set("01234567") else None
    return int(label)


def _escape(path: str) -> str:
    """Percent-encode what a request line can not carry; what is encoded already stays as it is."""
    return "".join(
        character
        if character.isascii() and character not in _ESCAPED
        else "".join(f"%{byte:02X}" for byte in character.encode("utf-8"))
        for character in path
    )
