"""One WebSocket to one handoff's stream: connect, converse, close."""

import contextlib
import json
import ssl
from collections.abc import AsyncIterator, Mapping
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

from fencepost import _json
from fencepost._follow import Cut, NoStream, closed
from fencepost._frames import CLOSE, PING, PONG, TEXT, Handshake, Malformed, Messages, close_of, frame
from fencepost._wire import AsyncWire
from fencepost.errors import refused

_SUBPROTOCOL = "fencepost.v1"
_STEP_SECONDS = 5.0
_SILENCE_SECONDS = 44.0
"""2.2 heartbeats of the server: then it has vanished."""


class AsyncStream:
    """The conversation. A context manager; iterate `frames`."""

    def __init__(self, url: str, path: str, token: str, context: ssl.SSLContext | None) -> None:
        self._parts = urlsplit(url)
        self._path = self._parts.path.rstrip("/") + path
        self._token = token
        self._context = context
        self._messages = Messages()

    async def __aenter__(self) -> "AsyncStream":
        try:
            self._wire = await AsyncWire.connect(self._parts, self._context, _STEP_SECONDS)
        except OSError:
            raise NoStream from None
        try:
            self._rest = await self._shake_hands()
        except BaseException:
            await self._wire.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(OSError):  # it may be gone already
            await self._wire.send(frame(CLOSE, (1000).to_bytes(2, "big")), _STEP_SECONDS)
        await self._wire.close()

    async def send(self, message: Mapping[str, Any]) -> None:
        """Send one message. Raises Cut."""
        try:
            await self._wire.send(frame(TEXT, json.dumps(message).encode()), _STEP_SECONDS)
        except OSError:
            raise Cut(0.0) from None

    async def frames(self) -> AsyncIterator[Mapping[str, Any]]:
        """Each message of the server. Raises Cut or StreamStopped at its end."""
        chunk = self._rest
        while True:
            try:
                for opcode, payload in self._messages.feed(chunk):
                    if opcode == PING:
                        await self._wire.send(frame(PONG, payload), _STEP_SECONDS)
                    elif opcode == CLOSE:
                        raise closed(*close_of(payload))
                    elif opcode == TEXT:
                        yield _json.read(payload)
                chunk = await self._wire.receive(_SILENCE_SECONDS)
            except (OSError, Malformed, ValueError):
                raise Cut(1.0) from None
            if not chunk:
                raise Cut(1.0)

    async def _shake_hands(self) -> bytes:
        """Ask for the socket; what came after the answer's head. Raises NoStream, NotFound."""
        handshake = Handshake(self._parts.netloc.rpartition("@")[2], self._path, self._token, _SUBPROTOCOL)
        try:
            await self._wire.send(handshake.request, _STEP_SECONDS)
            while (answer := handshake.feed(await self._receive())) is None:
                continue
        except (OSError, Malformed):
            raise NoStream from None
        status, rest = answer
        if status == 101:
            return rest
        if status == 404 and b'"not_found"' in rest:
            raise refused(404, {"code": "not_found", "error": "Not found, or the token does not fit"})
        raise NoStream

    async def _receive(self) -> bytes:
        chunk = await self._wire.receive(_STEP_SECONDS)
        if not chunk:
            raise OSError
        return chunk
