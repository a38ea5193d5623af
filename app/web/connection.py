"""The caller's connection while its request is being answered.

A parked caller that hangs up must not be granted anything and must give its place back. The kernel knows: the
socket reports a hang-up without being read. The event loop tells at once when the peer closes; a peer that has
already sent its next request hides that, so then a slow timer looks.
"""

import select
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import gevent
from gevent import monkey

_poll = monkey.get_original("select", "poll")
_GONE = getattr(select, "POLLRDHUP", 0) | select.POLLHUP | select.POLLERR | select.POLLNVAL
_READABLE = 1
_LOOK_AGAIN_SECONDS = 1.0


class Connection:
    """Made from a request's WSGI environment; without a socket (a test client) it counts as open."""

    def __init__(self, environ: Mapping[str, Any]) -> None:
        self._socket = environ.get("gunicorn.socket")

    def is_open(self) -> bool:
        """Whether the peer has neither closed nor half-closed the connection, as far as the kernel knows."""
        if self._socket is None:
            return True
        descriptor = self._socket.fileno()
        if descriptor < 0:
            return False
        poll = _poll()
        poll.register(descriptor, _GONE)
        return not poll.poll(0)

    @contextmanager
    def on_hang_up(self, wake: Callable[[], None]) -> Iterator[None]:
        """Call `wake` when the peer closes while the block runs."""
        if self._socket is None or self._socket.fileno() < 0:
            yield
            return
        loop = gevent.get_hub().loop
        arrival = loop.io(self._socket.fileno(), _READABLE)
        timer = loop.timer(_LOOK_AGAIN_SECONDS, repeat=_LOOK_AGAIN_SECONDS)

        def look() -> None:
            if not self.is_open():
                arrival.stop()
                timer.stop()
                wake()

        def something_came() -> None:
            arrival.stop()
            look()
            timer.start(look)

        arrival.start(something_came)
        try:
            yield
        finally:
            arrival.stop()
            timer.stop()
            arrival.close()
            timer.close()
