"""A server that is none, or means harm: garbage, wrong types, bodies without end, redirects; and odd addresses.

Whatever it answers is a FencepostError of the caller, in time, and nothing is sent elsewhere.
"""

import json
import socket
import time
from contextlib import suppress
from typing import Any

import pytest
from client.tests.proxy import Listener
from client.tests.worlds import World

import fencepost
from fencepost import keys
from fencepost._follow import Cursor, Cut, Following, NoStream
from fencepost.errors import FencepostError, Unreachable

_GRANT = {
    "status": "held",
    "owner_token": "own_x",
    "fencing_token": 1,
    "ttl_seconds": 60,
    "attempt": 1,
    "absolute_expires_at_timestamp": 1,
}


class Impostor(Listener):
    """Answers every request with the same bytes; `drips` goes on for ever with more of the body."""

    def __init__(self, answer: bytes, *, drips: bytes = b"", pause: float = 0.0) -> None:
        super().__init__(0)
        self._answer = answer
        self._drips = drips
        self._pause = pause
        self.asked = 0

    def serve(self, caller: socket.socket) -> None:
        caller.recv(65536)
        self.asked += 1
        caller.sendall(self._answer)
        while self._drips and not self._is_over:
            caller.sendall(self._drips)
            time.sleep(self._pause)


def _answer(body: bytes, status: str = "201 Created", *headers: str) -> bytes:
    head = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", *headers]
    return "\r\n".join([*head, "", ""]).encode() + body


def _with(**changed: Any) -> bytes:
    return _answer(json.dumps({**_GRANT, **changed}).encode())


ANSWERS = {
    "no JSON": _answer(b"<html>"),
    "an array": _answer(b"[]"),
    "nothing": _answer(b""),
    "members missing": _answer(b'{"status": "held"}'),
    "a bottomless array": _answer(b'{"a":' + b"[" * 200_000),
    "NaN": _answer(json.dumps({**_GRANT, "ttl_seconds": float("nan")}).encode()),
    "a TTL of text": _with(ttl_seconds="60"),
    "a TTL of null": _with(ttl_seconds=None),
    "a TTL of true": _with(ttl_seconds=True),
    "a TTL of 0": _with(ttl_seconds=0),
    "a fence of text": _with(fencing_token="1"),
    "no UTF-8": _answer(b'{"status": "\xff"}'),
    "no gzip": _answer(b"plain", "201 Created", "Content-Encoding: gzip"),
    "no HTTP": b"220 mail.example ESMTP\r\n",
    "half a head": b"HTTP/1.1 201 Crea",
    "a redirect": _answer(b"", "307 Temporary Redirect", "Location: http://127.0.0.1:1/"),
    "a redirect with members": _answer(json.dumps(_GRANT).encode(), "302 Found", "Location: file:///etc/passwd"),
}


@pytest.mark.parametrize("kind", ANSWERS)
def test_an_answer_that_is_none_is_told_as_one(world: World, ns: str, kind: str) -> None:
    with Impostor(ANSWERS[kind]) as impostor:
        fp = world.client(impostor.url, retry_seconds=0.1, timeout_seconds=5)
        with pytest.raises(FencepostError):
            fp.leases.acquire("k", namespace=ns)
        with pytest.raises(FencepostError):
            fp.handoffs.open("0" * 32, keys.mint_handoff_tokens()[0]).read()
        with pytest.raises(FencepostError):
            fp.handoffs.create({"a": 1})


def test_a_grant_without_a_ttl_lets_no_block_run(world: World, ns: str) -> None:
    with Impostor(ANSWERS["a TTL of text"]) as impostor:
        fp = world.client(impostor.url, retry_seconds=0.1)
        with pytest.raises(FencepostError), fp.lease("k", namespace=ns):
            raise AssertionError("the block must not run")


@pytest.mark.parametrize(("drips", "pause"), [(b" ", 0.05), (b" " * 65536, 0.0)], ids=["slowly", "fast"])
def test_a_body_without_end_ends_within_the_limit(world: World, ns: str, drips: bytes, pause: float) -> None:
    head = b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\n\r\n"
    with Impostor(head, drips=drips, pause=pause) as impostor:
        fp = world.client(impostor.url, retry_seconds=1, timeout_seconds=1)
        with pytest.raises(Unreachable):
            fp.leases.acquire("k", namespace=ns)
        assert impostor.asked >= 1


@pytest.mark.parametrize(
    "url",
    [
        "http://",
        "https:///path",
        "http://[::1",
        "http://host:99999",
        "http://host:0",
        "http://host:x",
        "http://ada:s3cret@host",
        "http://host/?q=s3cret",
        "http://host/#s3cret",
        "http://ho st",
        "http://host\n.example",
        "http://\udc80",
        "ftp://host",
        "host:8000",
    ],
)
def test_an_address_that_cannot_be_is_refused_at_once_and_not_shown(url: str) -> None:
    for kind in (fencepost.Client, fencepost.AsyncClient):
        with pytest.raises(ValueError, match="URL") as told:
            kind(url)
        assert "s3cret" not in str(told.value)


@pytest.mark.parametrize("token", ["howner_x\nHost: elsewhere", "howner_\u00e9", "howner_\x00"])
def test_a_token_that_no_head_can_carry_is_refused_before_it_is_sent(url: str, token: str) -> None:
    with fencepost.Client(url) as fp, pytest.raises(ValueError, match="nothing was sent") as told:
        fp.handoffs.open("0" * 32, token).read()
    assert "howner_" not in str(told.value)


def test_what_stands_in_a_link_or_a_state_stays_one_segment(world: World, url: str) -> None:
    fp = world.client(url)
    made = fp.handoffs.create({"a": 1}, states=["a", "b"])
    for odd in ("../../lease", "b?x=1", "b#x", "b/../b", "\u00fc", "b\r\nX: y"):
        with pytest.raises(fencepost.Refused):
            made.move(odd)
    assert made.read()["version"] == 1
    with pytest.raises(fencepost.Refused):
        fp.handoffs.from_link(f"{url}/r#lease/status?.hrecv_{'x' * 20}").read()


@pytest.mark.parametrize(
    "frame",
    [
        {"t": "snap", "id": "h"},
        {"t": "snap", "id": "h", "history": 7, "ended": False},
        {"t": "snap", "id": "h", "history": [7], "ended": False},
        {"t": "chg", "id": "h", "version": "x"},
        {"t": "chg", "id": "h", "version": 1},
        {"t": "goaway", "reconnect_after_ms": []},
        [],
    ],
)
def test_a_frame_that_is_none_ends_the_stream_and_tells_nothing(frame: Any) -> None:
    cursor = Cursor(0)
    with pytest.raises((NoStream, Unreachable)):
        Following("h", cursor).take(frame)
    with suppress(FencepostError):
        cursor.from_history([], False)
    assert cursor.version == 0


def test_a_server_cannot_send_its_clients_to_sleep() -> None:
    with pytest.raises(Cut) as cut:
        Following("h", Cursor(0)).take({"t": "goaway", "reconnect_after_ms": 10**15})
    assert cut.value.pause_seconds <= 60
