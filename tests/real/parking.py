"""A tiny application for tests of the server process: it answers, parks, stalls or fails as the path says."""

from gevent import monkey

monkey.patch_all()

import os  # noqa: E402
import time  # noqa: E402
from collections.abc import Callable, Iterable  # noqa: E402
from typing import Any  # noqa: E402

from gevent.event import Event  # noqa: E402


class Parking:
    """`/park` waits until the server stops, `/echo` gives the body back, `/unread` leaves it."""

    def __init__(self) -> None:
        self._stopped = Event()
        self._parked = 0
        self._fatal: str | None = None

    def stop(self) -> None:
        """Answer all who wait."""
        self._stopped.set()

    def close(self) -> None:
        """Nothing to let go of."""

    def fatal_reason(self) -> str | None:
        """What `/fatal` asked for."""
        return self._fatal

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., object]) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        status, body = "200 OK", b"ok"
        if path == "/park":
            self._parked += 1
            self._stopped.wait()
            body = b"shutdown"
        elif path == "/parked":
            body = str(self._parked).encode()
        elif path == "/echo":
            body = environ["wsgi.input"].read()
        elif path == "/pid":
            body = str(os.getpid()).encode()
        elif path == "/big":
            body = b"x" * 50_000_000
        elif path == "/fatal":
            self._fatal = "told so"
        elif path == "/fail":
            raise RuntimeError("told so")
        elif path == "/slow":
            time.sleep(0.3)
        start_response(status, [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
        return [body]


if os.environ.get("PARKING_CANNOT_START"):
    raise RuntimeError("told not to start")

application = Parking()
