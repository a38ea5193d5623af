"""The process that serves.

The stock gevent worker looks once a second whether it should stop and then sleeps in seconds beside its parked
calls until the grace is over (measured: 10 s of 10 with one waiting call). Here SIGTERM is an event of the loop:
stop accepting, let the app answer all waits, end idle connections, wait for the rest on the monotonic clock, and go.

A worker that cannot come up says so by its exit code: REFUSED when starting again will not help, FAILED when it may.
"""

import atexit
import gc
import mmap
import os
import signal
import sys
import time
from typing import Any

import gevent
from gevent import socket
from gevent.event import Event
from gevent.pool import Pool
from gevent.server import StreamServer
from gunicorn.workers.ggevent import GeventWorker  # type: ignore[import-untyped]

from app.serving.connection import FIRST_REQUEST_SECONDS, Connection
from app.settings import StartRefused

REFUSED = 78
FAILED = 70
_HEARTBEAT_SECONDS = 1.0
_DRAIN_SECONDS = 1.5
_PAUSE_AFTER_FAILURE_SECONDS = 1.0


class Worker(GeventWorker):  # type: ignore[misc]
    """One serving process. The app it serves has `stop()`, `close()` and `fatal_reason()` beside being WSGI."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._served = mmap.mmap(-1, 1)  # shared with the arbiter, which cannot see attributes set after the fork
        self.lifeline: int | None = None
        self.idle: dict[Connection, None] = {}
        settings = self.app.settings
        self.header_deadline_seconds: float = settings.header_deadline_seconds
        self.answer_deadline_seconds: float = settings.answer_deadline_seconds
        self.keepalive_seconds: float = settings.keepalive_seconds

    @property
    def has_served(self) -> bool:
        """Whether it came as far as accepting connections. Read by the arbiter."""
        return self._served[0] == 1

    def init_signals(self) -> None:
        """TERM, INT and QUIT all end gracefully: Ctrl-C reaches the worker as well as the arbiter."""
        super().init_signals()
        self._leaving = Event()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT):
            gevent.signal_handler(number, self._leaving.set)

    def load_wsgi(self) -> None:
        """Make the app, or say why not by the exit code."""
        gc.disable()  # all that is imported stays: looking through it again and again is a sixth of the start
        try:
            super().load_wsgi()
            _calm_collector()
        except StartRefused as refused:
            for sentence in refused.sentences:
                self.log.error("%s", sentence)
            sys.exit(REFUSED)
        except Exception:
            self.log.exception("The worker cannot start")
            time.sleep(_PAUSE_AFTER_FAILURE_SECONDS)
            sys.exit(FAILED)

    def run(self) -> None:
        """Serve until told to leave, orphaned, or the database is beyond help."""
        self._pool = Pool(self.worker_connections)
        servers = [self._listen(listener) for listener in self.sockets]
        if self.lifeline is not None:
            gevent.spawn(self._leave_with_the_arbiter, self.lifeline)
        self._served[0] = 1
        fatal = None
        while fatal is None and not self._leaving.wait(_HEARTBEAT_SECONDS):
            self.notify()
            fatal = self.wsgi.fatal_reason()
        if fatal is not None:
            self.log.critical("The database failed beyond help, a new process takes over: %s", fatal)
        self._leave(servers)
        self._end(0 if fatal is None else FAILED)

    def _listen(self, listener: Any) -> StreamServer:
        listener.setblocking(1)
        name = listener.getsockname()  # asked now: a client accepted last of all is served after the listener closed

        def serve(client: socket.socket, address: Any) -> None:
            if self._pool.free_count() == 0 and self.idle:
                next(iter(self.idle)).hurry()  # at the limit the longest idle connection makes room
            Connection(self, client, address, name).serve()

        server = StreamServer(listener, handle=serve, spawn=self._pool)
        if self.cfg.workers > 1:
            server.max_accept = 1
        server.start()
        return server

    def _leave_with_the_arbiter(self, lifeline: int) -> None:
        """The arbiter holds the other end: when it dies, however it dies, this becomes readable."""
        socket.wait_read(lifeline)
        self.log.warning("The arbiter is gone, leaving")
        self._leaving.set()

    def _leave(self, servers: list[StreamServer]) -> None:
        self.alive = False
        for server in servers:
            server.close()
        self.wsgi.stop()
        for connection in tuple(self.idle):
            if connection.has_served:
                connection.hurry()
        self._pool.join(FIRST_REQUEST_SECONDS)
        for connection in tuple(self.idle):
            connection.hurry()
        if not self._pool.join(_DRAIN_SECONDS - FIRST_REQUEST_SECONDS):
            self.log.warning("Cut off %d connections that did not end in time", len(self._pool))
            self._pool.kill(block=False)
        self.wsgi.close()

    def _end(self, code: int) -> None:
        """Be gone. Taking the interpreter apart piece by piece would be most of the time that a stop takes."""
        self.log.info("Worker %s leaves", self.pid)
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(code)


def _calm_collector() -> None:
    """Let full collections of garbage be rare and short, for they stop the loop.

    What the start made stays for good and need not be walked (70 ms), with the little of it that is garbage. Each
    thousand open sockets are another 0.1 s; so a full walk is tried a tenth as often. Garbage of requests is young and
    goes as quickly as ever.
    """
    gc.freeze()
    gc.enable()
    youngest, middle, _ = gc.get_threshold()
    gc.set_threshold(youngest, middle, 100)
