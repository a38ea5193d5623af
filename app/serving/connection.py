"""One connection: read a request, let the app answer, give the others a turn, and again.

Three hard corners. A connection whose next request is always there never blocks in `recv`, so it would keep the
loop for itself: then it has to yield. A body that the app did not read would be taken for the next request, so
the connection ends, lingering, because closing on unread bytes resets it and takes the answer away from the client.
And a client that hangs up is no fault of anybody: nothing is logged.
"""

from collections.abc import Iterable
from typing import Any, Protocol

import gevent
from gevent import socket
from gunicorn.http import RequestParser, errors, wsgi  # type: ignore[import-untyped]
from gunicorn.http.body import ChunkedReader  # type: ignore[import-untyped]
from gunicorn.http.message import Request  # type: ignore[import-untyped]

from app.serving import head
from app.serving.body import Body
from app.serving.refusal import to_broken, to_failed
from app.serving.source import Source
from app.testmode import Dropped

_LINGER_BYTES = 256 * 1024
_LINGER_SECONDS = 1.0
FIRST_REQUEST_SECONDS = 0.3  # a client that has just connected is about to ask: while leaving, it is still heard


class Host(Protocol):
    """What a connection needs of the worker it belongs to."""

    cfg: Any
    log: Any
    alive: bool
    wsgi: Any
    idle: "dict[Connection, None]"
    header_deadline_seconds: float
    answer_deadline_seconds: float
    keepalive_seconds: float


class Answer(wsgi.Response):  # type: ignore[misc]
    """gunicorn's response, with head and body in one packet where the body is one piece."""

    def __init__(self, request: Request, client: socket.socket, cfg: Any) -> None:
        super().__init__(request, client, cfg)
        self.version = "fencepost"
        self.headers_sent = False
        self._head = b""

    def process_headers(self, headers: Iterable[tuple[str, str]]) -> None:
        """As gunicorn does, but the app may ask for the connection to end."""
        fields = list(headers)
        super().process_headers(fields)
        if any(name.lower() == "connection" and value.lower() == "close" for name, value in fields):
            self.force_close()

    def send_headers(self) -> None:
        """Make the head ready; it leaves with the first bytes of the body."""
        if not self.headers_sent:
            lines = [*self.default_headers(), *(f"{name}: {value}\r\n" for name, value in self.headers), "\r\n"]
            self._head = "".join(lines).encode("latin-1")
            self.headers_sent = True

    def _emit_body(self, piece: bytes) -> None:
        head, self._head = self._head, b""
        if self.chunked:
            piece = b"%X\r\n%b\r\n" % (len(piece), piece)
        self.sock.sendall(head + piece)

    def close(self) -> None:
        """Send what is left: the head alone, or the end of the chunks."""
        self.send_headers()
        end = b"0\r\n\r\n" if self.chunked else b""
        head, self._head = self._head, b""
        if head or end:
            self.sock.sendall(head + end)


class Connection:
    """A client that has connected; `serve` returns when it is gone."""

    def __init__(self, host: Host, client: socket.socket, address: Any, server_name: Any) -> None:
        self._host = host
        self._client = client
        self._address = address
        self._server_name = server_name
        self.has_served = False
        self._source = Source(client, self._set_idle, host.header_deadline_seconds)
        self._parser = RequestParser(host.cfg, client, address or ("", 0))
        self._parser.unreader = self._source

    def serve(self) -> None:
        """Answer requests until one side ends it."""
        loop = gevent.get_hub().loop
        try:
            self._source.await_request(self._host.header_deadline_seconds)
            turn = loop.now()
            while (request := self._next_request()) is not None:
                if loop.now() == turn:  # the request was there already: the loop has not turned since the last one
                    gevent.sleep(0)
                if not self._answer(request):
                    break
                turn = loop.now()
                self._source.await_request(self._host.keepalive_seconds)
        except (OSError, Dropped):
            return  # hung up, or a slow reader past its deadline
        finally:
            self._client.close()

    def hurry(self) -> None:
        """End it if it is idle: bytes that have come are still served, new ones are not awaited."""
        try:
            self._client.shutdown(socket.SHUT_RD)
        except OSError:
            return  # it is gone already

    def _set_idle(self, is_idle: bool) -> None:
        if is_idle:
            self._host.idle[self] = None
        else:
            self._host.idle.pop(self, None)

    def _next_request(self) -> Request | None:
        if not self._host.alive:
            if self.has_served:
                self.hurry()
            else:
                self._source.await_request(FIRST_REQUEST_SECONDS)
        try:
            request = next(self._parser)
            head.check(request)
            return request
        except (StopIteration, errors.NoMoreData):
            return None
        except TimeoutError as fault:
            if self._source.began:
                self._refuse(to_broken(fault))
            return None
        except errors.ParseException as fault:
            self._host.log.debug("Refused what is no valid HTTP: %s", type(fault).__name__)
            self._refuse(to_broken(fault))
            return None

    def _refuse(self, answer: bytes) -> None:
        self._client.settimeout(self._host.answer_deadline_seconds)
        self._client.sendall(answer)
        self._linger()

    def _answer(self, request: Request) -> bool:
        """Whether the connection may serve another request."""
        self._source.unbound()
        answer, environ = wsgi.create(
            request, self._client, self._address or ("", 0), self._server_name, self._host.cfg, response_class=Answer
        )
        environ["wsgi.multithread"] = True
        environ["wsgi.input"] = Body(environ["wsgi.input"])
        try:
            pieces = self._host.wsgi(environ, answer.start_response)
        except StopIteration:
            return False  # the app has taken the socket over and is done with it
        except Exception:
            self._host.log.exception("The application failed outside its own error handling")
            self._refuse(to_failed())
            return False
        is_drained = self._is_drained()
        if not self._host.alive or not is_drained:
            answer.force_close()
        self._send(answer, pieces)
        self.has_served = True
        if not is_drained:
            self._linger()
        return not answer.should_close()

    def _send(self, answer: Answer, pieces: Iterable[bytes]) -> None:
        self._client.settimeout(self._host.answer_deadline_seconds)
        try:
            for piece in pieces:
                answer.write(piece)
            answer.close()
        finally:
            if close := getattr(pieces, "close", None):
                close()

    def _is_drained(self) -> bool:
        """Whether the whole body was read; what has come already is thrown away, nothing is awaited."""
        body = self._parser.mesg.body
        if body.failed:
            return False
        if isinstance(body.reader, ChunkedReader):
            return body.reader.parser is None
        return int(body.reader.length) <= self._source.buf.getbuffer().nbytes and bool(self._parser.finish_body())

    def _linger(self) -> None:
        """Say that we are done and read on for a moment, so that the client can read the answer."""
        self._client.shutdown(socket.SHUT_WR)
        self._source.bound(_LINGER_SECONDS)
        left = _LINGER_BYTES
        while left > 0 and (piece := self._source.chunk()):
            left -= len(piece)
