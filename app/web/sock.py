"""flask-sock, with our own socket and our own guard put before it.

flask-sock makes the 101 before the handler runs and takes the connection's socket from the WSGI environment. So it
is given a stand-in for a blueprint, which wraps its view: the guard runs first, then the environment is replaced by
one that names the guarded socket and holds only the headers of the handshake (no compression offer, no token, no
label but ours, nothing that its parser could stumble over).
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

import gevent
from flask import Blueprint, Response, request
from flask_sock import Sock

from app.web.socket import PATIENCE_SECONDS, GuardedSocket

SUBPROTOCOL = "fencepost.v1"
_SOCKET_NAMES = ("werkzeug.socket", "gunicorn.socket")

View = Callable[..., Response]
Guard = Callable[[View, dict[str, Any]], Response]


class Bell(Protocol):
    """An event: what wakes the one writer of a socket."""

    def set(self) -> None: ...

    def clear(self) -> object: ...

    def wait(self, timeout: float | None = None) -> bool: ...


class Library(Protocol):
    """What we use of simple-websocket's server side."""

    sock: GuardedSocket
    event: Bell
    input_buffer: list[str | bytes]
    connected: bool
    environ: dict[str, Any]


class ReaderGreenlet:
    """The library's reader as a plain greenlet; however it ends, the writer is woken and told."""

    def __init__(self, target: Callable[[], None]) -> None:
        self.name = "websocket reader"
        self._target = target

    def start(self) -> None:
        """Read from the next turn of the loop on."""
        gevent.spawn(self._run)

    def _run(self) -> None:
        library: Library = self._target.__self__  # type: ignore[attr-defined]  # a method of the library's object
        try:
            self._target()
        finally:
            library.connected = False
            library.sock.close()


OPTIONS = {
    "subprotocols": [SUBPROTOCOL],
    "receive_bytes": 4096,
    "thread_class": ReaderGreenlet,
    "event_class": gevent.event.Event,
}
"""For flask-sock's SOCK_SERVER_OPTIONS. Sizes, pings and time-outs are ours, not the library's."""


class GuardedRoutes:
    """Stands where flask-sock expects a blueprint."""

    def __init__(self, blueprint: Blueprint, guard: Guard) -> None:
        self._blueprint = blueprint
        self._guard = guard

    def route(self, path: str, **options: Any) -> Callable[[View], View]:
        """Register the view behind the guard, which calls it or answers itself."""

        def register(view: View) -> View:
            def guarded(**arguments: Any) -> Response:
                return self._guard(view, arguments)

            endpoint = path.strip("/").replace("/", "_").replace("<", "").replace(">", "")
            self._blueprint.add_url_rule(path, endpoint, guarded, **options)
            return guarded

        return register


def add_socket(blueprint: Blueprint, path: str, guard: Guard, converse: Callable[..., None]) -> None:
    """Serve a WebSocket at `path`: `guard(view, arguments)` first, `converse(library, **arguments)` after the 101."""
    Sock().route(path, bp=GuardedRoutes(blueprint, guard))(converse)


@contextmanager
def handshake_environment(patience_seconds: float = PATIENCE_SECONDS) -> Iterator[None]:
    """Within it, the current request shows flask-sock the guarded socket and a minimal handshake."""
    real = request.environ
    request.environ = slim_environment(real, patience_seconds)
    try:
        yield
    finally:
        request.environ = real


def slim_environment(environ: dict[str, Any], patience_seconds: float) -> dict[str, Any]:
    """A copy with the guarded socket and only the headers that the handshake needs."""
    slim = {name: value for name, value in environ.items() if not name.startswith("HTTP_")}
    slim["HTTP_HOST"] = "localhost"
    slim["HTTP_UPGRADE"] = "websocket"
    slim["HTTP_CONNECTION"] = "Upgrade"
    slim["HTTP_SEC_WEBSOCKET_VERSION"] = "13"
    slim["HTTP_SEC_WEBSOCKET_KEY"] = environ["HTTP_SEC_WEBSOCKET_KEY"].strip()
    if SUBPROTOCOL in offered_labels(environ):
        slim["HTTP_SEC_WEBSOCKET_PROTOCOL"] = SUBPROTOCOL
    for name in _SOCKET_NAMES:
        if name in environ:
            slim[name] = GuardedSocket(environ[name], patience_seconds=patience_seconds)
    return slim


def offered_labels(environ: Mapping[str, Any]) -> list[str]:
    """The subprotocol labels of the request."""
    return [label.strip() for label in environ.get("HTTP_SEC_WEBSOCKET_PROTOCOL", "").split(",")]
