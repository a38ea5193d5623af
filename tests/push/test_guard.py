import re
from collections import Counter
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.push.addresses import Standing, judge_address
from app.push.guard import Allowed, Policy, judge_destination, judge_url
from app.push.target import Refused, Target, read
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


def target(url: str) -> Target:
    found = read(url)
    assert isinstance(found, Target), found
    return found


def test_the_table_is_as_long_as_promised() -> None:
    assert len(REFUSED) >= 600
    assert set(Counter(reason for _, reason in REFUSED)) == {
        "length", "characters", "scheme", "user_info", "host", "port", "address", "metadata",
    }  # fmt: skip


def verdict(url: str) -> str:
    match judge_url(url, OPEN):
        case Refused(reason):
            return reason
        case Allowed(Target(address=None)):
            return "a name"
        case Allowed():
            return "public"


def test_a_url_that_can_be_judged_without_a_name_server_is_refused_for_its_own_reason() -> None:
    assert {url: (verdict(url), reason) for url, reason in REFUSED if verdict(url) != reason} == {}


def test_a_name_passes_because_only_a_name_server_knows_where_it_leads() -> None:
    assert {url: verdict(url) for url in NAMES if verdict(url) != "a name"} == {}


def test_a_public_literal_passes_in_every_spelling() -> None:
    assert {url: verdict(url) for url in PUBLIC if verdict(url) != "public"} == {}


def test_what_is_sent_can_not_break_the_request_line_or_the_host_header() -> None:
    for url in (*NAMES, *PUBLIC):
        found = target(url)
        assert re.fullmatch(r"/[!-~]*", found.path), found.path
        assert re.fullmatch(r"[a-z0-9_.:\[\]-]+", found.authority), found.authority


@pytest.mark.parametrize(
    ("url", "scheme", "authority", "path"),
    [
        ("HTTP://Example.COM", "http", "example.com", "/"),
        ("http://example.com.:80/a/../b?c=%zz#frag", "http", "example.com", "/a/../b?c=%zz"),
        ("https://example.com:80", "https", "example.com:80", "/"),
        ("http://example.com:443?x", "http", "example.com:443", "/?x"),
        ("https://[2606:4700:4700:0::1111]:8443/", "https", "[2606:4700:4700::1111]:8443", "/"),
        ("http://[::ffff:8.8.8.8]/", "http", "8.8.8.8", "/"),
        ("http://134744072/", "http", "8.8.8.8", "/"),
        ("http://bücher.example/ü", "http", "xn--bcher-kva.example", "/%C3%BC"),
        ("http://faß.example/", "http", "xn--fa-hia.example", "/"),
        ("http://example.com#@127.0.0.1/", "http", "example.com", "/"),
        ('http://example.com/@127.0.0.1?<">', "http", "example.com", "/@127.0.0.1?%3C%22%3E"),
    ],
)
def test_a_url_is_read_into_what_the_sender_uses(url: str, scheme: str, authority: str, path: str) -> None:
    found = target(url)
    assert (found.scheme, found.authority, found.path) == (scheme, authority, path)


@given(
    st.one_of(st.text(), st.text().map("http://{}/".format), st.text().map(lambda text: f"https://a{text}:80/x?{text}"))
)
def test_any_text_is_judged_and_what_passes_is_plain_ascii(text: str) -> None:
    match judge_url(text, OPEN):
        case Allowed(target):
            assert re.fullmatch(r"[a-z0-9_.:-]{1,253}", target.host)
            assert re.fullmatch(r"/[!-~]*", target.path)
        case Refused(_, says):
            assert says.isprintable()
            assert says.startswith(("The URL", "Webhooks"))


def test_the_url_shown_to_people_has_no_query_and_no_fragment() -> None:
    assert target("https://example.com:8443/hook?key=secret#also").shown == "https://example.com:8443/hook"


def test_a_url_may_have_2048_characters_and_no_more() -> None:
    start = "https://example.com/"
    for length, expected in ((2_047, Allowed), (2_048, Allowed), (2_049, Refused)):
        assert isinstance(judge_url(start + "a" * (length - len(start)), OPEN), expected)


@pytest.mark.parametrize("text", PRIVATE_IPV4 + PRIVATE_IPV6)
def test_an_address_that_is_not_public(text: str) -> None:
    assert judge_address(ip_address(text)) is Standing.PRIVATE


@pytest.mark.parametrize("text", PUBLIC_IPV4 + PUBLIC_IPV6)
def test_an_address_that_is_public(text: str) -> None:
    assert judge_address(ip_address(text)) is Standing.PUBLIC


@pytest.mark.parametrize("text", METADATA_IPV4 + METADATA_IPV6)
def test_metadata_is_refused_even_on_a_listed_network(text: str) -> None:
    everything = (ip_network("0.0.0.0/0"), ip_network("::/0"))
    assert judge_address(ip_address(text), everything) is Standing.METADATA
    for inner in carriers(text) if "." in text else ():
        assert judge_address(ip_address(inner), everything) is Standing.METADATA, inner


@pytest.mark.parametrize("text", PRIVATE_IPV4)
def test_no_ipv6_form_of_a_private_ipv4_address_is_public(text: str) -> None:
    for inner in carriers(text):
        assert judge_address(IPv6Address(inner)) is Standing.PRIVATE, inner


@pytest.mark.parametrize(
    ("network", "inside", "outside"),
    [
        (
            "10.0.0.0/8",
            ("10.0.0.0", "10.255.255.255", "::ffff:10.1.2.3"),
            ("11.0.0.0", "2002:a00:1::", "64:ff9b::a00:1"),
        ),
        ("127.0.0.1/32", ("127.0.0.1",), ("127.0.0.2", "::1", "::127.0.0.1")),
        ("fd00::/8", ("fd00::1", "fdff::1"), ("fc00::1", "fe80::1")),
    ],
)
def test_a_listed_network_is_listed_to_its_edges(
    network: str, inside: tuple[str, ...], outside: tuple[str, ...]
) -> None:
    allow = (ip_network(network),)
    assert {judge_address(ip_address(text), allow) for text in inside} == {Standing.LISTED}
    assert Standing.LISTED not in {judge_address(ip_address(text), allow) for text in outside}


def test_a_listed_network_opens_every_port_for_itself_only() -> None:
    policy = Policy(allow=(ip_network("10.0.0.0/8"),))
    assert isinstance(judge_url("http://10.0.0.1:9000/", policy), Allowed)
    assert judge_destination(IPv4Address("10.0.0.1"), 9000, policy) is None
    closed = judge_url("http://1.1.1.1:9000/", policy)
    assert isinstance(closed, Refused)
    assert closed.reason == "port"
    assert judge_destination(IPv4Address("1.1.1.1"), 9000, policy) is not None


def test_the_port_of_a_name_waits_for_the_delivery_only_where_networks_are_listed() -> None:
    assert isinstance(judge_url("http://hooks.example:9000/", OPEN), Refused)
    assert isinstance(judge_url("http://hooks.example:9000/", Policy(allow=(ip_network("10.0.0.0/8"),))), Allowed)


def test_localhost_passes_once_loopback_is_listed() -> None:
    for network in ("127.0.0.1/32", "::1/128"):
        assert isinstance(judge_url("http://localhost:9000/", Policy(allow=(ip_network(network),))), Allowed)
    assert isinstance(judge_url("http://localhost:9000/", Policy(allow=(ip_network("10.0.0.0/8"),))), Refused)


@pytest.mark.parametrize("port", [80, 443, 8080, 8443])
def test_the_four_ports_are_open_by_default_and_their_neighbours_closed(port: int) -> None:
    address = IPv4Address("1.1.1.1")
    assert judge_destination(address, port, OPEN) is None
    for neighbour in (port - 1, port + 1):
        assert judge_destination(address, neighbour, OPEN) is not None


def test_the_ports_are_a_setting() -> None:
    policy = Policy(ports=frozenset({443, 9443}))
    assert judge_destination(IPv4Address("1.1.1.1"), 9443, policy) is None
    assert judge_destination(IPv4Address("1.1.1.1"), 80, policy) is not None
