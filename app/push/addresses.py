"""Judges an address: may a webhook be sent to it?

Public is a positive list, cut down: for IPv4 what `ipaddress` calls global, for IPv6 the one range that has ever been
handed out for global use, plus the well-known translation prefix; less what registries or clouds use for themselves
though `is_global` says yes (Python's releases differ, CPython #113171, #119812), and less every IPv6 address that
carries an IPv4 address which is not public, since a translator or tunnel on the way would deliver there.

Metadata services hand out credentials to whoever asks from the right machine, so their addresses are refused even on
a network that the operator has listed.
"""

from collections.abc import Iterable, Sequence
from enum import Enum
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


class Standing(Enum):
    """What an address is to us."""

    PUBLIC = "public"
    LISTED = "listed"
    PRIVATE = "private"
    METADATA = "metadata"


def _networks(*texts: str) -> tuple[Network, ...]:
    return tuple(ip_network(text) for text in texts)


METADATA_ADDRESSES = _networks(
    "169.254.169.254",  # nearly every cloud
    "169.254.170.2",  # Amazon: credentials of a container task
    "169.254.170.23",  # Amazon: credentials of a pod
    "169.254.0.23",  # Tencent
    "fd00:ec2::254",  # Amazon
    "fd00:ec2::23",  # Amazon: credentials of a pod
    "fd20:ce::254",  # Google
    "100.100.100.200",  # Alibaba
    "192.0.0.192",  # Oracle
    "168.63.129.16",  # Azure's wire server
)
_IPV4_NOT_PUBLIC = _networks("192.0.0.0/24", "192.88.99.0/24", "224.0.0.0/4", "168.63.129.16")
_IPV6_PUBLIC = _networks("2000::/3", "64:ff9b::/96")
_IPV6_NOT_PUBLIC = _networks(
    "3fff::/20",
    "5f00::/16",
    "fec0::/10",
    "ff00::/8",
    "100:0:0:1::/64",
    "64:ff9b:1::/48",
)
_LAST_32 = _networks("::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96")
_LOCAL_TRANSLATION = IPv6Network("64:ff9b:1::/48")
_SIX_TO_FOUR = IPv6Network("2002::/16")
_TEREDO = IPv6Network("2001::/32")
_ISATAP = (0x0000_5EFE, 0x0200_5EFE)


def judge_address(address: Address, allow: Sequence[Network] = ()) -> Standing:
    """The standing of an address where `allow` lists the operator's own networks."""
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    if _within(address, METADATA_ADDRESSES):
        return Standing.METADATA
    inner = embedded(address) if isinstance(address, IPv6Address) else []
    if any(_within(one, METADATA_ADDRESSES) for one in inner):
        return Standing.METADATA
    if _within(address, allow):
        return Standing.LISTED
    if isinstance(address, IPv4Address):
        is_public = address.is_global and not _within(address, _IPV4_NOT_PUBLIC)
    else:
        is_public = (
            _within(address, _IPV6_PUBLIC)
            and (address.is_global or _within(address, _LAST_32))
            and not _within(address, _IPV6_NOT_PUBLIC)
            and all(judge_address(one) is Standing.PUBLIC for one in inner)
        )
    return Standing.PUBLIC if is_public else Standing.PRIVATE


def embedded(address: IPv6Address) -> list[IPv4Address]:
    """Every IPv4 address that some translator or tunnel would read out of this one."""
    value = int(address)
    last = IPv4Address(value & 0xFFFF_FFFF)
    found: list[IPv4Address] = []
    if _within(address, _LAST_32):
        found.append(last)
    if address in _LOCAL_TRANSLATION:  # RFC 6052: after the prefix, round the reserved octet; or a /96 cut from it
        found += [last, IPv4Address((value >> 64 & 0xFFFF) << 16 | value >> 40 & 0xFFFF)]
    if address in _SIX_TO_FOUR:
        found.append(IPv4Address(value >> 80 & 0xFFFF_FFFF))
    if address in _TEREDO:  # the server, and the client with its bits turned
        found += [IPv4Address(value >> 64 & 0xFFFF_FFFF), IPv4Address(~value & 0xFFFF_FFFF)]
    if value >> 32 & 0xFFFF_FFFF in _ISATAP:
        found.append(last)
    return found


def _within(address: Address, networks: Iterable[Network]) -> bool:
    return any(address in network for network in networks)
