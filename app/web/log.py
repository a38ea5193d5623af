"""One line per event, key=value or JSON.

Lines hold codes, route templates and figures: never a path, a query, a header, a body. What comes from outside is
escaped, so that nobody forges a line or steers a terminal (CR, LF, ESC).

Writing must not cost the loop anything: lines are gathered for some milliseconds and written by a native thread, so
that a full pipe or a slow terminal stops neither health nor waits. If nobody reads, lines are dropped and counted.
"""

import atexit
import json
import logging
import os
import sys
import time
from _queue import SimpleQueue  # gevent replaces queue.SimpleQueue by one that wakes greenlets
from collections.abc import Callable, Mapping
from functools import lru_cache

import gevent
from gevent import monkey

from app import clock

_GATHER_SECONDS = 0.05
_MOST_PENDING = 4 * 1024 * 1024
_BARE_KEYS = ("at", "level", "event")
_encode = json.JSONEncoder(separators=(",", ":"), default=str).encode
_BARE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/:<>+%@,")


def as_text(fields: Mapping[str, object]) -> str:
    """`at`, `level` and `event` bare; the rest as key=value, quoted where needed."""
    return " ".join(
        str(value) if key in _BARE_KEYS else f"{key}={_quoted(str(value))}" for key, value in fields.items()
    )


def as_json(fields: Mapping[str, object]) -> str:
    """One JSON object; control characters and everything beyond ASCII escaped."""
    return _encode(fields)


def _quoted(value: str) -> str:
    return value if value and _BARE.issuperset(value) else json.dumps(value)


def stamp(instant: float) -> str:
    """Seconds since the epoch as UTC with milliseconds."""
    whole = int(instant)
    return f"{_second(whole)}.{int((instant - whole) * 1000):03d}Z"


@lru_cache(maxsize=4)
def _second(whole: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(whole))


def layout(log_format: str) -> Callable[[Mapping[str, object]], str]:
    """The writer of fields for FENCEPOST_LOG_FORMAT; `auto` is text on a terminal."""
    if log_format == "auto":
        log_format = "text" if sys.stdout.isatty() else "json"
    return as_text if log_format == "text" else as_json


class Events(logging.Formatter):
    """The standard library's log records in the same form as request lines."""

    def __init__(self, log_format: str) -> None:
        super().__init__()
        self._layout = layout(log_format)

    def format(self, record: logging.LogRecord) -> str:
        """One line; a traceback is one escaped field."""
        fields: dict[str, object] = {
            "at": stamp(record.created),
            "level": record.levelname.lower(),
            "event": "server" if record.name == "gunicorn.error" else record.name.removeprefix("fencepost."),
            "text": record.getMessage(),
        }
        if record.exc_info:
            fields["trace"] = self.formatException(record.exc_info)
        return self._layout(fields)


class Pen:
    """Writes bytes to a descriptor from a native thread of its own."""

    def __init__(self, descriptor: int = 1) -> None:
        self._descriptor = descriptor
        self._lines: list[str] = []
        self._queue: SimpleQueue[bytes | None] = SimpleQueue()
        self._handed = 0  # bytes given to the thread: written here only
        self._written = 0  # bytes it is done with: written there only
        self._is_timed = False
        self.dropped = 0
        self._is_running = True
        self._done = monkey.get_original("_thread", "allocate_lock")()
        self._done.acquire()
        monkey.get_original("_thread", "start_new_thread")(self._write_all, ())
        atexit.register(self.close)

    def write(self, line: str) -> None:
        """Take one line, without its end. Called on the loop."""
        self._lines.append(line)
        if not self._is_timed:
            self._is_timed = True
            gevent.spawn_later(_GATHER_SECONDS, self.flush)

    def flush(self) -> None:
        """Hand what is gathered to the thread."""
        self._is_timed = False
        if not self._lines:
            return
        batch = ("\n".join(self._lines) + "\n").encode("utf-8", "backslashreplace")
        if self._handed - self._written + len(batch) > _MOST_PENDING:
            self.dropped += len(self._lines)
        else:
            self._handed += len(batch)
            self._queue.put(batch)
        self._lines = []

    def close(self) -> None:
        """Write the rest; waits at most a second for a reader that does not read."""
        if self._is_running:
            self._is_running = False
            self.flush()
            self._queue.put(None)
            self._done.acquire(True, 1.0)

    def _write_all(self) -> None:
        while (batch := self._queue.get()) is not None:
            size = len(batch)
            try:
                while batch:
                    batch = batch[os.write(self._descriptor, batch) :]
            except OSError:
                self.dropped += 1  # nobody reads any more; serving goes on
            self._written += size
        self._done.release()


class RequestLog:
    """The line of each request. Fields are made here; there is no way to pass a path, a token or a body.

    The fields that repeat from request to request are laid out once; that leaves a few microseconds for each line.
    """

    def __init__(self, log_format: str, log_level: str, write: Callable[[str], None]) -> None:
        self._layout = layout(log_format)
        self._least = {"debug": 0, "info": 0, "warning": 500, "error": 500}[log_level]
        self._write = write
        self._repeated = lru_cache(maxsize=4096)(self._lay_out_repeated)

    def request(self, *, request_id: str, method: str, route: str, status: int, outcome: str, seconds: float) -> None:
        """Log one answered request.

        `route` is the template (`/services/v1/handoff/<id>`), `outcome` a code of the API such as `granted` or
        `lease_held`, `seconds` how long it took.
        """
        if status < self._least:
            return
        before, after = self._repeated(method[:16], route, status, outcome)
        own = self._layout({"id": request_id, "ms": round(seconds * 1000, 2)})
        self._write(f"{before}{stamp(clock.wall())}{after}{own.lstrip('{')}")

    def _lay_out_repeated(self, method: str, route: str, status: int, outcome: str) -> tuple[str, str]:
        """What stands before and after the instant, up to the fields of the one request."""
        line = self._layout(
            {
                "at": "@",
                "level": "info" if status < 500 else "warning" if status == 503 else "error",
                "event": "request",
                "method": method,
                "route": route,
                "status": status,
                "outcome": outcome,
            }
        )
        before, after = line.split("@", 1)
        return (before, f"{after[:-1]},") if self._layout is as_json else (before, f"{after} ")
