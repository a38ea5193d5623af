"""Lines: their form, what is escaped, and that writing them neither blocks nor loses."""

import json
import logging
import os
import sys
from collections.abc import Iterator

import pytest
from flask import Flask, Response, abort

from app.web import edge
from app.web.exchange import here
from app.web.log import Events, Pen, RequestLog, as_json, as_text, layout, stamp


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reading, writing = os.pipe()
    yield reading, writing
    for descriptor in (reading, writing):
        os.close(descriptor)


def lines_of(pipe: tuple[int, int], log_format: str = "json") -> tuple[RequestLog, list[str]]:
    lines: list[str] = []
    return RequestLog(log_format, "info", lines.append), lines


def served(log: RequestLog) -> Flask:
    app = Flask(__name__)
    edge.install(app, log)

    def thing(name: str) -> Response:
        here().outcome = "granted"
        return Response(name)

    def broken() -> Response:
        abort(418)

    app.add_url_rule("/thing/<name>", view_func=thing)
    app.add_url_rule("/broken", view_func=broken)
    return app


def test_a_line_has_the_template_and_never_the_path_or_the_query(pipe: tuple[int, int]) -> None:
    log, lines = lines_of(pipe)
    served(log).test_client().get("/thing/own_secret?token=own_other", headers={"X-Request-Id": "abc.1"})
    [line] = lines
    fields = json.loads(line)
    assert fields["route"] == "/thing/<name>"
    assert (fields["id"], fields["method"], fields["status"]) == ("abc.1", "GET", 200)
    assert fields["outcome"] == "granted"
    assert fields["ms"] >= 0
    assert "own_" not in line


def test_an_unknown_route_and_a_refusal_are_logged_too(pipe: tuple[int, int]) -> None:
    log, lines = lines_of(pipe, "text")
    client = served(log).test_client()
    client.get("/own_secret")
    client.post("/broken")
    client.get("/broken")
    assert " route=unknown status=404 outcome=unknown_route " in lines[0]
    assert " status=405 outcome=method_not_allowed " in lines[1]
    assert " route=/broken status=400 outcome=invalid_request " in lines[2]
    assert "own_secret" not in "".join(lines)


def test_text_is_key_value_and_quotes_what_needs_it() -> None:
    assert as_text({"at": "T", "level": "info", "event": "request", "a": 1, "b": "x y", "c": "", "d": 'q"'}) == (
        'T info request a=1 b="x y" c="" d="q\\""'
    )


@pytest.mark.parametrize("write", [as_text, as_json])
def test_control_characters_cannot_forge_a_line_or_steer_a_terminal(write: object) -> None:
    assert callable(write)
    line = write({"text": "a\r\nlevel=error\x1b[31m\x00\u202e\u2028"})
    assert line.isprintable()
    assert "\\n" in line


def test_auto_is_json_where_no_terminal_is() -> None:
    assert layout("auto") is (as_text if sys.stdout.isatty() else as_json)
    assert layout("text") is as_text


def test_a_stamp_is_utc_with_milliseconds() -> None:
    assert stamp(1_796_065_200.0) == "2026-11-30T19:00:00.000Z"
    assert stamp(1_796_065_200.25) == "2026-11-30T19:00:00.250Z"


def test_a_log_record_with_a_fault_is_one_line() -> None:
    try:
        raise ValueError("two\nlines")
    except ValueError:
        record = logging.LogRecord("fencepost.web", logging.ERROR, "f", 1, "it %s", ("broke",), sys.exc_info())
    line = Events("json").format(record)
    fields = json.loads(line)
    assert (fields["level"], fields["event"], fields["text"]) == ("error", "web", "it broke")
    assert "ValueError" in fields["trace"]
    assert "\n" not in line
    assert "\n" not in Events("text").format(record)


def test_from_level_warning_on_only_failures_are_logged() -> None:
    lines: list[str] = []
    log = RequestLog("json", "warning", lines.append)
    for status in (200, 404, 499, 500, 503):
        log.request(request_id="r", method="GET", route="/", status=status, outcome="x", seconds=0.0)
    assert [json.loads(line)["level"] for line in lines] == ["error", "warning"]


def test_the_pen_writes_lines_in_order_and_the_rest_when_closed(pipe: tuple[int, int]) -> None:
    pen = Pen(pipe[1])
    for number in range(100):
        pen.write(f"line {number}")
    pen.close()
    pen.close()
    assert os.read(pipe[0], 1 << 16).decode().splitlines() == [f"line {number}" for number in range(100)]


def test_a_reader_that_does_not_read_blocks_nobody_and_loses_only_what_is_too_much(pipe: tuple[int, int]) -> None:
    pen = Pen(pipe[1])
    for _ in range(3):
        pen.write("x" * 2_000_000)
        pen.flush()
    assert pen.dropped == 1
    kept = 0
    while kept < 2 * 2_000_001:
        kept += len(os.read(pipe[0], 1 << 20))
    pen.close()


def test_a_closed_destination_stops_nothing() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    pen = Pen(writing)
    pen.write("to nobody")
    pen.close()
    os.close(writing)
    assert pen.dropped == 1
