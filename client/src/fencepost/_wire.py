"""One TCP connection, with TLS where the address asks for it: the same in both worlds, each step with a time limit.

All that goes wrong is an OSError (TimeoutError and TLS errors are); an empty chunk is the peer's end.
"""

import asyncio
import socket
import ssl
from collections.abc import Coroutine
from typing import Any, TypeVar
from urllib.parse import SplitResult, urlsplit

_T = TypeVar("_T")
_CHUNK = 64 * 1024


def server_url(text: str) -> str:
    """The address of a server as it is used: http or https, a host, perhaps a port and a path.

    Raises ValueError, which never shows the address: a password may stand in it, which is why none may.
    """
    url = text.strip().rstrip("/")
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").encode("idna"), parts.port
    except ValueError:
        raise ValueError("the server's URL cannot be read") from None
    if parts.scheme not in {"http", "https"}:
        raise ValueError("the server's URL must begin with http:// or https://")
    if not host or port == 0 or not url.isprintable() or " " in url:
        raise ValueError("the server's URL needs a host, and a port from 1 to 65535 if any")
    if "@" in parts.netloc or "?" in url or "#" in url:
        raise ValueError("the server's URL must have no user, password, query or fragment")
    return url


def address_of(parts: SplitResult) -> tuple[str, int]:
    """Host and port of a server's URL."""
    return parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)


def _context_of(parts: SplitResult, context: ssl.SSLContext | None) -> ssl.SSLContext | None:
    return (context or ssl.create_default_context()) if parts.scheme == "https" else None


class Wire:
    """The blocking kind."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection

    @classmethod
    def connect(cls, parts: SplitResult, context: ssl.SSLContext | None, limit_seconds: float) -> "Wire":
        """Connect. Raises OSError."""
        connection = socket.create_connection(address_of(parts), limit_seconds)
        tls = _context_of(parts, context)
        try:
            if tls is not None:
                connection = tls.wrap_socket(connection, server_hostname=parts.hostname)
        except BaseException:
            connection.close()
            raise
        return cls(connection)

    def send(self, content: bytes, limit_seconds: float) -> None:
        """Send all of it. Raises OSError."""
        self._socket.settimeout(limit_seconds)
        self._socket.sendall(content)

    def receive(self, limit_seconds: float) -> bytes:
        """What arrives next. Raises OSError."""
        self._socket.settimeout(limit_seconds)
        return self._socket.recv(_CHUNK)

    def close(self) -> None:
        """Close it."""
        self._socket.close()


class AsyncWire:
    """The kind of asyncio."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def connect(cls, parts: SplitResult, context: ssl.SSLContext | None, limit_seconds: float) -> "AsyncWire":
        """Connect. Raises OSError."""
        host, port = address_of(parts)
        opening = asyncio.open_connection(host, port, ssl=_context_of(parts, context))
        return cls(*await _within(opening, limit_seconds))

    async def send(self, content: bytes, limit_seconds: float) -> None:
        """Send all of it. Raises OSError."""
        self._writer.write(content)
        await _within(self._writer.drain(), limit_seconds)

    async def receive(self, limit_seconds: float) -> bytes:
        """What arrives next. Raises OSError."""
        return await _within(self._reader.read(_CHUNK), limit_seconds)

    async def close(self) -> None:
        """Close it."""
        self._writer.close()


async def _within(step: Coroutine[Any, Any, _T], limit_seconds: float) -> _T:
    try:
        return await asyncio.wait_for(step, limit_seconds)
    except asyncio.TimeoutError:  # a class of its own in Python 3.10
        raise TimeoutError from None
