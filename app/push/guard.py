"""Where webhooks may go.

Two judgements. `judge_url` says at creation all that can be said without asking a name server. `judge_destination` says
it of an address, just before the connection to that same address, at every try: a name may lead elsewhere by then.
What the first lets pass because it is a name, the second still sees.
"""

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address

from app.push.addresses import Address, Network, Standing, judge_address
from app.push.target import Refused, Target, read

_LOOPBACK = (IPv4Address("127.0.0.1"), IPv6Address("::1"))
_METADATA_NAMES = frozenset({"metadata.google.internal", "metadata.goog", "instance-data.ec2.internal"})


@dataclass(frozen=True, slots=True)
class Allowed:
    """As far as can be told without a name server, a webhook may go there."""

    target: Target


@dataclass(frozen=True, slots=True)
class Policy:
    """The operator's settings: the open ports, and private networks where any port is open."""

    ports: frozenset[int] = frozenset({80, 443, 8080, 8443})
    allow: tuple[Network, ...] = ()


def judge_url(url: str, policy: Policy) -> Allowed | Refused:
    """Judge a URL by itself: its form and port, and where it leads when its host is a literal or names this machine.

    A port outside the list passes with a name when the operator has listed networks: whether the name leads into one
    is known only at the delivery.
    """
    target = read(url)
    if isinstance(target, Refused):
        return target
    if target.address is not None:
        return judge_destination(target.address, target.port, policy) or Allowed(target)
    if target.host in _METADATA_NAMES:
        return Refused("metadata", "The URL names a cloud's metadata service")
    if target.host == "localhost" or target.host.endswith(".localhost"):
        verdicts = [judge_destination(address, target.port, policy) for address in _LOOPBACK]
        return Allowed(target) if None in verdicts else Refused("address", "The URL names this machine itself")
    if target.port not in policy.ports and not policy.allow:
        return _closed_port(target.port)
    return Allowed(target)


def judge_destination(address: Address, port: int, policy: Policy) -> Refused | None:
    """Judge the address that is about to be connected to; None when a webhook may go there."""
    match judge_address(address, policy.allow):
        case Standing.METADATA:
            return Refused("metadata", "The URL leads to a cloud's metadata service")
        case Standing.PRIVATE:
            return Refused("address", "The URL leads to an address that is not public")
        case Standing.PUBLIC if port not in policy.ports:
            return _closed_port(port)
        case Standing.PUBLIC | Standing.LISTED:
            return None


def _closed_port(port: int) -> Refused:
    return Refused("port", f"Webhooks may not go to port {port}")
