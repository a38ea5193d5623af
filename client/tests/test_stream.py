"""The stream's bytes and words without a network, and cut at random with one."""

import random
import threading
from typing import Any

import pytest
from client.tests.proxy import Relay
from client.tests.worlds import World
from tests.real.server import RunningServer

from fencepost import StreamStopped, refusals
from fencepost._follow import Cursor, Cut, Following, closed
from fencepost._frames import CLOSE, PING, TEXT, Malformed, Messages, close_of, frame


def change(version: int, id: str = "h", **more: Any) -> dict[str, Any]:
    """A frame of one change."""
    told = {"state": f"s{version}", "previous": None, "by": "owner", "at_timestamp": 1, "note": None, "ended": False}
    return {"t": "chg", "id": id, "version": version, **told, **more}


def test_what_was_told_is_not_told_again() -> None:
    following = Following("h", Cursor(2))
    told = [following.take(change(version))[0] for version in (1, 2, 3, 3, 4)]
    assert [[one.version for one in some] for some in told] == [[], [], [3], [], [4]]


def test_a_gap_is_closed_by_subscribing_anew_once() -> None:
    """C24."""
    following = Following("h", Cursor(1))
    changes, answers = following.take(change(4))
    assert changes == []
    assert answers == [{"t": "sub", "id": "again", "handoff": "h", "after": 1}, {"t": "unsub", "id": "h"}]
    assert following.take(change(5)) == ([], [])
    assert [one.version for one in following.take(change(2, "again"))[0]] == [2]
    with pytest.raises(Cut):
        following.take(change(9, "again"))


def test_a_heartbeat_is_answered_and_a_goaway_obeyed() -> None:
    following = Following("h", Cursor(0))
    assert following.take({"t": "hb"}) == ([], [{"t": "hb"}])
    with pytest.raises(Cut) as told:
        following.take({"t": "goaway", "reason": "x", "reconnect_after_ms": 1500})
    assert told.value.pause_seconds == 1.5
    with pytest.raises(refusals.NotFound):
        following.take({"t": "err", "id": "h", "code": "not_found", "error": "x"})
    following.take({"t": "end", "id": "h"})
    assert following.is_over


def test_a_history_that_shrank_is_told_in_the_log_and_followed_on(caplog: pytest.LogCaptureFixture) -> None:
    """C11."""
    entry = {"state": "a", "from": None, "by": "owner", "at_timestamp": 1, "note": None}
    cursor = Cursor(3)
    assert cursor.from_history([entry], False) == []
    assert cursor.version == 1
    assert "backup" in caplog.text


@pytest.mark.parametrize(
    ("code", "pause"), [(4100, 5.0), (4103, 5.0), (4200, 0.0), (4202, 0.0), (1006, 1.0), (1011, 1.0)]
)
def test_close_codes_do_what_their_range_says(code: int, pause: float) -> None:
    """D8."""
    assert closed(code, "").pause_seconds == pause


@pytest.mark.parametrize("code", [4000, 4013, 4029, 4099])
def test_a_stop_is_final(code: int) -> None:
    with pytest.raises(StreamStopped) as told:
        closed(code, "rights ended")
    assert told.value.close_code == code


def unmasked(opcode: int, payload: bytes, *, is_last: bool = True) -> bytes:
    """A frame as a server sends it."""
    head = bytes([(0x80 if is_last else 0) | opcode])
    if len(payload) < 126:
        return head + bytes([len(payload)]) + payload
    return head + bytes([126]) + len(payload).to_bytes(2, "big") + payload


def test_messages_come_whole_however_the_bytes_arrive() -> None:
    sent = unmasked(TEXT, b"x" * 300) + unmasked(TEXT, b"one, ", is_last=False) + unmasked(PING, b"p")
    sent += unmasked(0, b"two") + unmasked(CLOSE, (4200).to_bytes(2, "big") + b"bye")
    dice = random.Random(6455)
    for _ in range(50):
        messages, got, at = Messages(), [], 0
        while at < len(sent):
            step = dice.randint(1, 40)
            got += list(messages.feed(sent[at : at + step]))
            at += step
        assert got == [(TEXT, b"x" * 300), (PING, b"p"), (TEXT, b"one, two"), (CLOSE, b"\x10\x68bye")]
        assert close_of(got[-1][1]) == (4200, "bye")


@pytest.mark.parametrize("wrong", [b"\x81\x81abcd", b"\xc1\x00", b"\x80\x00", b"\x82\x7f" + b"\xff" * 8])
def test_what_is_no_frame_of_a_server_is_refused(wrong: bytes) -> None:
    with pytest.raises(Malformed):
        list(Messages().feed(wrong))


@pytest.mark.parametrize("size", [0, 125, 126, 65535, 65536])
def test_a_clients_frame_is_masked_and_whole(size: int) -> None:
    payload = bytes(range(256)) * (size // 256 + 1)
    made = frame(TEXT, payload[:size])
    start = 2 + (0 if size < 126 else 2 if size < 65536 else 8)
    mask = made[start : start + 4]
    assert made[1] & 0x80
    body = made[start + 4 :]
    assert bytes(byte ^ mask[at % 4] for at, byte in enumerate(body)) == payload[:size]


def test_cut_at_random_every_version_comes_once(server: RunningServer, world: World) -> None:
    """C9, a quick share."""
    states = [f"s{number}" for number in range(12)]
    straight = world.client(server.url)
    with Relay(server.port) as relay:
        fp = world.client(relay.url)
        made = straight.handoffs.create({"a": 1}, states=states)
        told: list[int] = []
        follower = threading.Thread(
            target=lambda: told.extend(
                one.version for one in fp.handoffs.open(made.handoff_id, made.receiver_token).changes()
            )
        )
        follower.start()
        for number, state in enumerate(states[1:]):
            made.move(state)
            if number % 2:
                relay.cut()
        follower.join(60)
    assert told == list(range(1, 13))
