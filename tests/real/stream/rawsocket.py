"""A WebSocket client that shares no code with the server: plain sockets and its own strict frame parser."""

import base64
import hashlib
import json
import os
import select
import socket
import struct
import time
from dataclasses import dataclass
from typing import Any

_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10


@dataclass(frozen=True)
class Frame:
    """One frame of the server."""

    opcode: int
    payload: bytes

    @property
    def close_code(self) -> int | None:
        """The code of a close frame; None for one without."""
        return int.from_bytes(self.payload[:2], "big") if len(self.payload) >= 2 else None


class FrameReader:
    """Bytes to whole frames; anything a server must not send is an AssertionError."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self.is_closed = False

    def feed(self, chunk: bytes) -> list[Frame]:
        """The frames that are whole now."""
        self._buffer += chunk
        frames = []
        while (frame := self._next()) is not None:
            assert not self.is_closed, "a frame after the close frame"
            self.is_closed = frame.opcode == CLOSE
            frames.append(frame)
        return frames

    @property
    def is_between_frames(self) -> bool:
        """Whether no cut frame is left over."""
        return not self._buffer

    def _next(self) -> Frame | None:
        buffer = self._buffer
        if len(buffer) < 2:
            return None
        assert buffer[0] & 0x80, f"fragmented or torn: {bytes(buffer[:8])!r}"
        assert not buffer[0] & 0x70, f"reserved bits: {bytes(buffer[:8])!r}"
        opcode, length, at = buffer[0] & 0x0F, buffer[1], 2
        assert opcode in (TEXT, CLOSE, PING, PONG), f"opcode {opcode}: {bytes(buffer[:8])!r}"
        assert not length & 0x80, "masked"
        if length == 126:
            if len(buffer) < 4:
                return None
            (length,), at = struct.unpack_from("!H", buffer, 2), 4
            assert length > 125
        elif length == 127:
            if len(buffer) < 10:
                return None
            (length,), at = struct.unpack_from("!Q", buffer, 2), 10
            assert 65535 < length < 1 << 20
        assert opcode < 8 or length <= 125
        if len(buffer) < at + length:
            return None
        payload = bytes(buffer[at : at + length])
        if opcode == TEXT:
            payload.decode("utf-8")
        del buffer[: at + length]
        return Frame(opcode, payload)


def client_frame(
    opcode: int, payload: bytes, *, first: int | None = None, fin: bool = True, mask: bool = True
) -> bytes:
    """A client's frame; `first` overrides the first byte, for frames that must not be."""
    head = bytes([first if first is not None else (0x80 if fin else 0) | opcode])
    bit = 0x80 if mask else 0
    if len(payload) < 126:
        head += bytes([bit | len(payload)])
    elif len(payload) < 65536:
        head += bytes([bit | 126]) + struct.pack("!H", len(payload))
    else:
        head += bytes([bit | 127]) + struct.pack("!Q", len(payload))
    if not mask:
        return head + payload
    key = os.urandom(4)
    stretched = (key * (len(payload) // 4 + 1))[: len(payload)]
    masked = (int.from_bytes(payload, "big") ^ int.from_bytes(stretched, "big")).to_bytes(len(payload), "big")
    return head + key + masked


class Rejected(Exception):
    """The server answered something else than 101."""

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        super().__init__(status, body[:200])
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def code(self) -> str:
        """The machine code of the JSON body."""
        return str(json.loads(self.body)["code"])


class RawSocket:
    """One connection. `receive_buffer` bytes makes a tiny window."""

    def __init__(
        self,
        port: int,
        path: str = "/services/v1/stream",
        *,
        headers: dict[str, str] | None = None,
        label: str | None = "fencepost.v1",
        receive_buffer: int | None = None,
        timeout: float = 15.0,
    ) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        if receive_buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(timeout)
        self.socket.connect(("127.0.0.1", port))
        self.reader = FrameReader()
        self.frames: list[Frame] = []
        self.is_at_end = False
        self.head = self._upgrade(port, path, dict(headers or {}), label)

    def _upgrade(self, port: int, path: str, headers: dict[str, str], label: str | None) -> dict[str, str]:
        key = base64.b64encode(os.urandom(16))
        wanted = {
            "Host": f"127.0.0.1:{port}",
            "Upgrade": "websocket",
            "Connection": "Upgrade",
            "Sec-WebSocket-Key": key.decode(),
            "Sec-WebSocket-Version": "13",
        }
        if label is not None:
            wanted["Sec-WebSocket-Protocol"] = label
        wanted |= headers
        lines = [f"GET {path} HTTP/1.1", *(f"{name}: {value}" for name, value in wanted.items() if value), "", ""]
        self.socket.sendall("\r\n".join(lines).encode("latin-1"))
        received = b""
        while b"\r\n\r\n" not in received:
            chunk = self.socket.recv(1)
            assert chunk, received
            received += chunk
        status, _, rest = received.partition(b"\r\n")
        answer = {
            name.strip().lower(): value.strip()
            for name, _, value in (line.partition(":") for line in rest.decode("latin-1").split("\r\n") if line)
        }
        if status.split()[1] != b"101":
            body = b""
            while len(body) < int(answer.get("content-length", "0")):
                body += self.socket.recv(65536)
            self.socket.close()
            raise Rejected(int(status.split()[1]), answer, body)
        wanted_accept = base64.b64encode(hashlib.sha1(key + _GUID).digest()).decode()  # the protocol's own
        assert answer["sec-websocket-accept"] == wanted_accept
        return answer

    # -------------------------------------------------------------------------------------- sending

    def send(self, message: dict[str, Any] | str | bytes, opcode: int = TEXT) -> None:
        """One whole message."""
        if isinstance(message, dict):
            message = json.dumps(message)
        payload = message.encode("utf-8") if isinstance(message, str) else message
        self.send_raw(client_frame(opcode, payload))

    def send_raw(self, raw: bytes) -> None:
        """These bytes."""
        self.socket.sendall(raw)

    # ------------------------------------------------------------------------------------ receiving

    def read_some(self, size: int = 65536) -> list[Frame]:
        """What one `recv` brings, in frames; pings are answered. Notes the end of the stream."""
        try:
            chunk = self.socket.recv(size)
        except ConnectionResetError:
            chunk = b""
        if not chunk:
            self.is_at_end = True
            return []
        frames = self.reader.feed(chunk)
        for frame in frames:
            if frame.opcode == PING:
                self.send_quietly(client_frame(PONG, frame.payload))
        return frames

    def send_quietly(self, raw: bytes) -> None:
        """Send to a peer that may be gone."""
        try:
            self.socket.sendall(raw)
        except OSError:
            self.is_at_end = True

    def next_frame(self, timeout: float = 10.0) -> Frame | None:
        """The next text or close frame; None at the end of the stream. AssertionError after `timeout` seconds."""
        deadline = time.monotonic() + timeout
        while True:
            while self.frames:
                frame = self.frames.pop(0)
                if frame.opcode in (TEXT, CLOSE):
                    return frame
            if self.is_at_end:
                return None
            left = deadline - time.monotonic()
            assert left > 0, "nothing came"
            poll = select.poll()
            poll.register(self.socket, select.POLLIN)
            if poll.poll(left * 1000):
                self.frames += self.read_some()

    def next(self, *types: str, timeout: float = 10.0) -> dict[str, Any]:
        """The next message of one of these types (any without types), passing over others."""
        while True:
            frame = self.next_frame(timeout)
            assert frame is not None, "the stream ended"
            assert frame.opcode == TEXT, f"closed with {frame.close_code} {frame.payload[2:]!r}"
            message: dict[str, Any] = json.loads(frame.payload)
            if not types or message["t"] in types:
                return message

    def close_code(self, timeout: float = 10.0) -> int | None:
        """Read to the end and say with which code the server closed; None if it just hung up."""
        code = None
        while (frame := self.next_frame(timeout)) is not None:
            if frame.opcode == CLOSE:
                code = frame.close_code
        assert self.reader.is_between_frames, "the last frame was cut"
        self.socket.close()
        return code

    def is_silent(self, seconds: float) -> bool:
        """Whether no text or close frame comes for so long."""
        try:
            frame = self.next_frame(seconds)
        except AssertionError:
            return True
        if frame is not None:
            self.frames.insert(0, frame)
        return False

    def cut(self) -> None:
        """Reset the connection without a word."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def close(self) -> None:
        """Hang up."""
        self.socket.close()
