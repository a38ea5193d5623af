"""Bytes of one connection, with deadlines.

gunicorn cuts slow heads by one timer round the whole read, the same as for idle connections. Here the two differ:
an idle connection may stay for long, a head that has begun must come soon. The deadline is set on the socket at
each read, which costs nothing when the bytes are already there.
"""

from collections.abc import Callable

from gevent import socket
from gunicorn.http.unreader import SocketUnreader  # type: ignore[import-untyped]

from app.clock import monotonic

_LEAST_SECONDS = 0.001


class Source(SocketUnreader):  # type: ignore[misc]
    """Where the parser reads from. `began` is whether a byte of the awaited request has come."""

    def __init__(self, client: socket.socket, idle: Callable[[bool], None], head_seconds: float) -> None:
        super().__init__(client)
        self._idle = idle
        self._head_seconds = head_seconds
        self._deadline: float | None = None
        self.began = False

    def await_request(self, idle_seconds: float) -> None:
        """The next byte may take `idle_seconds`; from then on the head has its own deadline."""
        self.began = False
        self._deadline = monotonic() + idle_seconds

    def bound(self, seconds: float) -> None:
        """Everything that is read from now on must come within this time."""
        self.began = True
        self._deadline = monotonic() + seconds

    def unbound(self) -> None:
        """No deadline: whoever reads now, such as the reader of the body, has its own."""
        self.began = True
        self._deadline = None

    def chunk(self, size_hint: int | None = None) -> bytes:
        """The next bytes. Raises TimeoutError past the deadline."""
        size = min(max(size_hint or 0, self.mxchunk), self.max_body_chunk)
        if self._deadline is None:
            self.sock.settimeout(None)
            return bytes(self.sock.recv(size))
        self.sock.settimeout(max(_LEAST_SECONDS, self._deadline - monotonic()))
        if self.began:
            return bytes(self.sock.recv(size))
        self._idle(True)
        try:
            piece = bytes(self.sock.recv(size))
        finally:
            self._idle(False)
        if piece:
            self.bound(self._head_seconds)
        return piece
