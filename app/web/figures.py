"""The figures of one process as Prometheus metric families.

They are read when somebody asks and from what the parts count anyway; between scrapes they cost nothing. A label value
is a word from a fixed list or a template: never a key, an identifier, an address or a token. docs/metrics.md tells of
each.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from app.spread import Spread
from app.web.tally import RequestTally

Rows = list[tuple[list[str], float]]
"""Label values and a figure, for each series of a family."""


class Store(Protocol):
    """The part of an engine that is used."""

    @property
    def spreads(self) -> Mapping[str, Spread]: ...

    def report(self) -> Mapping[str, object]: ...


class Sweeps(Protocol):
    """What the sweeper counts."""

    @property
    def runs(self) -> Mapping[str, int]: ...

    @property
    def removed(self) -> Mapping[str, int]: ...

    @property
    def last_seconds(self) -> float: ...

    @property
    def last_done_at(self) -> float: ...


class Sources:
    """Where the figures come from. Callables are asked at each scrape."""

    def __init__(
        self,
        *,
        about: Mapping[str, str],
        limits: Mapping[str, float],
        tally: RequestTally,
        store: Store,
        seats: Callable[[], Mapping[str, int]],
        wakes: Spread,
        sweeps: Sweeps,
        webhooks: Callable[[], Mapping[str, int]],
        webhooks_under_way: Callable[[], int],
        log_dropped: Callable[[], int],
        ready: Callable[[], Mapping[str, str | None]],
    ) -> None:
        self.about, self.limits, self.tally, self.store, self.seats = about, limits, tally, store, seats
        self.wakes, self.sweeps, self.webhooks, self.webhooks_under_way = wakes, sweeps, webhooks, webhooks_under_way
        self.log_dropped, self.ready = log_dropped, ready


class FigureCollector(Collector):
    """What the registry asks. `worker` names this process where several share one address, else it is None."""

    def __init__(self, sources: Sources, worker: str | None = None) -> None:
        self._of = sources
        self._names, self._values = (["worker"], [worker]) if worker else ([], [])

    def describe(self) -> Iterator[Metric]:
        """Nothing in advance: asking for figures here would ask the database at start."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """All families."""
        yield from self._requests()
        yield from self._waits()
        yield from self._storage()
        yield from self._beside_requests()
        about: Rows = [(list(self._of.about.values()), 1.0)]
        yield self._gauge("build_info", "Which release and engine this is", list(self._of.about), about)
        yield self._gauge("limit", "Limits in force", ["name"], _by_word(self._of.limits))

    def _requests(self) -> Iterator[Metric]:
        labels = ["method", "route", "status", "outcome"]
        counted = [
            ([k.method, k.route, str(k.status), k.outcome], float(count)) for k, count in self._of.tally.counts()
        ]
        yield self._counter("requests", "Answered requests", labels, counted)
        seconds = [([route], spread) for route, spread in self._of.tally.spreads.items()]
        yield self._histogram("request_seconds", "Seconds from head to answer, waits included", ["route"], seconds)

    def _waits(self) -> Iterator[Metric]:
        yield self._gauge("seats_taken", "Parked callers and sockets now", ["use"], _by_word(self._of.seats()))
        text = "Seconds from a signal to a sleeping caller going on"
        yield self._histogram("wake_seconds", text, [], [([], self._of.wakes)])

    def _storage(self) -> Iterator[Metric]:
        report = self._of.store.report()
        for name, spread in self._of.store.spreads.items():
            yield self._histogram(f"store_{name}", _SPREADS[name], [], [([], spread)])
        queued = {"write": report.get("queued"), "read": report.get("reads_queued")}
        yield self._gauge("store_queued", "Operations that wait for the store", ["lane"], _by_word(queued))
        yield self._gauge(
            "store_connections", "Connections to PostgreSQL", ["state"], _by_word(report.get("pool") or {})
        )
        for name, text in _STORE_COUNTERS.items():
            yield self._counter(f"store_{name}", text, [], [([], figure) for figure in _number(report.get(name))])
        wal: Rows = [([], figure) for figure in _number(report.get("wal_bytes"))]
        yield self._gauge("store_wal_bytes", "Size of the write-ahead log when last looked at", [], wal)
        found = {name: 0.0 if wrong is None else 1.0 for name, wrong in self._of.ready().items()}
        yield self._gauge("not_ready", "1 for each check of /readyz that fails", ["check"], _by_word(found))

    def _beside_requests(self) -> Iterator[Metric]:
        sweeps = self._of.sweeps
        yield self._counter("sweeps", "Sweeps by how they ended", ["result"], _by_word(sweeps.runs))
        yield self._counter("swept_rows", "Rows removed because they were over", ["kind"], _by_word(sweeps.removed))
        yield self._gauge("sweep_last_seconds", "How long the last sweep took", [], [([], sweeps.last_seconds)])
        at = "When the last sweep was done, seconds since the epoch, 0 before the first"
        yield self._gauge("sweep_last_done_timestamp_seconds", at, [], [([], sweeps.last_done_at)])
        yield self._counter("webhook_tries", "Tries of webhooks by result", ["result"], _by_word(self._of.webhooks()))
        under_way: Rows = [([], float(self._of.webhooks_under_way()))]
        yield self._gauge("webhooks_under_way", "Tries of webhooks going on now", [], under_way)
        dropped: Rows = [([], float(self._of.log_dropped()))]
        yield self._counter("log_lines_dropped", "Request lines that nobody read in time", [], dropped)

    def _counter(self, name: str, text: str, labels: list[str], rows: Rows) -> Metric:
        return self._filled(CounterMetricFamily(f"fencepost_{name}", text, labels=[*self._names, *labels]), rows)

    def _gauge(self, name: str, text: str, labels: list[str], rows: Rows) -> Metric:
        return self._filled(GaugeMetricFamily(f"fencepost_{name}", text, labels=[*self._names, *labels]), rows)

    def _filled(self, family: Any, rows: Rows) -> Metric:
        for values, figure in rows:
            family.add_metric([*self._values, *values], figure)
        filled: Metric = family
        return filled

    def _histogram(self, name: str, text: str, labels: list[str], rows: list[tuple[list[str], Spread]]) -> Metric:
        family = HistogramMetricFamily(f"fencepost_{name}", text, labels=[*self._names, *labels])
        for values, spread in rows:
            family.add_metric([*self._values, *values], buckets=spread.buckets(), sum_value=spread.total)
        return family


_SPREADS = {
    "commit_seconds": "Seconds that a commit took until it was durable",
    "group_size": "How many operations were committed together",
}
_STORE_COUNTERS = {
    "operations": "Write operations that the embedded engine ran",
    "failed": "Operations that were rolled back",
    "checkpoints": "Times that the write-ahead log was copied into the database",
    "trips": "Round trips to PostgreSQL",
}


def _number(figure: object) -> list[float]:
    return [float(figure)] if isinstance(figure, int | float) else []


def _by_word(figures: object) -> Rows:
    """Rows of one label."""
    assert isinstance(figures, Mapping)
    return [([str(word)], figure) for word, asked in figures.items() for figure in _number(asked)]
