"""One OpenTelemetry span for each request, where its packages are installed and the environment names a collector.

The extra `traces` brings the packages, and the variables are OpenTelemetry's own (`OTEL_EXPORTER_OTLP_ENDPOINT`,
`OTEL_SERVICE_NAME`, `OTEL_TRACES_SAMPLER`, …). A span says what the request's log line says and nothing more: no path,
no query, no address, no token. It belongs to the caller's trace if the request carries a `traceparent` (W3C Trace
Context). Spans are gathered and sent by a greenlet of their own; when the collector is away they are dropped, and no
request waits.
"""

import os
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any

from app.clock import wall

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PACKAGES = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_NANOSECONDS = 1_000_000_000


class Traces:
    """Makes and sends the spans of this process."""

    def __init__(self, version: str) -> None:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.trace import SpanKind, Status, StatusCode
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        name = os.environ.get("OTEL_SERVICE_NAME", "fencepost")
        resource = Resource.create({SERVICE_NAME: name, SERVICE_VERSION: version})
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer("fencepost", version)
        self._parent_of: Callable[[Mapping[str, str]], Any] = TraceContextTextMapPropagator().extract
        self._kind, self._failed = SpanKind.SERVER, Status(StatusCode.ERROR)

    def note(
        self, environ: Mapping[str, Any], request_id: str, route: str, status: int, outcome: str, seconds: float
    ) -> None:
        """Tell of one answered request that took so long until now."""
        ended_at = int(wall() * _NANOSECONDS)
        method = environ["REQUEST_METHOD"]
        carried = {name: environ[f"HTTP_{name.upper()}"] for name in _CARRIED if f"HTTP_{name.upper()}" in environ}
        span = self._tracer.start_span(
            f"{method if method in _METHODS else 'HTTP'} {route}",
            context=self._parent_of(carried),
            kind=self._kind,
            start_time=ended_at - int(seconds * _NANOSECONDS),
            attributes={
                "http.request.method": method if method in _METHODS else "_OTHER",
                "http.route": route,
                "http.response.status_code": status,
                "fencepost.outcome": outcome,
                "fencepost.request_id": request_id,
            },
        )
        if status >= 500:
            span.set_status(self._failed)
        span.end(ended_at)

    def stop(self) -> None:
        """Send what is gathered."""
        self._provider.shutdown()


_CARRIED = ("traceparent", "tracestate")


def wanted(version: str) -> Traces | None:
    """The spans' maker, or None where nobody asked for spans or the packages are missing."""
    if (
        not any(os.environ.get(name) for name in _ENDPOINTS)
        or os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true"
    ):
        return None
    return Traces(version) if all(_is_there(package) for package in _PACKAGES) else None


def _is_there(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # a package above it is missing
        return False
