"""The process that listens and looks after the workers. It never opens the database.

Beyond gunicorn's: grace on the monotonic clock; on SQLite one worker at a time, ever (a reload stops the old one
before the new one starts, and new connections wait in the listen queue meanwhile); three workers in a row that do not
come up end the server with a message instead of a loop.
"""

import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

from gunicorn import sock  # type: ignore[import-untyped]
from gunicorn.app.base import BaseApplication  # type: ignore[import-untyped]
from gunicorn.arbiter import Arbiter as GunicornArbiter  # type: ignore[import-untyped]
from gunicorn.errors import HaltServer  # type: ignore[import-untyped]

from app.clock import monotonic
from app.serving import config
from app.serving.log import dress
from app.serving.worker import FAILED, REFUSED, Worker
from app.settings import Settings, StartRefused, load

_GRACE_SECONDS = 8.0
_MOST_FAILURES = 3


class Arbiter(GunicornArbiter):  # type: ignore[misc]
    """gunicorn's arbiter for a server whose store may belong to one process."""

    WORKER_BOOT_ERROR = FAILED + 1  # FAILED is counted in child_exit instead of halting at once
    APP_LOAD_ERROR = REFUSED
    LISTENERS: list[Any]

    def __init__(self, application: "Application") -> None:
        self._lifeline = os.pipe()
        self._failures = 0
        super().__init__(application)

    def setup(self, app: "Application") -> None:
        """Take the configuration, at start and at each reload, and hang our hooks into it."""
        super().setup(app)
        dress(app.settings.log_format, app.settings.log_level)
        self.cfg.set("post_fork", self._tie)
        self.cfg.set("child_exit", self._count_failures)

    def start(self) -> None:
        """Open the listening sockets, and only then say so. An address that cannot be had ends the start."""
        try:
            super().start()
        except SystemExit as ended:
            if not ended.code:
                raise
            where = self.app.settings.listens_on
            sys.stderr.write(
                f"fencepost-server: {where} cannot be listened on, most likely because another program does. Stop that "
                f"one, or choose another port: FENCEPOST_BIND, or `make run PORT=…`.\n"
            )
            raise SystemExit(FAILED) from ended
        self.app.listening()

    def stop(self, graceful: bool = True) -> None:
        """End all workers, gracefully whatever the signal was; kill those still there after the grace."""
        unlink = self.reexec_pid == self.master_pid == 0 and not self.systemd
        sock.close_sockets(self.LISTENERS, unlink)
        self.LISTENERS = []
        self._end_workers()

    def reload(self) -> None:
        """Read the settings again and renew the workers. Refused settings change nothing."""
        try:
            load()
        except StartRefused as refused:
            for sentence in refused.sentences:
                self.log.error("Not reloaded: %s", sentence)
            return
        if not self.app.settings.is_sqlite:
            super().reload()
            return
        self.app.reload()
        self.setup(self.app)
        self._end_workers()
        self.manage_workers()

    def handle_ttin(self) -> None:
        """One worker more, where the store allows it."""
        if self._may("TTIN"):
            super().handle_ttin()

    def handle_usr2(self) -> None:
        """A second arbiter beside this one, where the store allows it."""
        if self._may("USR2"):
            super().handle_usr2()

    def _may(self, signal_name: str) -> bool:
        if self.app.settings.is_sqlite:
            self.log.warning("SIG%s ignored: on SQLite one process serves. SIGHUP renews it.", signal_name)
            return False
        return True

    def _end_workers(self) -> None:
        self.kill_workers(signal.SIGTERM)
        deadline = monotonic() + _GRACE_SECONDS
        while self.WORKERS and monotonic() < deadline:
            time.sleep(0.02)
            self._reap_leaving()
        self.kill_workers(signal.SIGKILL)
        self._reap_leaving()

    def _reap_leaving(self) -> None:
        try:
            self.reap_workers()
        except HaltServer as halt:
            self.log.debug("A worker ended with code %s while being stopped", halt.exit_status)

    def _tie(self, _: GunicornArbiter, worker: Worker) -> None:
        """In the child: keep the reading end, so that it learns of the arbiter's end."""
        os.close(self._lifeline[1])
        worker.lifeline = self._lifeline[0]

    def _count_failures(self, _: GunicornArbiter, worker: Worker) -> None:
        self._failures = 0 if worker.has_served else self._failures + 1
        if self._failures >= _MOST_FAILURES:
            raise HaltServer(f"{_MOST_FAILURES} workers in a row did not come up; see the errors above.", FAILED)


class Application(BaseApplication):  # type: ignore[misc]
    """Our settings as gunicorn's configuration."""

    def __init__(self, settings: Settings, target: str, listening: Callable[[], None]) -> None:
        self.settings = settings
        self._target = target
        self.listening = listening
        super().__init__()

    def load_config(self) -> None:
        """Set what config.py says; gunicorn's own command line and files are not looked at."""
        for name, value in config.gunicorn_settings(self.settings).items():
            self.cfg.set(name, value)

    def reload(self) -> None:
        """Read the settings again; the listening address stays."""
        self.settings = load()
        super().reload()

    def load(self) -> Any:
        """Import the WSGI object, in the worker."""
        from gunicorn.util import import_app  # type: ignore[import-untyped]

        return import_app(self._target)

    def run(self) -> None:
        """Listen and serve until told to stop; ends the process."""
        try:
            Arbiter(self).run()
        except RuntimeError as fault:
            self.logger_fault(fault)

    @staticmethod
    def logger_fault(fault: RuntimeError) -> None:
        """gunicorn's own word on a configuration it cannot use."""
        sys.stderr.write(f"{fault}\n")
        sys.exit(1)


def _say_nothing() -> None:
    pass


def serve(
    settings: Settings,
    target: str = "wsgi:application",
    listening: Callable[[], None] = _say_nothing,
) -> None:
    """Serve `target` as these settings say; `listening` is called once the address is ours.

    Returns by SystemExit: 0 after a stop, 78 refused, 70 failed.
    """
    os.umask(0o077)
    config.raise_descriptor_limit(settings)
    Application(settings, target, listening).run()
