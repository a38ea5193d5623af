"""/metrics: the figures of the process that is asked, in Prometheus' text form, not counted by any limit.

Several workers behind one address each answer for themselves and say so by the label `worker`, their process id. The
client library's shared-file mode would add their counters up, but it loses process figures and what is read only when
asked, keeps files that outlive a crash, and would cost every request a write to a mapped file. With the label each
series only ever rises, so rates are right whichever worker a scrape meets; for exact gauges give each process an
address of its own (docs/metrics.md).
"""

import os

from flask import Blueprint
from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

from app.web.edge import Edge
from app.web.figures import FigureCollector, Sources
from app.wire.reply import Sent


def blueprint(edge: Edge, sources: Sources, *, workers: int) -> Blueprint:
    """GET /metrics."""
    registry = CollectorRegistry(auto_describe=False)
    for collector in (ProcessCollector, PlatformCollector, GCCollector):
        collector(registry=registry)
    registry.register(FigureCollector(sources, str(os.getpid()) if workers > 1 else None))
    routes = Blueprint("metrics", __name__)

    def metrics() -> Sent:
        return edge.send(200, generate_latest(registry), {"Content-Type": CONTENT_TYPE_PLAIN_0_0_4}, "ok")

    routes.add_url_rule("/metrics", "metrics", view_func=edge.view(metrics), methods=["GET"])
    return routes
