"""Flask without what no route here uses, for it is paid for by every request.

No session (people's sessions are ours, kept on the server), no coroutine views to look for, and routes that do not
depend on the Host header, which is the caller's to invent.
"""

from collections.abc import Callable, Mapping
from typing import Any, cast

from flask import Flask, Request, Response, request
from flask.sessions import NullSession, SessionInterface
from werkzeug.routing import MapAdapter

from app.web.edge import respond
from app.wire import errors

_NO_SESSION = NullSession()
_NOWHERE = "/\0"
"""A path that no route has."""


class _NoSessions(SessionInterface):
    def open_session(self, app: Flask, request: Request) -> NullSession:
        """One that can hold nothing, for everybody."""
        return _NO_SESSION


class LeanFlask(Flask):
    """A Flask application that serves the same routes under every name."""

    session_interface = _NoSessions()

    def ensure_sync(self, func: Callable[..., Any]) -> Callable[..., Any]:
        """Views are plain functions: gevent makes them concurrent."""
        return func

    def create_url_adapter(self, request: Request | None) -> MapAdapter | None:
        """Match by path and method, and by whether it asks to become a WebSocket.

        `//x` is not `/x`, though Werkzeug drops what is too much at the front.
        """
        if request is None:
            return super().create_url_adapter(request)
        path = _NOWHERE if request.environ["PATH_INFO"].startswith("//") else request.path
        scheme = "ws" if _asks_for_websocket(request.environ) else request.scheme
        return MapAdapter(self.url_map, "localhost", "/", "", scheme, path, request.method)

    def make_default_options_response(self) -> Response:
        """What a path takes, with the headers of every answer."""
        adapter = self.create_url_adapter(cast(Any, request)._get_current_object())
        return respond(errors.options(() if adapter is None else adapter.allowed_methods()))


def _asks_for_websocket(environ: Mapping[str, Any]) -> bool:
    if environ.get("HTTP_UPGRADE", "").lower() != "websocket":
        return False
    return any(word.strip() == "upgrade" for word in environ.get("HTTP_CONNECTION", "").lower().split(","))
