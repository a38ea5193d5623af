"""Is the process alive, and may it be sent work. Neither answer is counted by the limits.

`/healthz` says only that the loop turns: a stuck disk must not make a supervisor kill a process that still serves its
waits. `/readyz` gives reasons.
"""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from flask import Blueprint, Response

from app.web.edge import respond
from app.wire.reply import Reply

_LEAST_FREE_BYTES = 64 * 1024 * 1024


def blueprint(report: Callable[[], Mapping[str, object]], is_stopping: Callable[[], bool], data_dir: Path) -> Blueprint:
    """`report` is the engine's; it must answer without waiting for the database."""
    routes = Blueprint("health", __name__)

    def healthz() -> Response:
        return respond(Reply(200, {"ok": True}))

    def readyz() -> Response:
        figures = report()
        reasons = [str(problem) for problem in _list(figures.get("problems"))]
        if shutil.disk_usage(data_dir).free < _LEAST_FREE_BYTES:
            reasons.append("the disk of the data folder is almost full")
        if is_stopping():
            reasons.append("the server is stopping")
        body = {"ok": not reasons, "reasons": reasons, "engine": figures["engine"], "version": figures["version"]}
        return respond(Reply(503 if reasons else 200, body))

    routes.add_url_rule("/healthz", view_func=healthz)
    routes.add_url_rule("/readyz", view_func=readyz)
    return routes


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
