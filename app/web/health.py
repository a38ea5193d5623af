"""Whether the loop turns, and whether this process can serve.

/healthz asks nobody: that it is answered says that the loop turns. A supervisor restarts by it. /readyz looks at the
database, its schema and the disk, and says what it found; a balancer takes the process out by it. Neither is counted
by any limit.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol, TypeVar

from flask import Blueprint, Response

from app.services.ports import Unavailable
from app.web.edge import respond
from app.wire.codes import Code
from app.wire.reply import Reply, refusal

T = TypeVar("T")
_LEAST_FREE_BYTES = 64 * 1024 * 1024


class Instants(Protocol):
    """The part of a reader that is used: the database's instant."""

    def now(self) -> int:
        """Microseconds since the epoch."""
        ...


class Store(Protocol):
    """The part of an engine that is used. `report()["problems"]` lists sentences, empty when all is well."""

    def report(self) -> Mapping[str, object]:
        """Figures and problems."""
        ...

    def read(self, query: Callable[[Instants], int]) -> int:
        """Ask the database something."""
        ...


def free_bytes(folder: Path) -> int:
    """What the file system still gives to this user."""
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize


class Readiness:
    """What /readyz looks at. Each check is None when all is well, else a sentence."""

    def __init__(
        self,
        store: Store,
        data_dir: Path,
        is_stopping: Callable[[], bool],
        *,
        free: Callable[[Path], int] = free_bytes,
    ) -> None:
        self._store = store
        self._data_dir = data_dir
        self._is_stopping = is_stopping
        self._free = free

    def checks(self) -> dict[str, str | None]:
        """Name of the check to what is wrong."""
        report = self._store.report()
        return {
            "process": "The server is stopping." if self._is_stopping() else None,
            "database": self._database(report),
            "schema": self._schema(report),
            "disk": self._disk(),
        }

    def _database(self, report: Mapping[str, object]) -> str | None:
        problems = report.get("problems")
        if isinstance(problems, list) and problems:
            return "; ".join(str(problem) for problem in problems)
        try:
            self._store.read(lambda reader: reader.now())
        except Unavailable as away:
            return away.reason
        return None

    def _schema(self, report: Mapping[str, object]) -> str | None:
        """Engines that can see another schema than theirs report both revisions."""
        found, needed = report.get("schema"), report.get("schema_needed")
        return None if found == needed else f"The schema is {found}, this release needs {needed}."

    def _disk(self) -> str | None:
        try:
            free = self._free(self._data_dir)
        except OSError as fault:
            return f"The data folder cannot be looked at: {fault.strerror}."
        return None if free >= _LEAST_FREE_BYTES else f"The disk of the data folder is nearly full: {free} bytes left."


def blueprint(readiness: Readiness) -> Blueprint:
    """/healthz and /readyz."""
    routes = Blueprint("health", __name__)

    def healthz() -> Response:
        return respond(Reply(200, {"ok": True}))

    def readyz() -> Response:
        checks = readiness.checks()
        told = {name: wrong or "ok" for name, wrong in checks.items()}
        if any(checks.values()):
            return respond(refusal(Code.NOT_READY, status="not_ready", members={"checks": told}))
        return respond(Reply(200, {"ok": True, "status": "ready", "checks": told}))

    routes.add_url_rule("/healthz", view_func=healthz)
    routes.add_url_rule("/readyz", view_func=readyz)
    return routes
