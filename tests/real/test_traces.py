"""Spans as a collector receives them over the wire (OTLP), read by OpenTelemetry's own messages."""

import gzip
import queue
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.real.api import V1, Api
from tests.real.handoffs import bearer, make
from tests.real.server import RunningServer

pytestmark = pytest.mark.real
TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


class Collector(ThreadingHTTPServer):
    """Takes spans on a free port."""

    def __init__(self) -> None:
        self.spans: queue.Queue[Any] = queue.Queue()
        super().__init__(("127.0.0.1", 0), _Receiving)


class _Receiving(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        told = ExportTraceServiceRequest.FromString(
            gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body
        )
        for resource in told.resource_spans:
            for scope in resource.scope_spans:
                for span in scope.spans:
                    self.server.spans.put((self.path, resource.resource, span))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing."""


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as receiving:
        thread = threading.Thread(target=receiving.serve_forever)
        thread.start()
        yield receiving
        receiving.shutdown()
        thread.join()


def words(attributes: Any) -> dict[str, Any]:
    return {each.key: each.value.string_value or each.value.int_value for each in attributes}


def test_a_request_is_a_span_of_the_callers_trace_and_names_nobody(collector: Collector) -> None:
    endpoint = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{collector.server_port}",
        "OTEL_BSP_SCHEDULE_DELAY": "100",
    }
    with RunningServer(environment=endpoint) as server, Api(server.port) as api:
        while not collector.spans.empty():
            collector.spans.get()
        namespace = api.lease("namespace")["namespace"]
        named = {"traceparent": f"00-{TRACE}-{PARENT}-01", "X-Request-Id": "mine"}
        api.post(f"{V1}/lease/acquire", headers=named, key="secret-key", namespace=namespace)
        made = make(api)
        api.get(made.path, bearer(made.owner))
        assert server.terminate() == 0
    found = {}
    everything = ""
    while not collector.spans.empty():
        path, resource, span = collector.spans.get()
        assert path == "/v1/traces"
        assert words(resource.attributes)["service.name"] == "fencepost"
        found[span.name] = span
        everything += str(span)
    acquired = found[f"POST {V1}/lease/acquire"]
    assert (acquired.trace_id.hex(), acquired.parent_span_id.hex()) == (TRACE, PARENT)
    assert words(acquired.attributes) == {
        "http.request.method": "POST",
        "http.route": f"{V1}/lease/acquire",
        "http.response.status_code": 201,
        "fencepost.outcome": "held",
        "fencepost.request_id": "mine",
    }
    assert 0 < acquired.end_time_unix_nano - acquired.start_time_unix_nano < 60 * 10**9
    assert f"GET {V1}/handoff/<handoff_id>" in found
    for secret in (namespace, "secret-key", made.name, made.owner):
        assert secret not in everything


def test_a_collector_that_is_away_delays_nobody_and_stops_nothing() -> None:
    away = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_EXPORTER_OTLP_TIMEOUT": "1"}
    with RunningServer(environment=away) as server, Api(server.port) as api:
        for _ in range(50):
            assert api.lease("namespace").status == 201
        assert server.terminate() == 0


@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:9", None])
def test_without_a_collector_nothing_of_it_is_loaded(endpoint: str | None) -> None:
    with RunningServer(environment={"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint}) as server:
        loaded = Path(f"/proc/{server.worker_pids[0]}/maps").read_text(encoding="utf-8")
        assert ("google/_upb" in loaded) is (endpoint is not None)
