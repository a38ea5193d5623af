# Made by scripts/unasync.py from _async. Do not edit.
"""One WebSocket to one handoff's stream: connect, converse, close."""

import contextlib
import json
import ssl
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

from fencepost import _json
from fencepost._follow import Cut, NoStream, closed
from fencepost._frames import CLOSE, PING, PONG, TEXT, Handshake, Malformed, Messages, close_of, frame
from fencepost._wire import Wire
from fencepost.errors import refused

_SUBPROTOCOL = "fencepost.v1"
_STEP_SECONDS = 5.0
_SILENCE_SECONDS = 44.0
"""2.2 heartbeats of the server: then it has vanished."""


class Stream:
    """The conversation. A context manager; iterate `frames`."""

    def __init__(self, url: str, path: str, token: str, context: ssl.SSLContext | None) -> None:
        self._parts = urlsplit(url)
        self._path = self._parts.path.rstrip("/") + path
        self._token = token
        self._context = context
        self._messages = Messages()

    def __enter__(self) -> "Stream":
        try:
            self._wire = Wire.connect(self._parts, self._context, _STEP_SECONDS)
        except OSError:
            raise NoStream from None
        try:
            self._rest = self._shake_hands()
        except BaseException:
            self._wire.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(OSError):  # it may be gone already
            self._wire.send(frame(CLOSE, (1000).to_bytes(2, "big")), _STEP_SECONDS)
        self._wire.close()

    def send(self, message: Mapping[str, Any]) -> None:
        """Send one message. Raises Cut."""
        try:
            self._wire.send(frame(TEXT, json.dumps(message).encode()), _STEP_SECONDS)
        except OSError:
            raise Cut(0.0) from None

    def frames(self) -> Iterator[Mapping[str, Any]]:
        """Each message of the server. Raises Cut or StreamStopped at its end."""
        chunk = self._rest
        while True:
            try:
                for opcode, payload in self._messages.feed(chunk):
                    if opcode == PING:
                        self._wire.send(frame(PONG, payload), _STEP_SECONDS)
                    elif opcode == CLOSE:
                        raise closed(*close_of(payload))
                    elif opcode == TEXT:
                        yield _json.read(payload)
                chunk = self._wire.receive(_SILENCE_SECONDS)
            except (OSError, Malformed, ValueError):
                raise Cut(1.0) from None
            if not chunk:
                raise Cut(1.0)

    def _shake_hands(self) -> bytes:
        """Ask for the socket; what came after the answer's head. Raises NoStream, NotFound."""
        handshake = Handshake(self._parts.netloc.rpartition("@")[2], self._path, self._token, _SUBPROTOCOL)
        try:
            self._wire.send(handshake.request, _STEP_SECONDS)
            while (answer := handshake.feed(self._receive())) is None:
                continue
        except (OSError, Malformed):
            raise NoStream from None
        status, rest = answer
        if status == 101:
            return rest
        if status == 404 and b'"not_found"' in rest:
            raise refused(404, {"code": "not_found", "error": "Not found, or the token does not fit"})
        raise NoStream

    def _receive(self) -> bytes:
        chunk = self._wire.receive(_STEP_SECONDS)
        if not chunk:
            raise OSError
        return chunk
