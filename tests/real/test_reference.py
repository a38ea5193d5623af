"""The interface as callers read it: valid, whole, and true of this very server."""

import json
import re

import pytest
from openapi_spec_validator import validate

from app.wire import openapi
from tests.real.api import Api
from tests.real.server import RunningServer


@pytest.fixture(scope="module")
def server():
    with RunningServer() as running:
        yield running


@pytest.fixture
def api(server):
    with Api(server.port) as caller:
        yield caller


def test_the_document_is_valid_openapi_and_names_this_server(server, api) -> None:
    answer = api.get("/openapi.json")
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    validate(answer.body)
    assert answer["openapi"].startswith("3.1")
    assert answer["servers"] == [{"url": server.url}]


def test_every_route_for_callers_is_told_and_every_route_told_exists(api) -> None:
    told = {(operation.method.upper(), operation.path) for operation in openapi.OPERATIONS}
    for method, path in told:
        asked = path.replace("{handoff_id}", "0" * 32).replace("{seconds}", "0").replace("{state}", "done")
        answer = api.send(method, asked, b"{}" if method == "POST" else None, {"Content-Type": "application/json"})
        assert answer.body.get("code") not in ("unknown_route", "method_not_allowed"), (method, path)
        wrong = api.send("DELETE", asked)
        assert wrong.status == 405
        assert method in wrong.headers["allow"]


def test_every_member_told_is_taken_and_an_untold_one_is_not(api) -> None:
    for _, path, operation in openapi.outline(api.get("/openapi.json").body):
        if "requestBody" not in operation or "{" in path:
            continue
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        for name in schema["properties"]:
            answer = api.text(path, json.dumps({name: {"no": "such value"}}))
            assert answer.body.get("field") != name or "Unknown member" not in answer["error"], (path, name)
        refused = api.text(path, json.dumps({"surely_unknown": 1}))
        assert (refused.status, refused["field"]) == (400, "surely_unknown")


def test_the_page_runs_no_script_and_fetches_nothing(api) -> None:
    page = api.get("/docs")
    assert page.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    text = page.raw.decode()
    assert "<script" not in text
    assert not re.search(r"(?:src|href)=\"(?:https?:)?//", text)
    for operation in openapi.OPERATIONS:
        assert f'id="{operation.name}"' in text


def test_the_guide_for_agents_names_every_status_that_it_must_act_on(api) -> None:
    guide = api.get("/llms.txt").raw.decode()
    for word in (
        "held",
        "conflict",
        "lost",
        "completed",
        "claimed",
        "duplicate",
        "in_progress",
        "forbidden",
        "repeated",
    ):
        assert word in guide
    for operation in openapi.OPERATIONS:
        assert operation.path in guide


@pytest.mark.parametrize("path", ["/openapi.json", "/docs", "/llms.txt"])
def test_reading_is_not_counted(path) -> None:
    environment = {"FENCEPOST_LIMITS": "on", "FENCEPOST_LIMIT_REQUESTS_PER_DAY": "1"}
    with RunningServer(environment=environment) as server, Api(server.port) as api:
        assert {api.get(path).status for _ in range(4)} == {200}
