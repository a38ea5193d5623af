"""Our judgement beside three that others wrote.

Whatever one of them refuses and we accept is either a fault of ours or stands in a table here with its reason. The
other way round needs none: refusing more is safe. Names are not looked up; literals need no name server.
"""

import logging
import random
import unicodedata
from collections.abc import Callable, Iterator
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

import pytest
import ssrfguard
from AntiSSRF import AntiSSRFPolicy, PolicyConfigOptions, URIValidator
from requests_hardened.ip_filter import InvalidIPAddress, get_ip_address
from urllib3.exceptions import LocationParseError
from urllib3.util import parse_url

from app.push.addresses import Address, Standing, judge_address
from app.push.guard import Allowed, Policy, judge_url
from app.push.target import DEFAULT_PORTS, Target
from tests.push.forms import (
    METADATA_IPV4,
    METADATA_IPV6,
    NAMES,
    PRIVATE_IPV4,
    PRIVATE_IPV6,
    PUBLIC,
    PUBLIC_IPV4,
    PUBLIC_IPV6,
    REFUSED,
    carriers,
)

OPEN = Policy()
SSRFGUARD = ssrfguard.Policy(allowed_ports=OPEN.ports)
ANTISSRF = AntiSSRFPolicy(PolicyConfigOptions.EXTERNAL_ONLY_LATEST)

# Addresses that an oracle refuses and we accept.
TUNNELS = {
    IPv6Network("64:ff9b::/96"): "the well-known NAT64 prefix: judged by the public IPv4 address that it carries, "
    "or networks that reach IPv4 only through a translator could send no webhook at all",
    IPv6Network("2002::/16"): "6to4: judged by the public IPv4 address that it carries",
}
EXPLAINED_ADDRESSES: dict[str, dict[IPv6Network, str]] = {
    "ssrfguard": {},
    "microsoft-antissrf": TUNNELS,
    "requests-hardened": TUNNELS,
}


def by_ssrfguard(address: Address) -> bool:
    return url_by_ssrfguard(f"http://[{address}]/" if address.version == 6 else f"http://{address}/")


def by_antissrf(address: Address) -> bool:
    return bool(ANTISSRF._is_str_ip_address_connection_allowed(str(address)))


def by_requests_hardened(address: Address) -> bool:
    try:
        get_ip_address(str(address), 80, allow_loopback=False)
    except InvalidIPAddress:
        return False
    return True


def url_by_ssrfguard(url: str) -> bool:
    try:
        SSRFGUARD.check_url(url)
    except ssrfguard.SSRFGuardError:
        return False
    return True


def url_by_antissrf(url: str) -> bool:
    return URIValidator._try_parse(url, ["http", "https"]) is not None


def addresses() -> Iterator[Address]:
    """Every address of the table, all that carry one of them, and some thousands drawn at random."""
    draw = random.Random(168)
    known = PRIVATE_IPV4 + METADATA_IPV4 + PUBLIC_IPV4 + PRIVATE_IPV6 + METADATA_IPV6 + PUBLIC_IPV6
    yield from map(ip_address, known)
    inner = [text for text in known if ":" not in text]
    inner += [str(IPv4Address(draw.getrandbits(32))) for _ in range(400)]
    for text in inner:
        yield IPv4Address(text)
        yield from map(IPv6Address, carriers(text))
    for _ in range(3_000):
        yield IPv4Address(draw.getrandbits(32))
        yield IPv6Address(draw.getrandbits(128))
        yield IPv6Address(0x2000 << 112 | draw.getrandbits(125))


@pytest.mark.parametrize(
    ("name", "accepts"),
    [
        ("ssrfguard", by_ssrfguard),
        ("microsoft-antissrf", by_antissrf),
        ("requests-hardened", by_requests_hardened),
    ],
)
def test_an_address_that_an_oracle_refuses_is_refused_or_explained(
    name: str, accepts: Callable[[Address], bool], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    explained = EXPLAINED_ADDRESSES[name]
    open_, used = [], set()
    for address in addresses():
        if judge_address(address) is not Standing.PUBLIC or accepts(address):
            continue
        why = [network for network in explained if address in network]
        used.update(why)
        open_ += [] if why else [address]
    assert open_ == []
    assert used == set(explained), "an explanation that explains nothing"


# URLs that an oracle refuses and we accept: which, and why.
Explanation = tuple[str, Callable[[str, Target], bool]]
ODD_LITERAL: Explanation = (
    "an odd spelling of a public address: the contract judges it by what it means, and we send to just that",
    lambda url, target: target.address is not None and _host_as_written(url) != str(target.address),
)
EXPLAINED_URLS: dict[str, tuple[Explanation, ...]] = {
    "ssrfguard": (
        ODD_LITERAL,
        ("an underscore in a name: not of a host, but in daily use within containers", lambda url, _: "_" in url),
    ),
    "microsoft-antissrf": (
        ODD_LITERAL,
        ("it compares an encoded host with an unencoded one, so nothing outside ASCII passes; and its labels have no "
         "underscore", lambda url, _: "_" in url or not _host_as_written(url).isascii()),
        ("an xn-- label that is no encoding of anything: to us a name like others, for the name server to know",
         lambda url, _: "xn--" in url),
    ),
}  # fmt: skip


def _host_as_written(url: str) -> str:
    authority = url.partition("://")[2].partition("/")[0].partition("?")[0].partition("#")[0]
    return authority.rpartition(":")[0] if authority.rpartition(":")[2].isdigit() else authority


def urls() -> Iterator[str]:
    """The tables, and thousands of their members with one to three faults put in."""
    yield from (url for url, _ in REFUSED)
    yield from NAMES
    yield from PUBLIC
    draw = random.Random(97)
    seeds = [url for url, _ in REFUSED if len(url) < 100] + list(NAMES[:30]) + list(PUBLIC[:60])
    faults = [*"@:/?#[]%.\\ \t\n\r\x00-_0x1a8", "//", "127.0.0.1", "[::1]", "%2e", "@127.0.0.1"]
    faults += ["\u3002", "\uff11", "\u00aa", "\u00df", "\u2100"]
    for _ in range(20_000):
        url = draw.choice(seeds)
        for _ in range(draw.randint(1, 3)):
            place = draw.randrange(len(url) + 1)
            url = url[:place] + draw.choice(faults) + url[place + draw.randint(0, 1) :]
        yield url


@pytest.mark.parametrize(
    ("name", "accepts"), [("ssrfguard", url_by_ssrfguard), ("microsoft-antissrf", url_by_antissrf)]
)
def test_a_url_that_an_oracle_refuses_is_refused_or_explained(name: str, accepts: Callable[[str], bool]) -> None:
    explanations = EXPLAINED_URLS[name]
    open_, used, accepted = [], set(), 0
    for url in urls():
        verdict = judge_url(url, OPEN)
        if not isinstance(verdict, Allowed):
            continue
        accepted += 1
        if accepts(url):
            continue
        why = {reason for reason, applies in explanations if applies(url, verdict.target)}
        used |= why
        open_ += [] if why else [url]
    assert open_ == []
    assert used == {reason for reason, _ in explanations}, "an explanation that explains nothing"
    assert accepted > 1_000


def test_other_parsers_read_the_same_host_and_port_out_of_what_we_accept() -> None:
    """A receiver's proxy or a log that reads the URL again must not see another host than the one we connect to."""
    apart: list[tuple[str, str | None]] = []
    for url in urls():
        verdict = judge_url(url, OPEN)
        if not isinstance(verdict, Allowed) or not url.isascii() or verdict.target.address is not None:
            continue
        target = verdict.target
        try:
            other = parse_url(url)
        except LocationParseError:
            apart.append((url, None))
            continue
        port = other.port or DEFAULT_PORTS[str(other.scheme)]
        if (str(other.host).lower().removesuffix("."), port) != (target.host, target.port):
            apart.append((url, other.host))
    assert apart == []


def test_what_looks_like_ascii_after_mapping_was_judged_as_that() -> None:
    """Every character that normalises to one of a URL's own marks, put into a host, is refused or harmless."""
    marks = set("/?#@:[]\\%")
    for code in range(0x80, 0x11_0000):
        character = chr(code)
        if marks & set(unicodedata.normalize("NFKC", character)):
            verdict = judge_url(f"http://a{character}b.example/", OPEN)
            assert not isinstance(verdict, Allowed), hex(code)
