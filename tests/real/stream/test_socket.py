"""The faults of simple-websocket 1.1.0, each closed, over a real port under the gevent worker."""

import contextlib
import json
import random
import select
import socket
import struct
import time
from collections.abc import Iterator

import pytest

from tests.real.stream.rawsocket import CLOSE, PING, PONG, TEXT, Frame, FrameReader, RawSocket, client_frame
from tests.real.stream.streaming import StreamServer


@pytest.fixture(scope="module")
def server() -> Iterator[StreamServer]:
    with StreamServer() as running:
        follow(running, running.make()[0]).cut()  # what is made once for the whole process is there from now on
        yield running


def follow(server: StreamServer, id: str, **options: int) -> RawSocket:
    """A socket that follows one handoff and is live."""
    ws = RawSocket(server.port, **options)  # type: ignore[arg-type]
    ws.send({"t": "sub", "id": "a", "handoff": id, "token": "o" + id})
    assert ws.next("live", "err")["t"] == "live"
    return ws


# ------------------------------------------------------------------------------------- what is read


BAD_FRAMES = {
    "reserved bit 1": (client_frame(TEXT, b"{}", first=0xC1), 1002),
    "reserved bit 2": (client_frame(TEXT, b"{}", first=0xA1), 1002),
    "reserved bit 3": (client_frame(TEXT, b"{}", first=0x91), 1002),
    "reserved opcode": (client_frame(TEXT, b"{}", first=0x83), 1002),
    "not masked": (client_frame(TEXT, b"{}", mask=False), 1002),
    "continues nothing": (client_frame(0, b"{}"), 1002),
    "a message inside a message": (client_frame(TEXT, b"{", fin=False) + client_frame(TEXT, b"}"), 1002),
    "a long ping": (client_frame(PING, b"x" * 126), 1002),
    "a fragmented ping": (client_frame(PING, b"x", fin=False), 1002),
    "half a close code": (client_frame(CLOSE, b"x"), 1002),
    "close code 999": (client_frame(CLOSE, struct.pack("!H", 999)), 1002),
    "close code 1005": (client_frame(CLOSE, struct.pack("!H", 1005)), 1002),
    "a length spelled too long": (b"\x81\xfe\x00\x05" + b"abcd" + b"hello", 1002),
    "no UTF-8": (client_frame(TEXT, b"\xff\xfe"), 1007),
    "no UTF-8 over two fragments": (client_frame(TEXT, b"\xc3", fin=False) + client_frame(0, b"("), 1007),
    "a surrogate in UTF-8": (client_frame(TEXT, b'{"t":"\xed\xa0\x80"}'), 1007),
    "one byte too many": (client_frame(TEXT, b"x" * 32769), 1009),
    "a terabyte announced": (b"\x81\xff" + struct.pack("!Q", 1 << 40) + b"abcd", 1009),
    "two fragments too many": (client_frame(TEXT, b"x" * 20000, fin=False) + client_frame(0, b"x" * 20000), 1009),
    "many fragments too many": (
        client_frame(TEXT, b"x" * 1000, fin=False) + client_frame(0, b"x" * 1000, fin=False) * 32,
        1009,
    ),
    "tiny fragments": (client_frame(TEXT, b"x", fin=False) + client_frame(0, b"x", fin=False) * 30, 4100),
}


@pytest.mark.parametrize("what", BAD_FRAMES)
def test_a_bad_frame_closes_with_its_code(server: StreamServer, what: str) -> None:
    raw, code = BAD_FRAMES[what]
    ws = RawSocket(server.port)
    ws.send_raw(raw)
    assert ws.close_code() == code


def test_noise_never_disturbs_the_server(server: StreamServer) -> None:
    """Frames with flipped bits, lost and doubled bytes: each socket ends or goes on, and nothing is logged."""
    chance = random.Random(3)
    [id] = server.make()
    sub = {"t": "sub", "id": "a", "handoff": id, "token": "o" + id, "after": 0}
    for _ in range(200):
        ws = RawSocket(server.port)
        frames = [client_frame(TEXT, json.dumps(sub).encode()), client_frame(PING, b"p"), client_frame(CLOSE, b"")]
        noise = bytearray(b"".join(chance.choices(frames, k=4)))
        for _ in range(chance.randrange(1, 6)):
            at = chance.randrange(len(noise))
            match chance.randrange(3):
                case 0:
                    noise[at] ^= 1 << chance.randrange(8)
                case 1:
                    del noise[at]
                case 2:
                    noise.insert(at, chance.randrange(256))
        ws.send_quietly(bytes(noise))
        ws.read_some()
        ws.cut()
    follow(server, id).close()


def test_a_message_of_exactly_32_kib_is_read_whole_and_in_pieces(server: StreamServer) -> None:
    message = json.dumps({"t": "nope", "fill": ""}).encode()
    message = message[:-2] + b"x" * (32768 - len(message)) + message[-2:]
    assert len(message) == 32768
    ws = RawSocket(server.port)
    ws.next("hello")
    ws.send_raw(client_frame(TEXT, message))
    assert ws.next()["code"] == "unknown_type"
    ws.send_raw(client_frame(TEXT, message[:16000], fin=False))
    ws.send_raw(client_frame(PING, b"between"))
    ws.send_raw(client_frame(0, message[16000:]))
    assert ws.next()["code"] == "unknown_type"
    ws.close()


def test_frames_are_understood_whatever_the_cuts(server: StreamServer) -> None:
    [id] = server.make()
    ws = RawSocket(server.port)
    raw = b"".join(
        client_frame(TEXT, json.dumps({"t": "sub", "id": str(n), "handoff": id, "token": "o" + id}).encode())
        for n in range(4)
    )
    raw += client_frame(PING, b"")
    ws.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for byte in raw:
        ws.send_raw(bytes([byte]))
        time.sleep(0.001)
    assert [ws.next("live")["id"] for _ in range(4)] == ["0", "1", "2", "3"]
    ws.close()


def test_a_close_is_answered_with_its_code_and_the_stream_ends(server: StreamServer) -> None:
    ws = RawSocket(server.port)
    ws.send_raw(client_frame(CLOSE, struct.pack("!H", 3000) + b"bye"))
    assert ws.close_code() == 3000
    ws = RawSocket(server.port)
    ws.send_raw(client_frame(CLOSE, b""))
    assert ws.close_code() is None


def test_pings_are_answered_with_their_payload(server: StreamServer) -> None:
    ws = RawSocket(server.port)
    ws.next("hello")
    ws.send_raw(client_frame(PING, b"p" * 125))
    deadline = time.monotonic() + 5
    frames: list[Frame] = []
    while not frames and time.monotonic() < deadline:
        frames = ws.read_some()
    assert frames == [Frame(PONG, b"p" * 125)]
    ws.close()


def test_a_hundred_thousand_pings_close_4100_and_cost_little(server: StreamServer) -> None:
    [id] = server.make(states=["a", "b", "c"])
    other = follow(server, id)
    before = server.counts()["resident"]
    ws = RawSocket(server.port)
    flood = client_frame(PING, b"x" * 100) * 100_000
    began = time.monotonic()
    with contextlib.suppress(OSError):
        ws.send_raw(flood)
    pongs, codes = 0, []
    while not ws.is_at_end:
        for frame in ws.read_some():
            pongs += frame.opcode == PONG
            codes += [frame.close_code] if frame.opcode == CLOSE else []
    assert codes in ([4100], [])  # a peer that floods on may lose the close frame to its own reset
    assert pongs <= 40
    assert time.monotonic() - began < 8
    assert server.counts()["resident"] - before < 4_000_000
    server.post("move", ids=[id])
    assert other.next()["version"] == 2
    other.close()


def test_twenty_frames_at_once_are_read_and_the_21st_closes_4100(server: StreamServer) -> None:
    ws = RawSocket(server.port)
    ws.next("hello")
    ws.send_raw(client_frame(TEXT, b'{"t":"x"}') * 20)
    assert [ws.next()["code"] for _ in range(20)] == ["unknown_type"] * 20
    time.sleep(1.1)
    ws.send_raw(client_frame(TEXT, b'{"t":"x"}') * 40)
    codes = []
    while (frame := ws.next_frame()) is not None and frame.opcode == TEXT:
        codes.append(json.loads(frame.payload)["code"])
    assert codes[-1] == "rate_limited"
    assert frame is not None
    assert frame.close_code == 4100
    ws.close()


def test_unread_input_is_bounded_by_back_pressure(server: StreamServer) -> None:
    """A socket whose handler never reads (it only sends) takes 16 messages and then stops reading."""
    before = server.counts()["resident"]
    ws = RawSocket(server.port, "/test/blast", receive_buffer=4096)
    ws.socket.settimeout(1.0)
    sent = 0
    with contextlib.suppress(TimeoutError):
        for _ in range(4):
            for _ in range(18):
                ws.send_raw(client_frame(TEXT, b"x" * 30000))
                sent += 30000
            time.sleep(1.0)
    assert server.counts()["resident"] - before < 8_000_000
    ws.cut()


# ---------------------------------------------------------------------------------- what is written


def blasted(server: StreamServer, sockets: int, seconds: float, seed: int) -> tuple[int, int]:
    """Read from many blasted sockets with tiny windows at random, pinging: whole frames, every number in order."""
    chance = random.Random(seed)
    clients = [RawSocket(server.port, "/test/blast", receive_buffer=4096) for _ in range(sockets)]
    expected = dict.fromkeys(clients, 0)
    by_descriptor = {client.socket.fileno(): client for client in clients}
    poll = select.poll()
    for descriptor in by_descriptor:
        poll.register(descriptor, select.POLLIN)
    deadline = time.monotonic() + seconds
    pinged, pongs = dict.fromkeys(clients, 0.0), 0
    while time.monotonic() < deadline:
        for descriptor, _ in poll.poll(100):
            client = by_descriptor[descriptor]
            if chance.random() < 0.3:
                continue
            for frame in client.read_some(chance.choice((1, 100, 1000, 4096, 16384))):
                if frame.opcode == TEXT:
                    message = json.loads(frame.payload)
                    assert message["n"] == expected[client]
                    assert set(message["fill"]) == {chr(97 + message["n"] % 26)}
                    expected[client] += 1
                pongs += frame.opcode == PONG
            assert not client.is_at_end
            if time.monotonic() - pinged[client] > 0.5 and chance.random() < 0.1:
                pinged[client] = time.monotonic()
                client.send_raw(client_frame(PING, b"are you there"))
    for client in clients:
        client.cut()
    assert min(expected.values()) > 0
    return sum(expected.values()), pongs


def test_every_frame_is_whole_and_in_order_for_200_tiny_windows(server: StreamServer) -> None:
    frames, pongs = blasted(server, 200, 7, seed=1)
    assert frames > 1000
    assert pongs > 50


@pytest.mark.long
@pytest.mark.timeout(200)
def test_every_frame_is_whole_for_a_minute(server: StreamServer) -> None:
    frames, _ = blasted(server, 200, 60, seed=2)
    assert frames > 10_000


def stopped_reading(server: StreamServer, at_most_seconds: float) -> None:
    """One peer stops reading while 40 handoffs move; another is delayed by nothing; the first is closed with 4103."""
    ids = server.make(40, states=[f"s{number}" for number in range(12)], payload_size=16000)
    reading = follow(server, ids[0])
    stuck = RawSocket(server.port, receive_buffer=4096)
    before = server.counts()["resident"]
    for number, id in enumerate(ids):
        stuck.send({"t": "sub", "id": str(number), "handoff": id, "token": "o" + id, "payload": True})
        time.sleep(0.055)
    began, worst = time.monotonic(), 0.0
    for version in range(2, 12):
        moved_at = time.monotonic()
        server.post("move", ids=ids)
        assert reading.next("chg")["version"] == version
        worst = max(worst, time.monotonic() - moved_at)
        time.sleep(0.1)
    assert worst < 1.5
    assert server.counts()["resident"] - before < 6_000_000
    while server.counts()["seats"] > 1:
        assert time.monotonic() - began < at_most_seconds, "the stuck peer still has its seat"
        assert reading.is_silent(0.2) or reading.next("hb")
    assert stuck.close_code() == 4103
    reading.close()


def test_a_peer_that_stops_reading_gets_whole_frames_and_4103_and_delays_nobody() -> None:
    with StreamServer(patience=3.0) as server:
        stopped_reading(server, 25)


@pytest.mark.long
def test_a_peer_that_stops_reading_is_closed_within_25_seconds() -> None:
    with StreamServer() as server:
        stopped_reading(server, 25)


def test_a_slow_reader_gets_every_version_it_lacks_once() -> None:
    with StreamServer() as server:
        ids = server.make(60, states=[f"s{number}" for number in range(12)], payload_size=4000)
        slow = RawSocket(server.port, receive_buffer=4096)
        for number, id in enumerate(ids):
            slow.send({"t": "sub", "id": str(number), "handoff": id, "token": "o" + id, "payload": True})
            time.sleep(0.055)
        for _ in range(11):
            server.post("move", ids=ids, note="n" * 500)
        versions: dict[str, list[int]] = {}
        over = 0
        while over < len(ids):
            message = slow.next("snap", "chg", "end", timeout=20)
            if message["t"] == "end":
                over += 1
            elif message["t"] == "snap":
                versions[message["id"]] = [message["version"]]
            else:
                versions[message["id"]].append(message["version"])
        for told in versions.values():
            assert told == list(range(told[0], 13))
        slow.close()


# ---------------------------------------------------------------------------------------- life time


def test_the_times_of_a_socket() -> None:
    with StreamServer(first_subscription=1.0, heartbeat=0.5, silence=2.0, age=4.0) as server:
        [id] = server.make()
        unsubscribed = RawSocket(server.port)
        began = time.monotonic()
        unsubscribed.send({"t": "hb"})
        assert unsubscribed.close_code() == 4008
        assert 0.8 < time.monotonic() - began < 4

        beating = follow(server, id)
        beats = beating.next("hb")
        assert beats["subs"] == 1
        assert beats["now"].endswith("Z")
        away = beating.next("goaway")
        assert away["reason"] == "age"
        assert 0 <= away["reconnect_after_ms"] <= 5000
        assert beating.close_code() == 4202

        silent = follow(server, id)
        began = time.monotonic()
        reader = FrameReader()
        codes = []
        silent.socket.settimeout(8)
        while chunk := silent.socket.recv(4096):  # reads, but never answers a ping
            codes += [frame.close_code for frame in reader.feed(chunk) if frame.opcode == CLOSE]
        assert codes == [4201]
        assert time.monotonic() - began < 6
        silent.close()


def test_a_stopping_server_tells_500_sockets_and_ends_within_two_seconds() -> None:
    with StreamServer() as server:
        [id] = server.make()
        following = [follow(server, id) for _ in range(500)]
        stuck = RawSocket(server.port, receive_buffer=4096)
        for number, big in enumerate(server.make(12, payload_size=16000)):
            stuck.send({"t": "sub", "id": str(number), "handoff": big, "token": "o" + big, "payload": True})
        fresh = RawSocket(server.port)
        began = time.monotonic()
        assert server.running.terminate() == 0
        took = time.monotonic() - began
        for ws in [*following, fresh]:
            assert ws.next("goaway")["reason"] == "shutdown"
            assert ws.close_code() == 4200
        assert took < 4  # 2 on a machine of its own
        stuck.close()


# ------------------------------------------------------------------------------------ abrupt leaving

UPGRADE = (
    b"GET /services/v1/stream HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Protocol: fencepost.v1\r\n\r\n"
)


@pytest.mark.parametrize(
    "phase", ["before 101", "after 101", "half a frame", "subscribed", "during a change", "half closed", "closing"]
)
def test_an_abrupt_end_in_each_phase_leaves_nothing(server: StreamServer, phase: str) -> None:
    [id] = server.make(states=["a", "b", "c"])
    base = server.counts()
    clients = []
    for _ in range(20):
        if phase == "before 101":
            asked = socket.create_connection(("127.0.0.1", server.port))
            asked.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            asked.sendall(UPGRADE)
            asked.close()
            continue
        ws = RawSocket(server.port)
        if phase == "half a frame":
            ws.send_raw(client_frame(TEXT, b"x" * 1000)[:500])
        elif phase != "after 101":
            ws.send({"t": "sub", "id": "a", "handoff": id, "token": "o" + id})
            ws.next("live")
        clients.append(ws)
    if phase == "during a change":
        server.post("move", ids=[id])
    for ws in clients:
        if phase == "half closed":
            ws.socket.shutdown(socket.SHUT_WR)
        elif phase == "closing":
            ws.send_raw(client_frame(CLOSE, struct.pack("!H", 1000)))
            ws.cut()
        else:
            ws.cut()
    counts = server.settle(base)
    assert all(counts[name] <= base[name] for name in counts), (base, counts)
    for ws in clients:
        ws.close()


def test_a_thousand_connects_and_abrupt_ends_leave_nothing(server: StreamServer) -> None:
    [id] = server.make()
    base = server.counts()
    for number in range(1000):
        ws = RawSocket(server.port)
        if number % 2:
            ws.send({"t": "sub", "id": "a", "handoff": id, "token": "o" + id})
        if number % 3 == 0:
            ws.next("hello")
        ws.cut()
    counts = server.settle(base)
    assert all(counts[name] <= base[name] for name in counts), (base, counts)
