"""Finds the peers that stopped reading, without a timer for each socket.

A socket that was written to is visited every two seconds until nothing waits in the kernel any more. One visit costs
about a microsecond, so a move that reaches thousands of followers does not wake them all a second time.
"""

import gevent

from app.web.socket import GuardedSocket

_ROUND_SECONDS = 2.0


class Patrol:
    """One greenlet for all sockets of the process; it lives while there is somebody to visit."""

    def __init__(self) -> None:
        self._to_visit: dict[GuardedSocket, None] = {}
        self._is_walking = False

    def visit(self, socket: GuardedSocket) -> None:
        """It was written to: see that it drains."""
        self._to_visit[socket] = None
        if not self._is_walking:
            self._is_walking = True
            gevent.spawn(self._walk)

    def _walk(self) -> None:
        try:
            while self._to_visit:
                gevent.sleep(_ROUND_SECONDS)
                for socket in tuple(self._to_visit):
                    if not socket.must_be_watched():
                        del self._to_visit[socket]
        finally:
            self._is_walking = False
