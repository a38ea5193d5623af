"""The socket that flask-sock is given in place of the real one.

simple-websocket 1.1.0 calls `send` once and ignores a short write, answers pings from its reader while another
greenlet writes, buffers unread input without bound, and closes the socket under whoever still writes to it (its
#34, #45; 1.8 and 1.10 of our measurements). It takes the socket from the WSGI environment, so all of that is
closed here:

- Every write is whole, under one lock, and nothing follows a close frame.
- A frame is begun only while at most 64 KiB wait in the kernel, so it practically always fits at once: even a peer
  that stops reading for good has received whole frames and, last, the close frame. No progress for 20 s is `Stuck`.
- Nothing is read while 16 messages are unread: the peer's own sends stall (back-pressure).
- A frame past the client's budget is never passed on; the reader then only throws away what comes, until the peer
  has seen the close frame (a socket closed over unread input resets the connection and loses it).
- The end of reading wakes the writer; the socket is closed by its owner, the server.
"""

import fcntl
import socket
import ssl
import termios
from collections.abc import Callable

import gevent
from gevent.event import Event
from gevent.lock import Semaphore
from gevent.socket import wait_write

from app.clock import monotonic
from app.web.frames import Closing, FrameMeter, close_frame, holds_close

MOST_QUEUED = 64 * 1024
"""Bytes that may wait in the kernel before another frame is begun."""
MOST_UNREAD = 16
PATIENCE_SECONDS = 20.0
_KERNEL_BUFFER = 128 * 1024
_SHORTEST_NAP, _LONGEST_NAP = 0.005, 0.1
_SCRAPS = 65536

TOO_SLOW = Closing(4103, "no progress for 20 s")


class Stuck(ConnectionError):
    """The peer takes nothing, or the socket is being given up."""


def queued_bytes(raw: socket.socket) -> int:
    """Bytes that the peer has not acknowledged, where the system tells (Linux); else 0."""
    try:
        return int.from_bytes(fcntl.ioctl(raw.fileno(), termios.TIOCOUTQ, b"\0\0\0\0"), "little")
    except (OSError, ValueError):
        return 0


class GuardedSocket:
    """Whole frames out under one lock, metered bytes in. `raw` is a gevent socket."""

    def __init__(self, raw: socket.socket, *, patience_seconds: float = PATIENCE_SECONDS) -> None:
        self._raw = raw
        self._patience = patience_seconds
        self._meter = FrameMeter(monotonic())
        self._lock = Semaphore(1)
        self._taken = 0
        self._room: Event | None = None
        self._written = 0
        self._acknowledged = 0
        self._progress_at = monotonic()
        self._passed_at = monotonic()
        self._is_closing = False
        self._is_torn = False
        self._is_abandoned = False
        self._is_at_end = False
        self.wake: Callable[[], None] | None = None
        """Called when reading ends and when the peer broke a limit; must not block."""
        self.verdict: Closing | None = None
        """Why the socket must be closed, once the peer or the kernel gave a reason."""
        self.is_reader_done = False
        self.last_byte_at = monotonic()
        raw.settimeout(None)  # the server's own deadlines for heads and answers are over
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _KERNEL_BUFFER)
        if raw.family in (socket.AF_INET, socket.AF_INET6):
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    # ------------------------------------------------------------------ what simple-websocket calls

    def recv(self, size: int) -> bytes:
        """Up to `size` bytes that the client may send; b"" at the end."""
        while self._unread() >= MOST_UNREAD and not self._is_closing:
            self._room = self._room or Event()
            self._room.clear()
            self._room.wait()
        if self._is_closing or self.verdict is not None:
            return self._throw_away()
        self._meter.forgive(monotonic() - self._passed_at)
        chunk = self._receive(size)
        now = monotonic()
        if chunk:
            self.last_byte_at = now
        passed = self._meter.feed(chunk, now)
        self._passed_at = now
        if self._meter.verdict is not None:
            self._end(self._meter.verdict)
            if not passed:
                return self._throw_away()
        return chunk[:passed]

    def send(self, frames: bytes) -> int:
        """Write what the library made (the handshake, pongs, the answer to a close), whole and under the lock."""
        with self._lock:
            if not self._is_closing:
                self._write(frames)
                self._is_closing = not frames.startswith(b"HTTP/") and holds_close(frames)
        return len(frames)

    def close(self) -> None:
        """Called by the library when its reader ends. The server closes the real socket."""
        self.is_reader_done = True
        self._wake()

    def fileno(self) -> int:
        """The descriptor."""
        return self._raw.fileno()

    # ------------------------------------------------------------------------ what the conversation calls

    def write(self, frames: bytes) -> None:
        """Write whole frames. Raises ConnectionError when the peer is gone, closing or stuck (then `verdict` says)."""
        with self._lock:
            if self._is_closing:
                raise ConnectionResetError("closing")
            self._write(frames)

    def took(self, messages: int) -> None:
        """Say that so many unread messages were taken, so that reading goes on."""
        self._taken += messages
        if self._room is not None and self._unread() < MOST_UNREAD:
            self.last_byte_at = monotonic()  # the silence was ours
            self._room.set()

    def must_be_watched(self) -> bool:
        """Whether something still waits in the kernel. If it has for the length of our patience: `verdict`."""
        queued = queued_bytes(self._raw)
        if not queued or self.is_reader_done or self._is_closing:
            return False
        if self._seconds_without_progress(queued) < self._patience:
            return True
        self._end(TOO_SLOW)
        return False

    def abandon(self) -> None:
        """Let nobody wait for the peer any more: the server stops."""
        self._is_abandoned = True

    def say_goodbye(self, closing: Closing) -> None:
        """Send the close frame if it can be sent at once; whatever comes from now on is thrown away."""
        self._is_abandoned = True
        with self._lock:
            must_say = not self._is_closing and not self._is_torn
            self._is_closing = True
            if must_say:
                self._send_if_there(close_frame(closing))
        if self._room is not None:
            self._room.set()

    def settle(self, seconds: float) -> None:
        """Give the peer so long to take what was sent and hang up; then the socket may be closed."""
        if self._is_at_end or not self._half_close():
            return
        gevent.with_timeout(seconds, self._await_end, timeout_value=None)

    def _await_end(self) -> None:
        while not self.is_reader_done:
            gevent.sleep(0.02)
        if not self._is_at_end:
            self._throw_away()

    # ------------------------------------------------------------------------------------------ inside

    def _unread(self) -> int:
        return self._meter.messages - self._taken

    def _wake(self) -> None:
        if self.wake is not None:
            self.wake()

    def _end(self, verdict: Closing) -> None:
        self.verdict = self.verdict or verdict
        self._wake()

    def _throw_away(self) -> bytes:
        while self._receive(_SCRAPS):
            pass
        return b""

    def _receive(self, size: int) -> bytes:
        try:
            chunk = self._raw.recv(size)
        except OSError:
            chunk = b""
        self._is_at_end = not chunk
        return chunk

    def _write(self, frames: bytes) -> None:
        if self._is_torn:
            raise Stuck("a frame was cut")
        self._await_room(len(frames))
        sent = self._send_now(frames)
        while sent < len(frames):
            self._is_torn = True
            self._await_writable()
            sent += self._send_now(frames[sent:])
        self._is_torn = False

    def _send_now(self, frames: bytes) -> int:
        try:
            sent = int(self._raw.send(frames, 0, 0.0))  # type: ignore[call-arg]
        except (BlockingIOError, ssl.SSLWantWriteError):
            return 0
        self._written += sent
        return sent

    def _send_if_there(self, frames: bytes) -> None:
        try:
            self._send_now(frames)
        except OSError:
            self._is_at_end = True

    def _await_room(self, length: int) -> None:
        nap = _SHORTEST_NAP
        queued = queued_bytes(self._raw)
        if not queued:
            self._progress_at = monotonic()
        while queued and queued + length > MOST_QUEUED and not self._is_abandoned:
            self._check_progress(queued)
            gevent.sleep(nap)
            nap = min(2 * nap, _LONGEST_NAP)
            queued = queued_bytes(self._raw)

    def _await_writable(self) -> None:
        self._check_progress(queued_bytes(self._raw))
        if self._is_abandoned:
            raise Stuck("given up")
        try:
            wait_write(self._raw.fileno(), timeout=0.25)
        except TimeoutError:
            return

    def _check_progress(self, queued: int) -> None:
        if self.is_reader_done:
            raise ConnectionResetError("the peer hung up")
        if self._seconds_without_progress(queued) >= self._patience:
            self._end(TOO_SLOW)
            raise Stuck("no progress")

    def _seconds_without_progress(self, queued: int) -> float:
        acknowledged = self._written - queued
        now = monotonic()
        if not queued or acknowledged > self._acknowledged:
            self._acknowledged = acknowledged
            self._progress_at = now
        return now - self._progress_at

    def _half_close(self) -> bool:
        try:
            self._raw.shutdown(socket.SHUT_WR)
        except OSError:
            return False
        return True
