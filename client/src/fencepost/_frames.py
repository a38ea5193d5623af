"""The client's side of RFC 6455 as bytes: the handshake, frames out (masked), frames in. No network here.

Compression is not offered, and a message may have a megabyte at most: nothing that the server says is near it.
"""

import hashlib
import os
from base64 import b64encode
from collections.abc import Iterator

TEXT, BINARY, CLOSE, PING, PONG = 0x1, 0x2, 0x8, 0x9, 0xA
_CONTINUATION = 0x0
_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_LARGEST_MESSAGE = 1 << 20
_LARGEST_HEAD = 16 * 1024


class Malformed(Exception):
    """What came is not RFC 6455, or more than is read."""


class Handshake:
    """The request that asks for a socket, and the judgement of its answer."""

    def __init__(self, host: str, path: str, token: str, subprotocol: str) -> None:
        self._key = b64encode(os.urandom(16))
        self.request = (
            f"GET {path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {self._key.decode()}\r\n"
            f"Sec-WebSocket-Protocol: {subprotocol}\r\nAuthorization: Bearer {token}\r\n\r\n"
        ).encode("ascii")
        self._seen = b""

    def feed(self, chunk: bytes) -> tuple[int, bytes] | None:
        """The status and the bytes after the head, once the head is whole. Raises Malformed."""
        self._seen += chunk
        head, found, rest = self._seen.partition(b"\r\n\r\n")
        if not found:
            if len(self._seen) > _LARGEST_HEAD:
                raise Malformed
            return None
        lines = head.split(b"\r\n")
        words = lines[0].split(b" ", 2)
        if len(words) < 2 or not words[1].isdigit():
            raise Malformed
        status = int(words[1])
        if status == 101 and self._accept() not in [
            line.partition(b":")[2].strip() for line in lines[1:] if line.lower().startswith(b"sec-websocket-accept:")
        ]:
            raise Malformed
        return status, rest

    def _accept(self) -> bytes:
        return b64encode(hashlib.sha1(self._key + _GUID, usedforsecurity=False).digest())


def frame(opcode: int, payload: bytes) -> bytes:
    """One whole frame, masked as a client's must be."""
    length, mask = len(payload), os.urandom(4)
    if length < 126:
        head = bytes((0x80 | opcode, 0x80 | length))
    elif length < 1 << 16:
        head = bytes((0x80 | opcode, 0x80 | 126)) + length.to_bytes(2, "big")
    else:
        head = bytes((0x80 | opcode, 0x80 | 127)) + length.to_bytes(8, "big")
    repeated = (mask * (length // 4 + 1))[:length]
    masked = (int.from_bytes(payload, "big") ^ int.from_bytes(repeated, "big")).to_bytes(length, "big")
    return head + mask + masked


class Messages:
    """Puts what arrives together: feed it chunks in order, it gives whole messages and control frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._parts: list[bytes] = []
        self._opcode = 0

    def feed(self, chunk: bytes) -> Iterator[tuple[int, bytes]]:
        """Each (opcode, payload) that is whole now. Raises Malformed."""
        self._buffer += chunk
        while (taken := self._frame()) is not None:
            is_last, opcode, payload = taken
            if opcode >= CLOSE:
                yield opcode, payload
                continue
            if (opcode == _CONTINUATION) is not bool(self._parts):
                raise Malformed
            self._opcode = opcode or self._opcode
            self._parts.append(payload)
            if sum(map(len, self._parts)) > _LARGEST_MESSAGE:
                raise Malformed
            if is_last:
                whole, self._parts = b"".join(self._parts), []
                yield self._opcode, whole

    def _frame(self) -> tuple[bool, int, bytes] | None:
        buffer = self._buffer
        if len(buffer) < 2:
            return None
        if buffer[0] & 0x70 or buffer[1] & 0x80:
            raise Malformed
        length, start = buffer[1] & 0x7F, 2
        if length >= 126:
            start += 2 if length == 126 else 8
            if len(buffer) < start:
                return None
            length = int.from_bytes(buffer[2:start], "big")
        if length > _LARGEST_MESSAGE:
            raise Malformed
        if len(buffer) < start + length:
            return None
        payload = bytes(buffer[start : start + length])
        is_last, opcode = bool(buffer[0] & 0x80), buffer[0] & 0x0F
        del buffer[: start + length]
        return is_last, opcode, payload


def close_of(payload: bytes) -> tuple[int, str]:
    """Code and reason of a close frame; 1005 when it has none."""
    if len(payload) < 2:
        return 1005, ""
    return int.from_bytes(payload[:2], "big"), payload[2:].decode("utf-8", "replace")
