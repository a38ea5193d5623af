"""/healthz and /readyz."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from flask import Flask

from app.services.ports import Unavailable
from app.web import edge, health
from app.web.log import RequestLog

PLENTY = 1 << 40


class Shelf:
    """A store that reports what it is told to."""

    def __init__(self, *problems: str, away: bool = False, **figures: object) -> None:
        self._report = {"problems": list(problems), **figures}
        self._away = away

    def report(self) -> dict[str, object]:
        return self._report

    def read(self, query: Callable[[Any], int]) -> int:
        if self._away:
            raise Unavailable("the database does not answer", committed="no")
        return query(self)

    def now(self) -> int:
        return 1


def get(path: str, store: Shelf, *, free: int = PLENTY, stopping: bool = False) -> tuple[int, Any]:
    app = Flask(__name__)
    edge.install(app, RequestLog("json", "info", lambda _: None))
    ready = health.Readiness(store, Path(), lambda: stopping, free=lambda _: free)
    app.register_blueprint(health.blueprint(ready))
    answer = app.test_client().get(path)
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["X-Request-Id"]
    return answer.status_code, answer.get_json()


def test_alive_is_said_without_asking_the_database() -> None:
    assert get("/healthz", Shelf("broken", away=True)) == (200, {"ok": True})


def test_ready_names_what_was_looked_at() -> None:
    status, body = get("/readyz", Shelf())
    assert status == 200
    assert body["ok"] is True
    assert body["checks"] == {"process": "ok", "database": "ok", "schema": "ok", "disk": "ok"}


def test_not_ready_says_why() -> None:
    status, body = get("/readyz", Shelf("stuck: writer"))
    assert (status, body["code"], body["checks"]["database"]) == (503, "not_ready", "stuck: writer")
    status, body = get("/readyz", Shelf(away=True))
    assert (status, body["checks"]["database"]) == (503, "the database does not answer")
    status, body = get("/readyz", Shelf(schema="0002", schema_needed="0001"))
    assert (status, body["checks"]["schema"]) == (503, "The schema is 0002, this release needs 0001.")
    status, body = get("/readyz", Shelf(), stopping=True)
    assert (status, body["checks"]["process"]) == (503, "The server is stopping.")


def test_the_disk_may_have_64_mib_left_but_not_less() -> None:
    limit = 64 * 1024 * 1024
    assert get("/readyz", Shelf(), free=limit)[0] == 200
    status, body = get("/readyz", Shelf(), free=limit - 1)
    assert status == 503
    assert "nearly full" in body["checks"]["disk"]


def test_a_data_folder_that_is_gone_is_a_reason(tmp_path: Path) -> None:
    ready = health.Readiness(Shelf(), tmp_path / "gone", lambda: False)
    assert "cannot be looked at" in str(ready.checks()["disk"])
    assert health.Readiness(Shelf(), tmp_path, lambda: False).checks()["database"] is None
