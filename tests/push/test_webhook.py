import datetime
import os
import ssl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from ipaddress import IPv4Address, ip_address, ip_network
from pathlib import Path

import gevent
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from gevent import socket
from gevent.ssl import SSLContext
from standardwebhooks import Webhook as Verifier

from app.clock import monotonic
from app.core.outbox import Answered, Undelivered
from app.push.guard import Policy
from app.push.names import Names, NoAddress
from app.push.target import Address
from app.push.webhook import Webhook
from app.tokens import notify_secret
from tests.push.forms import METADATA_IPV4, METADATA_IPV6, NAMES, PRIVATE_IPV4, PRIVATE_IPV6, PUBLIC, REFUSED
from tests.push.nameserver import SERVFAIL, Answers, name_server
from tests.push.receivers import (
    HANDOFF,
    KEY,
    LOOPBACK,
    Behaviour,
    drips,
    floods,
    notice,
    receiver,
    says,
    says_nothing,
    says_nothing_until_left,
)


class Script:
    """A lookup that answers from a list, the next at each call, and counts."""

    def __init__(self, *answers: list[str]) -> None:
        self._answers = list(answers)
        self.asked: list[str] = []

    def __call__(self, host: str) -> list[Address]:
        self.asked.append(host)
        answer = self._answers[min(len(self.asked), len(self._answers)) - 1]
        if not answer:
            raise NoAddress(host)
        return [ip_address(text) for text in answer]


class Wires:
    """Where a connection would have gone; none is made."""

    def __init__(self) -> None:
        self.went: list[tuple[list[str], int]] = []

    def __call__(self, addresses: Sequence[Address], port: int) -> None:
        self.went.append(([str(address) for address in addresses], port))


HERE = Script(["127.0.0.1"])


def webhook(
    lookup: Script | Names = HERE,
    *,
    policy: Policy = LOOPBACK,
    deadline_seconds: float = 5.0,
    trust: SSLContext | None = None,
) -> Webhook:
    return Webhook(policy=policy, lookup=lookup, server_keys=[KEY], deadline_seconds=deadline_seconds, trust=trust)


def test_a_receiver_gets_exactly_one_plain_post() -> None:
    with receiver() as seen:
        assert webhook().send(notice(seen.url("/hook?key=1", host="hooks.example"), body=b'{"a":1}')) == Answered(200)
    head, _, body = seen.requests[0].partition(b"\r\n\r\n")
    assert head.split(b"\r\n")[0] == b"POST /hook?key=1 HTTP/1.1"
    assert body == b'{"a":1}'
    headers = seen.headers()
    assert headers["host"] == f"hooks.example:{seen.port}"
    assert headers["content-type"] == "application/json"
    assert headers["content-length"] == "7"
    assert set(headers) == {
        "host", "user-agent", "content-type", "content-length", "connection",
        "webhook-id", "webhook-timestamp", "webhook-signature",
    }  # fmt: skip


def test_a_library_that_we_did_not_write_verifies_the_signature() -> None:
    with receiver() as seen:
        webhook().send(notice(seen.url(), body=b'{"a":"\\u00fc"}'))
    verifier = Verifier(notify_secret(KEY, HANDOFF))
    assert verifier.verify(seen.body(), seen.headers()) == {"a": "ü"}
    other = Verifier(notify_secret(KEY, HANDOFF[::-1]))
    with pytest.raises(Exception, match="No matching signature"):
        other.verify(seen.body(), seen.headers())
    with pytest.raises(Exception, match="No matching signature"):
        verifier.verify(seen.body() + b" ", seen.headers())


def test_while_a_server_key_is_replaced_both_keys_sign() -> None:
    old, new = b"o" * 32, b"n" * 32
    with receiver() as seen:
        Webhook(policy=LOOPBACK, lookup=HERE, server_keys=[new, old]).send(notice(seen.url()))
    for key in (old, new):
        Verifier(notify_secret(key, HANDOFF)).verify(seen.body(), seen.headers())


def test_the_identifier_stays_over_tries_and_differs_between_moves() -> None:
    with receiver(says(b"HTTP/1.1 500 No\r\n\r\n")) as seen:
        for version in (2, 2, 3):
            webhook().send(notice(seen.url(), version=version))
    ids = [seen.headers(number)["webhook-id"] for number in range(3)]
    assert ids[0] == ids[1] != ids[2]
    assert "." not in ids[0]


@pytest.mark.parametrize("status", [300, 301, 302, 303, 304, 305, 307, 308])
def test_a_redirect_is_not_followed(status: int) -> None:
    with receiver() as inside:
        for where in (inside.url(), "file:///etc/passwd", "/hook", "//169.254.169.254/"):
            with receiver(says(f"HTTP/1.1 {status} Go\r\nLocation: {where}\r\n\r\n".encode())) as seen:
                assert webhook().send(notice(seen.url())) == Answered(status)
            assert seen.connections == 1
    assert inside.connections == 0


@contextmanager
def environment(**variables: str) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


def test_proxies_and_netrc_of_the_environment_are_ignored(tmp_path: Path) -> None:
    (tmp_path / ".netrc").write_text("default login me password secret\n", encoding="ascii")
    (tmp_path / ".netrc").chmod(0o600)
    with receiver() as proxy, receiver() as seen:
        names = ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")
        settings = dict.fromkeys(names, proxy.url("")) | {"HOME": str(tmp_path), "NETRC": str(tmp_path / ".netrc")}
        with environment(**settings):
            assert webhook().send(notice(seen.url(host="hooks.example"))) == Answered(200)
    assert (seen.connections, proxy.connections) == (1, 0)
    assert "authorization" not in seen.headers()


def test_a_cookie_is_never_sent_back() -> None:
    with receiver(says(b"HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\n\r\n")) as seen:
        sender = webhook()
        sender.send(notice(seen.url()))
        sender.send(notice(seen.url()))
    assert "cookie" not in seen.headers()


# ------------------------------------------------------------------------------------------ where it may go


def test_no_refused_form_is_connected_to_or_even_looked_up() -> None:
    wires, lookup = Wires(), Script(["1.1.1.1"])
    sender = Webhook(policy=Policy(), lookup=lookup, server_keys=[KEY], connect=wires)
    assert {url: result for url, _ in REFUSED if (result := sender.send(notice(url))) != Undelivered("refused")} == {}
    assert (wires.went, lookup.asked) == ([], [])


def test_a_name_is_looked_up_once_and_its_checked_addresses_are_connected_to() -> None:
    for url in NAMES:
        wires, lookup = Wires(), Script(["1.1.1.1", "2606:4700:4700::1111"], ["127.0.0.1"])
        Webhook(policy=Policy(), lookup=lookup, server_keys=[KEY], connect=wires).send(notice(url))
        assert len(lookup.asked) == 1
        assert [went for went, _ in wires.went] == [["1.1.1.1", "2606:4700:4700::1111"]], url


def test_a_public_literal_is_connected_to_without_a_lookup() -> None:
    wires, lookup = Wires(), Script([])
    sender = Webhook(policy=Policy(), lookup=lookup, server_keys=[KEY], connect=wires)
    for url in PUBLIC:
        sender.send(notice(url))
    assert len(wires.went) == len(PUBLIC)
    assert lookup.asked == []


@pytest.mark.parametrize("text", PRIVATE_IPV4 + PRIVATE_IPV6 + METADATA_IPV4 + METADATA_IPV6)
def test_one_answer_that_is_not_public_refuses_the_name(text: str) -> None:
    wires = Wires()
    for answer in ([text], ["1.1.1.1", text], [text, "1.1.1.1"], ["2606:4700:4700::1111", "1.1.1.1", text]):
        sender = Webhook(policy=Policy(), lookup=Script(answer), server_keys=[KEY], connect=wires)
        assert sender.send(notice("http://hooks.example/")) == Undelivered("refused")
    assert wires.went == []


@pytest.mark.parametrize("text", METADATA_IPV4 + METADATA_IPV6)
def test_metadata_is_refused_though_everything_is_listed(text: str) -> None:
    everything = Policy(allow=tuple(map(ip_network, ("0.0.0.0/0", "::/0"))))
    wires = Wires()
    sender = Webhook(policy=everything, lookup=Script([text]), server_keys=[KEY], connect=wires)
    assert sender.send(notice("http://hooks.example/")) == Undelivered("refused")
    assert wires.went == []


def test_a_port_outside_the_list_is_open_only_when_every_address_is_listed() -> None:
    policy = Policy(allow=(ip_network("10.0.0.0/8"),))
    wires = Wires()
    for answer in (["10.0.0.1"], ["10.0.0.1", "1.1.1.1"], ["1.1.1.1"]):
        Webhook(policy=policy, lookup=Script(answer), server_keys=[KEY], connect=wires).send(
            notice("http://hooks.example:9000/")
        )
    assert wires.went == [(["10.0.0.1"], 9000)]


def test_a_name_that_is_rebound_at_each_lookup_never_gets_past_the_check() -> None:
    """500 tries against a name server that turns between a listed address and one that is not."""
    with receiver() as seen, receiver() as inside:
        turn = 0

        def answer(_name: str, kind: int) -> Answers:
            nonlocal turn
            turn += kind == 1
            return ["127.0.0.1"] if turn % 2 else ["127.0.0.2"]

        with name_server(answer) as stub:
            names = Names(server="127.0.0.1", port=stub.port)
            sender = webhook(names, policy=Policy(allow=(ip_network("127.0.0.1/32"),)))
            results = [sender.send(notice(seen.url(host=f"r{number}.example"))) for number in range(500)]
            names.close()
        assert {type(result) for result in results} == {Answered, Undelivered}
        assert seen.connections == results.count(Answered(200)) == 250
        assert results.count(Undelivered("refused")) == 250
        assert inside.connections == 0


# ---------------------------------------------------------------------------------------------- name servers


def test_a_name_with_a_public_and_a_private_answer_is_refused_whichever_kind_they_are() -> None:
    table: dict[str, Answers] = {"a.example": ["1.1.1.1", "10.0.0.1"], "b.example": ["1.1.1.1", "::1"]}
    with name_server(lambda name, _kind: table[name]) as stub:
        names, wires = Names(server="127.0.0.1", port=stub.port), Wires()
        sender = Webhook(policy=Policy(), lookup=names, server_keys=[KEY], connect=wires)
        for name in table:
            assert sender.send(notice(f"http://{name}/")) == Undelivered("refused")
        names.close()
    assert wires.went == []


@pytest.mark.parametrize("answer", [3, SERVFAIL, []])
def test_a_name_without_an_answer_is_not_contacted(answer: Answers) -> None:
    with name_server(lambda _name, _kind: answer) as stub:
        names, wires = Names(server="127.0.0.1", port=stub.port), Wires()
        sender = Webhook(policy=Policy(), lookup=names, server_keys=[KEY], connect=wires)
        assert sender.send(notice("http://hooks.example/")) == Undelivered("name")
        names.close()
    assert wires.went == []


def test_a_changed_configuration_is_read_again_and_an_unchanged_one_is_not(tmp_path: Path) -> None:
    file = tmp_path / "resolv.conf"
    with name_server(lambda _name, _kind: ["127.0.0.1"], ttl_seconds=3_600) as stub:
        names = Names(server="127.0.0.1", port=stub.port, configuration=file)
        for changed_at in (None, 1, 2):
            if changed_at is not None:
                file.touch()
                os.utime(file, ns=(0, changed_at))
            asked = len(stub.asked)
            for _ in range(3):
                assert names("hooks.example") == [IPv4Address("127.0.0.1")]
            assert len(stub.asked) == asked + 2, "both kinds once, then what is known"
        names.close()


def test_a_hundred_names_whose_servers_are_dead_delay_nobody_and_end_in_time() -> None:
    with receiver() as seen, name_server(lambda name, _: None if "dead" in name else ["127.0.0.1"]) as stub:
        names = Names(server="127.0.0.1", port=stub.port)
        sender = webhook(names, deadline_seconds=1.0)
        began = monotonic()
        dead = [gevent.spawn(sender.send, notice(seen.url(host=f"dead{number}.example"))) for number in range(100)]
        gevent.sleep(0.1)
        assert not any(greenlet.ready() for greenlet in dead)
        assert sender.send(notice(seen.url(host="alive.example"))) == Answered(200)
        assert not any(greenlet.ready() for greenlet in dead)
        gevent.joinall(dead)
        assert monotonic() - began < 4
        assert {greenlet.value for greenlet in dead} == {Undelivered("timeout")}
        names.close()


# ------------------------------------------------------------------------------------------------ receivers


@pytest.mark.parametrize(
    ("behave", "expected"),
    [
        (says_nothing, Undelivered("timeout")),
        (drips(b"", b"H"), Undelivered("timeout")),
        (drips(b"HTTP/1.1 500 No\r\n", b"x"), Undelivered("timeout")),
        (drips(b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 102 P\r\n\r\n"), Undelivered("timeout")),
        (drips(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n", b"x"), Answered(200)),
        (drips(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n"), Answered(200)),
        (floods(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"5\r\nhello\r\n"), Answered(200)),
        (floods(b"HTTP/1.1 500 No\r\n", b"X-Header: y\r\n"), Answered(500)),
        (floods(b"HTTP/1.1 500 No\r\nX: ", b"y"), Answered(500)),
        (floods(b"", b"x"), Undelivered("answer")),
        (says(b""), Undelivered("answer")),
        (says(b"nonsense\r\n\r\n"), Undelivered("answer")),
        (says(b"HTTP/1.1 410 Gone\r\n\r\n"), Answered(410)),
        (says(b"HTTP/1.1 503 Busy\r\nRetry-After: 30\r\n\r\n"), Answered(503, 30)),
    ],
)
def test_whatever_a_receiver_does_the_try_ends_in_time(behave: Behaviour, expected: Answered | Undelivered) -> None:
    with receiver(behave) as seen:
        began = monotonic()
        assert webhook(deadline_seconds=0.5).send(notice(seen.url())) == expected
        assert monotonic() - began < 3


def test_a_receiver_that_never_reads_ends_in_time() -> None:
    with receiver(says_nothing, reads=False) as seen:
        result = webhook(deadline_seconds=0.5).send(notice(seen.url(), body=b"x" * 20_000_000))
    assert result == Undelivered("timeout")


def test_nobody_listening_is_a_failed_connection() -> None:
    with receiver() as seen:
        pass
    assert webhook().send(notice(seen.url())) == Undelivered("connection")


def test_the_next_checked_address_is_tried_when_the_first_takes_no_connection() -> None:
    with receiver() as seen:
        assert webhook(Script(["127.0.0.9", "127.0.0.1"])).send(notice(seen.url(host="a.example"))) == Answered(200)


def test_a_deadline_of_the_caller_is_not_taken_for_ours() -> None:
    with receiver(says_nothing) as seen, pytest.raises(gevent.Timeout), gevent.Timeout(0.1):
        webhook().send(notice(seen.url()))


def test_no_connection_is_left_open_by_a_failed_try() -> None:
    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    with receiver(says_nothing_until_left) as silent, receiver(says(b"no")) as odd, receiver(reads=False) as plain:
        hasty = webhook(deadline_seconds=0.05)
        hasty.send(notice(silent.url()))
        gevent.sleep(0.05)
        before = descriptors()
        for _ in range(20):
            assert hasty.send(notice(silent.url())) == Undelivered("timeout")
            assert webhook().send(notice(odd.url())) == Undelivered("answer")
            assert webhook().send(notice(plain.url(scheme="https"))) == Undelivered("tls")
        gevent.sleep(0.1)
        assert descriptors() == before


# ------------------------------------------------------------------------------------------------------ TLS


def certificate(folder: Path, *names: x509.GeneralName, days: int = 1) -> tuple[SSLContext, SSLContext]:
    """A receiver's context with a certificate for these names, and a sender's that trusts it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "receiver")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=2))
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = folder / "receiver.pem"
    pem.write_bytes(
        made.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    serving, trusting = SSLContext(ssl.PROTOCOL_TLS_SERVER), SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    serving.load_cert_chain(pem)
    trusting.load_verify_locations(cafile=pem)
    return serving, trusting


def test_tls_is_spoken_with_the_name_of_the_url_to_the_checked_address(tmp_path: Path) -> None:
    serving, trust = certificate(tmp_path, x509.DNSName("hooks.example"))
    asked: list[str | None] = []
    serving.sni_callback = lambda _socket, name, _context: asked.append(name)
    with receiver(tls=serving) as seen:
        result = webhook(trust=trust).send(notice(seen.url(host="hooks.example", scheme="https")))
    assert result == Answered(200)
    assert asked == ["hooks.example"]
    assert seen.headers()["host"] == f"hooks.example:{seen.port}"


def test_tls_to_a_literal_checks_the_address_in_the_certificate(tmp_path: Path) -> None:
    serving, trust = certificate(tmp_path, x509.IPAddress(IPv4Address("127.0.0.1")))
    with receiver(tls=serving) as seen:
        assert webhook(trust=trust).send(notice(seen.url(scheme="https"))) == Answered(200)
        assert webhook(trust=trust).send(notice(seen.url(scheme="https", host="other.example"))) == Undelivered("tls")


def test_a_certificate_that_is_not_trusted_not_ours_or_over_is_refused_before_a_byte_is_sent(tmp_path: Path) -> None:
    serving, trust = certificate(tmp_path, x509.DNSName("hooks.example"))
    with receiver(tls=serving) as seen:
        assert webhook().send(notice(seen.url(host="hooks.example", scheme="https"))) == Undelivered("tls")
        assert webhook(trust=trust).send(notice(seen.url(host="evil.example", scheme="https"))) == Undelivered("tls")
    assert not any(seen.requests)
    serving, trust = certificate(tmp_path, x509.DNSName("hooks.example"), days=-1)
    with receiver(tls=serving) as seen:
        assert webhook(trust=trust).send(notice(seen.url(host="hooks.example", scheme="https"))) == Undelivered("tls")
    assert not any(seen.requests)


def test_tls_to_a_receiver_that_never_shakes_hands_ends_in_time() -> None:
    with receiver(says_nothing, reads=False) as seen:
        result = webhook(deadline_seconds=0.5).send(notice(seen.url(scheme="https")))
    assert result == Undelivered("timeout")


def test_sockets_of_gevent_do_not_look_up_a_number() -> None:
    """The connection must not pass through the shared resolver: gevent asks it only for what is no number."""
    with receiver() as seen:
        peer = socket.socket()
        peer.connect(("127.0.0.1", seen.port))
        peer.close()
        assert vars(gevent.get_hub())["_resolver"] is None
