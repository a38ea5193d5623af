"""What runs beside requests in a process."""

import logging
import sys
from collections import Counter

import gevent
from gevent.event import Event

from app import tokens
from app.clock import monotonic, wall
from app.services.people import People
from app.services.ports import Unavailable
from app.services.sweep import Sweep

_log = logging.getLogger("fencepost.background")


class Sweeper:
    """Sweeps every so many real seconds; a database that is away only delays it."""

    def __init__(self, sweep: Sweep, every_seconds: float) -> None:
        self._sweep = sweep
        self._every = every_seconds
        self._stop = Event()
        self._greenlet: gevent.Greenlet[[], None] | None = None
        self.runs: Counter[str] = Counter(done=0, waited=0, failed=0)
        """Sweeps by how they ended."""
        self.removed: Counter[str] = Counter()
        """Rows removed so far by kind."""
        self.last_seconds = 0.0
        self.last_done_at = 0.0
        """Seconds since the epoch by the wall clock, for people and metrics."""

    def start(self) -> None:
        """Begin; the first sweep comes after one interval."""
        self._greenlet = gevent.spawn(self._run)

    def stop(self) -> None:
        """End; a batch under way is finished by the engine."""
        self._stop.set()

    def sweep(self) -> dict[str, int]:
        """Sweep now, once; rows removed by kind. Raises Unavailable."""
        began = monotonic()
        removed = self._sweep.run()
        self.runs["done"] += 1
        self.removed.update(removed)
        self.last_seconds, self.last_done_at = monotonic() - began, wall()
        return removed

    def _run(self) -> None:
        while not self._stop.wait(self._every):
            try:
                removed = self.sweep()
            except Unavailable as away:
                self.runs["waited"] += 1
                _log.warning("the sweep waits: %s", away.reason)
            except Exception:  # noqa: BLE001 - told in full, and the next turn tries again
                self.runs["failed"] += 1
                _log.exception("the sweep failed and will be tried again")
            else:
                if any(removed.values()):
                    _log.info("swept %s", " ".join(f"{name}={count}" for name, count in removed.items()))


class FirstLink:
    """Prints the link by which the first operator signs in, where there is none. The secret is in the fragment."""

    _PAUSE_SECONDS = 1.0

    def __init__(self, people: People, public_url: str) -> None:
        self._people = people
        self._url = public_url
        self._stop = Event()

    def start(self) -> None:
        """Begin; a database that is away only delays it."""
        gevent.spawn(self._run)

    def stop(self) -> None:
        """Try no longer."""
        self._stop.set()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                code = self._people.first_code(tokens.START)
            except Unavailable as away:
                _log.warning("the first sign-in link waits: %s", away.reason)
                self._stop.wait(self._PAUSE_SECONDS)
                continue
            if code is not None:
                sys.stdout.write(f"Nobody may sign in yet. Be the first: {self._url}/sign-in#{code}\n")
                sys.stdout.flush()
            return
