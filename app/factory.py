"""The one place where the rooms meet: settings in, an application out."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, TypedDict

import gevent
from gevent import monkey

from app import __version__
from app.admin import verbs
from app.admin.socket import AdminSocket
from app.background import FirstLink, Sweeper
from app.clock import Clock, DatabaseClock, SteadyClock
from app.dashboard import health as health_page
from app.dashboard import route as dashboard
from app.dashboard.feeds import Feeds
from app.dashboard.gate import Gate
from app.mcp import claim as mcp_claim
from app.mcp import credit as mcp_credit
from app.mcp import handoff as mcp_handoff
from app.mcp import lease as mcp_lease
from app.mcp import route as mcp_route
from app.mcp.server import Server
from app.mcp.tool import Entry
from app.mcp.words import INSTRUCTIONS
from app.push import guard
from app.push.board import Board
from app.push.deadlines import Deadlines
from app.push.hub import Hub
from app.push.line import Lines
from app.push.names import Names
from app.push.seats import Seats
from app.push.sender import WebhookSender
from app.push.webhook import Webhook
from app.services.agenda import Agendas
from app.services.audit import Audit
from app.services.claim import Claims
from app.services.credit import Credits
from app.services.handoff import Handoffs
from app.services.lease import Leases
from app.services.limits import DailyLimit
from app.services.outbox import Outbox
from app.services.overview import Overview
from app.services.passwords import OnAThread
from app.services.people import People
from app.services.receipts import KeyFileError, Receipts, open_receipts
from app.services.sweep import EVERY_CHORE, Sweep
from app.services.waiting import Waiting
from app.settings import Settings, StartRefused
from app.storage.engine import Engine
from app.storage.sqlite import SqliteEngine
from app.testmode import Failpoints, offset_from
from app.tokens import notify_secret
from app.web import claim, credit, edge, handoff, health, lease, metrics, reference, stream, traces
from app.web.conversation import Desk
from app.web.edge import AddressPolicy, Edge
from app.web.figures import Sources
from app.web.health import Readiness
from app.web.lean import LeanFlask
from app.web.log import Pen, RequestLog
from app.web.sources import HandoffSource, LeaseSource
from app.web.tally import RequestTally
from app.wire.origins import Origins
from app.wire.prices import CLAIM, prices

_TEST_MODE_NAP_SECONDS = 0.1


class Application(LeanFlask):
    """The WSGI application, and how it stops: `stop()` answers everyone who waits and may be called twice."""

    def __init__(self) -> None:
        super().__init__("app", static_folder=None, template_folder=None)
        self.url_map.merge_slashes = False
        self.url_map.strict_slashes = True
        self.stopping = False
        self._fatal: str | None = None
        self._at_stop: list[Callable[[], None]] = []
        self._at_close: list[Callable[[], None]] = []

    def on_stop(self, act: Callable[[], None]) -> None:
        """Do this when the server is told to go away; requests are still being answered."""
        self._at_stop.append(act)

    def on_close(self, act: Callable[[], None]) -> None:
        """Do this after the last answer."""
        self._at_close.append(act)

    def fail(self, reason: str) -> None:
        """Say that this process must end; may be called from any thread."""
        self._fatal = reason

    def fatal_reason(self) -> str | None:
        """Why this process must end, if it must: after an I/O error nothing that was cached can be believed."""
        return self._fatal

    def stop(self) -> None:
        """Wake and answer everyone who waits."""
        if not self.stopping:
            self.stopping = True
            for act in self._at_stop:
                act()

    def close(self) -> None:
        """Finish what is committed and let go of the database."""
        self.stop()
        while self._at_close:
            self._at_close.pop(0)()


class Notices(TypedDict):
    """What both surfaces of the handoff need to know of webhooks."""

    public_url: str
    notify_secret: Callable[[str], str]
    webhooks: guard.Policy


def create_app(settings: Settings, *, more_tools: Sequence[Entry] = ()) -> Application:
    """Everything wired for these settings. Opens the database and starts what runs beside requests.

    `more_tools` are served over MCP beside our own: those that the protocol's test suite calls.
    """
    receipts = _receipts(settings)
    app = Application()
    failpoint_file = settings.test_failpoints if settings.test_mode else None
    failpoints = Failpoints(failpoint_file, monkey.get_original("time", "sleep"))
    hub = Hub()
    engine, clock = _open_engine(settings, app, failpoints, hub)
    deadlines = Deadlines(clock, hub, longest_nap_seconds=_TEST_MODE_NAP_SECONDS if settings.test_mode else 1.0)
    seats, lines = Seats(settings.limit_waiters), Lines(hub)
    waiting = Waiting(lines, deadlines, seats, looks_first=not settings.is_sqlite)
    cost = prices(settings.price_once_claim)
    credits = Credits(engine, price=cost[CLAIM], server_key=settings.secret_key.encode()) if cost else None
    leases = Leases(engine, waiting)
    claims = Claims(engine, waiting, strong_names=settings.once_strong_names, credits=credits)
    requests = DailyLimit(engine, clock, "requests", settings.limit_requests_per_day)
    handoffs = _handoffs(settings, engine, clock, hub, deadlines, seats, Failpoints(failpoint_file, gevent.sleep))
    policy = guard.Policy(ports=frozenset(settings.notify_ports), allow=settings.notify_allow)

    pen, tally = Pen(), RequestTally()
    gate = _edge(app, settings, requests, pen, tally)
    app.register_blueprint(reference.blueprint(settings.public_url, cost))
    app.register_blueprint(lease.blueprint(gate, leases))
    notices: Notices = {
        "public_url": settings.public_url,
        "notify_secret": partial(notify_secret, settings.secret_key.encode()),
        "webhooks": policy,
    }
    app.register_blueprint(handoff.blueprint(gate, handoffs, **notices))
    tools = [
        *mcp_lease.tools(leases),
        *mcp_handoff.tools(handoffs, **notices),
        *mcp_claim.tools(claims, receipts, cost),
    ]
    for blueprint in claim.blueprints(gate, claims, receipts):
        app.register_blueprint(blueprint)
    if credits is not None:
        tools += _meter(app, gate, credits)
    mcp = Server([*tools, *more_tools], version=__version__, instructions=INSTRUCTIONS)
    origins = Origins([settings.public_url, *settings.allowed_origins])
    app.register_blueprint(mcp_route.blueprint(gate, mcp, origins))

    people = _people(app, settings, engine)
    front, feeds = _dashboard(app, settings, gate, engine, origins, clock, handoffs, leases, claims, people)
    desk = _desk(hub, clock, deadlines, handoffs, leases, feeds)
    app.register_blueprint(stream.blueprint(app, gate, seats, origins, desk))

    app.on_stop(hub.stop)
    _start_bus(app, settings, engine, hub, lines)
    sweeper = _start_sweeps(app, settings, engine, failpoints)
    sender = _start_webhooks(app, settings, engine, hub, policy)
    _seeing(app, settings, gate, front, engine, hub, seats, handoffs, _Counts(tally, pen, sweeper, sender))
    _open_admin_socket(app, settings, people, sweeper, engine, credits)
    app.on_close(requests.give_back)
    app.on_close(deadlines.stop)
    app.on_close(engine.close)
    return app


def _handoffs(
    settings: Settings,
    engine: Engine,
    clock: Clock,
    hub: Hub,
    deadlines: Deadlines,
    seats: Seats,
    failpoints: Failpoints,
) -> Handoffs:
    return Handoffs(
        engine,
        hub,
        deadlines,
        seats,
        DailyLimit(engine, clock, "handoffs", settings.limit_handoffs_per_day),
        most_live=settings.limit_live_handoffs,
        result_url=partial("{}/services/v1/handoff/{}".format, settings.public_url),
        failpoint=failpoints.at,
    )


def _meter(app: Application, gate: Edge, credits: Credits) -> list[Entry]:
    """The routes of credit, and its tools."""
    for blueprint in credit.blueprints(gate, credits):
        app.register_blueprint(blueprint)
    return mcp_credit.tools(credits)


class _Counts(NamedTuple):
    """What counts on its own account, for the metrics."""

    tally: RequestTally
    pen: Pen
    sweeper: Sweeper
    sender: WebhookSender


def _seeing(
    app: Application,
    settings: Settings,
    gate: Edge,
    front: Gate,
    engine: Engine,
    hub: Hub,
    seats: Seats,
    handoffs: Handoffs,
    counts: _Counts,
) -> None:
    """Health for people and for programs, readiness and metrics."""
    ready = Readiness(engine, settings.data_dir, lambda: app.stopping)
    app.register_blueprint(health.blueprint(ready))
    sources = Sources(
        about={"version": __version__, "engine": "sqlite" if settings.is_sqlite else "postgresql"},
        limits=_limits(settings),
        tally=counts.tally,
        store=engine,
        seats=lambda: seats.taken_for,
        wakes=hub.wakes,
        sweeps=counts.sweeper,
        webhooks=lambda: counts.sender.results,
        webhooks_under_way=counts.sender.under_way,
        log_dropped=lambda: counts.pen.dropped,
        ready=ready.checks,
    )
    app.register_blueprint(metrics.blueprint(gate, sources, workers=settings.workers))
    shown = health_page.Sources(
        checks=ready.checks,
        store=engine.report,
        seats=lambda: seats.taken_for,
        live_handoffs=handoffs.live,
        webhooks_under_way=counts.sender.under_way,
        sweeps=counts.sweeper,
    )
    app.register_blueprint(health_page.blueprint(front, shown))


def _open_admin_socket(
    app: Application, settings: Settings, people: People, sweeper: Sweeper, engine: Engine, credits: Credits | None
) -> None:
    """Where only this process may open the store, the command line asks it."""
    if isinstance(engine, SqliteEngine):
        known = verbs.verbs(people, settings.public_url) | verbs.sweep_verb(sweeper.sweep)
        known |= verbs.backup_verb(engine.backup)
        known |= verbs.credit_verb(credits) if credits is not None else {}
        admin = AdminSocket(settings.data_dir, known)
        app.on_stop(admin.stop)


def _limits(settings: Settings) -> dict[str, float]:
    """The limits in force, for the metrics."""
    return {
        "requests_per_day": settings.limit_requests_per_day,
        "handoffs_per_day": settings.limit_handoffs_per_day,
        "live_handoffs": settings.limit_live_handoffs,
        "waiters": settings.limit_waiters,
    }


def _edge(app: Application, settings: Settings, requests: DailyLimit, pen: Pen, tally: RequestTally) -> Edge:
    seen = traces.wanted(__version__)
    if seen is not None:
        app.on_close(seen.stop)
    edge.install(app, RequestLog(settings.log_format, settings.log_level, pen.write), tally, seen)
    policy = AddressPolicy(settings.limits, settings.trusted_proxies)
    return Edge(requests, policy, body_deadline_seconds=settings.body_deadline_seconds)


def _desk(hub: Hub, clock: Clock, deadlines: Deadlines, handoffs: Handoffs, leases: Leases, feeds: Feeds) -> Desk:
    source = HandoffSource(handoffs)
    return Desk(
        hub=hub,
        clock=clock,
        handoffs=source,
        handoff_board=Board("handoff:", hub, deadlines, source.look),
        lease_board=Board("lease:", hub, deadlines, LeaseSource(leases).look),
        open_feed=feeds.open,
    )


def _dashboard(
    app: Application,
    settings: Settings,
    gate: Edge,
    engine: Engine,
    origins: Origins,
    clock: Clock,
    handoffs: Handoffs,
    leases: Leases,
    claims: Claims,
    people: People,
) -> tuple[Gate, Feeds]:
    front = Gate(settings, gate, people, origins, clock)
    edge.refuse_browsers_with(app, front.nowhere)
    views = Overview(engine)
    app.register_blueprint(
        dashboard.blueprint(
            front,
            views,
            Agendas(engine, handoffs),
            handoffs,
            leases,
            claims,
            Audit(engine),
            Outbox(engine),
        )
    )
    return front, Feeds(people, front.cookie_name("fencepost_session"))


def _people(app: Application, settings: Settings, engine: Engine) -> People:
    """Those who may sign in, and the first link where nobody may yet."""
    passwords = OnAThread()
    app.on_close(passwords.close)
    people = People(engine, passwords)
    first = FirstLink(people, settings.public_url)
    first.start()
    app.on_stop(first.stop)
    return people


def _open_engine(settings: Settings, app: Application, failpoints: Failpoints, hub: Hub) -> tuple[Engine, Clock]:
    """The store, and the clock that timers go by: the one that decides, or the nearest that is known of it."""
    offset = offset_from(settings.test_clock_file if settings.test_mode else None)
    if not settings.is_sqlite:
        from app import shared

        of_database = DatabaseClock(offset)
        return shared.open_engine(settings, of_database, hub), of_database
    clock = SteadyClock(offset)
    sqlite = SqliteEngine(
        settings.sqlite_file,
        clock=clock,
        failpoints=failpoints,
        on_commit=hub.committed,
        on_fatal=app.fail,
        write_deadline_seconds=settings.write_deadline_seconds,
        lock_wait_seconds=5.0,
    )
    return sqlite, clock


def _start_bus(app: Application, settings: Settings, engine: Engine, hub: Hub, lines: Lines) -> None:
    if not settings.is_sqlite:
        from app import shared

        for part in shared.start_bus(settings, engine, hub, lines):
            app.on_close(part.stop)


def _receipts(settings: Settings) -> Receipts:
    file = settings.receipt_key_file
    try:
        text = None if file is None else file.read_text(encoding="utf-8")
        return open_receipts(settings.secret_key.encode("utf-8"), text)
    except KeyFileError as fault:
        raise StartRefused(f"FENCEPOST_RECEIPT_KEY_FILE: {fault}.") from None
    except (OSError, UnicodeDecodeError):
        raise StartRefused(f"FENCEPOST_RECEIPT_KEY_FILE: {file} cannot be read.") from None


def _start_sweeps(app: Application, settings: Settings, engine: Engine, failpoints: Failpoints) -> Sweeper:
    sweeper = Sweeper(Sweep(engine, EVERY_CHORE, failpoints, is_shared=not settings.is_sqlite), settings.sweep_seconds)
    sweeper.start()
    app.on_stop(sweeper.stop)
    return sweeper


def _start_webhooks(
    app: Application, settings: Settings, engine: Engine, hub: Hub, policy: guard.Policy
) -> WebhookSender:
    names = Names()
    webhook = Webhook(policy=policy, lookup=names, server_keys=[settings.secret_key.encode()])
    sender = WebhookSender(Outbox(engine), webhook.send, hub)
    sender.start()
    app.on_close(sender.stop)
    app.on_close(names.close)
    return sender
