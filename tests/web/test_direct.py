"""Routes of a fixed path are answered before Flask is asked: nobody can tell from the answer."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from flask import Blueprint, Flask
from werkzeug.test import TestResponse

from app.clock import ManualClock
from app.services.limits import DailyLimit
from app.storage.sqlite import SqliteEngine
from app.web import edge
from app.web.edge import AddressPolicy, Call, Edge
from app.web.log import RequestLog
from app.web.tally import RequestTally
from app.wire.codes import Code
from app.wire.reply import Refused, Reply, refusal
from tests.storage.shelf import PATIENT

FIXED, VARIABLE = "/services/v1/thing/do", "/services/v1/other/do"


class Served:
    """One route twice: at a fixed path, and at one with a variable, which only Flask can match."""

    def __init__(self, limit: DailyLimit, mode: str) -> None:
        self.lines: list[str] = []
        self.tally = RequestTally()
        self.asked_flask: list[str] = []
        self.app = Flask(__name__)
        edge.install(self.app, RequestLog("json", "info", self.lines.append), self.tally)
        gate = Edge(limit, AddressPolicy(mode, 0), body_deadline_seconds=5)
        routes = Blueprint("thing", __name__, url_prefix="/services/v1")

        def do(call: Call, **_: str) -> Reply:
            asked = json.loads(call.body or b"{}")
            if asked.get("fails"):
                raise RuntimeError("broken")
            if asked.get("refused"):
                raise Refused(refusal(Code.FORBIDDEN, headers={"Retry-After": "3"}))
            return Reply(201, {"ok": True, "status": "granted", "asked": asked}, {"X-More": "1"})

        gate.route(routes, "/thing/do", do, cap=100)
        gate.route(routes, "/<name>/do", do, cap=100)
        self.app.register_blueprint(routes)
        self.app.before_request(lambda: self.asked_flask.append("yes"))

    def ask(self, path: str, *, method: str = "POST", **given: Any) -> TestResponse:
        return self.app.test_client().open(path, method=method, **given)


@pytest.fixture
def limit(tmp_path) -> Iterator[DailyLimit]:
    clock = ManualClock()
    engine = SqliteEngine(tmp_path / "fencepost.db", clock=clock, **PATIENT)
    yield DailyLimit(engine, clock, "requests", 1000)
    engine.close()


JSON = {"content_type": "application/json"}
CASES: list[dict[str, Any]] = [
    {"data": b'{"a":1}', **JSON},
    {"data": b'{"refused":true}', **JSON},
    {"data": b'{"fails":true}', **JSON},
    {"data": b"x" * 101, **JSON},
    {"data": b"{}", "content_type": "text/plain"},
    {"data": b"{}", "query_string": "a=1", **JSON},
    {"data": b""},
    {"data": b"{}", "headers": {"X-Request-Id": "mine.1"}, **JSON},
    {"data": b"{}", "headers": {"Host": "evil.example", "X-HTTP-Method-Override": "DELETE"}, **JSON},
]


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("mode", ["on", "off"])
def test_both_ways_answer_alike(limit: DailyLimit, mode: str, case: dict[str, Any]) -> None:
    answers = []
    served = Served(limit, mode)
    for path in (FIXED, VARIABLE):
        answer = served.ask(path, **case)
        request_id = answer.headers["X-Request-Id"]
        headers = [
            (name, "?" if name in ("X-Request-Id", "RateLimit-Remaining") else value) for name, value in answer.headers
        ]
        answers.append((answer.status, headers, answer.data.replace(request_id.encode(), b"?")))
    assert answers[0] == answers[1]
    assert served.asked_flask == ["yes"], "only for the second"


def test_both_are_logged_and_counted_by_their_template(limit: DailyLimit) -> None:
    served = Served(limit, "off")
    for path in (FIXED, VARIABLE):
        served.ask(path, data=b"{}", **JSON)
    lines = [json.loads(line) for line in served.lines]
    assert [(line["route"], line["status"], line["outcome"]) for line in lines] == [
        (FIXED, 201, "granted"),
        ("/services/v1/<name>/do", 201, "granted"),
    ]
    assert {(kind.method, kind.route, kind.status) for kind, _ in served.tally.counts()} == {
        ("POST", FIXED, 201),
        ("POST", "/services/v1/<name>/do", 201),
    }


@pytest.mark.parametrize(
    ("path", "method", "headers"),
    [
        (FIXED, "GET", {}),
        (FIXED, "OPTIONS", {}),
        (FIXED, "HEAD", {}),
        (FIXED, "post", {}),
        (FIXED + "/", "POST", {}),
        ("/" + FIXED, "POST", {}),
        (FIXED, "POST", {"Upgrade": "websocket", "Connection": "upgrade"}),
    ],
)
def test_whatever_is_not_exactly_that_is_flask_s(
    limit: DailyLimit, path: str, method: str, headers: dict[str, str]
) -> None:
    served = Served(limit, "off")
    served.ask(path, method=method, data=b"{}", headers=headers, **JSON)
    assert served.asked_flask == ["yes"]
