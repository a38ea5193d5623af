"""What runs beside requests in a process."""

import logging

import gevent
from gevent.event import Event

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

    def start(self) -> None:
        """Begin; the first sweep comes after one interval."""
        self._greenlet = gevent.spawn(self._run)

    def stop(self) -> None:
        """End; a batch under way is finished by the engine."""
        self._stop.set()

    def _run(self) -> None:
        while not self._stop.wait(self._every):
            try:
                removed = self._sweep.run()
            except Unavailable as away:
                _log.warning("the sweep waits: %s", away.reason)
            except Exception:  # noqa: BLE001 - told in full, and the next turn tries again
                _log.exception("the sweep failed and will be tried again")
            else:
                if any(removed.values()):
                    _log.info("swept %s", " ".join(f"{name}={count}" for name, count in removed.items()))
