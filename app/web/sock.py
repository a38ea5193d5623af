"""flask-sock, with our own socket and our own guard put before it.

flask-sock makes the 101 before the handler runs and takes the connection's socket from the WSGI environment. So it
is given a stand-in for a blueprint, which wraps its view: the guard runs first, then the environment is replaced by
one that names the guarded socket and holds only the headers of the handshake (no compression offer, no token, no
label but ours, nothing that its parser could stumble over).
"""

import logging
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import gevent
from flask import Blueprint, Response, g, request
from flask_sock import Sock

from app.web.socket import PATIENCE_SECONDS, GuardedSocket

_log = logging.getLogger("fencepost.web")

SUBPROTOCOL = "fencepost.v1"
_SOCKET_NAMES = ("werkzeug.socket", "gunicorn.socket")

View = Callable[..., Response]
Guard = Callable[[View, dict[str, Any]], Response]


class Bell(Protocol):
    """An event: what wakes the one writer of a socket."""

    def set(self) -> None: ...

    def clear(self) -> object: ...

    def wait(self, timeout: float | None = None) -> bool: ...


class Handshake(Protocol):
    """The part of the protocol engine that is over with the 101."""

    def events(self) -> tuple[object, ...]: ...


class Engine(Protocol):
    """wsproto's connection."""

    handshake: Handshake


class Library(Protocol):
    """What we use of simple-websocket's server side."""

    ws: Engine

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
        """Read from the next turn of the loop on. A raw greenlet: it lives as long as the socket and must be small."""
        gevent.spawn_raw(self._run)

    def _run(self) -> None:
        library: Library = self._target.__self__  # type: ignore[attr-defined]  # a method of the library's object
        try:
            self._target()
        except Exception:  # noqa: BLE001 - nobody awaits a raw greenlet, so it tells the log itself
            _log.exception("reading a stream failed")
        finally:
            library.connected = False
            library.sock.close()
            del self._target


class HandshakeOver:
    """In place of the HTTP parser, which weighs more than the rest of an open connection's protocol state."""

    def events(self) -> tuple[object, ...]:
        """None ever."""
        return ()


_OVER = HandshakeOver()


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

    def hold(library: Library, **arguments: Any) -> None:
        request.environ = g.pop("environ")
        library.environ = {}
        library.ws.handshake = _OVER
        converse(library, **arguments)

    Sock().route(path, bp=GuardedRoutes(blueprint, guard))(hold)


def show_guarded_socket(patience_seconds: float = PATIENCE_SECONDS) -> None:
    """Until the 101, let flask-sock see the guarded socket and a minimal handshake as the request's environment."""
    g.environ = request.environ
    request.environ = slim_environment(request.environ, patience_seconds)


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
