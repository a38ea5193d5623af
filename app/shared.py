"""What a server has beside the usual when its store is shared by many processes: PostgreSQL, and the bus between them.

A room of its own so that the embedded engine starts without it: the driver and its dialect take a third of all imports.
"""

import gevent

from app.clock import DatabaseClock
from app.push.bus import Bus, Channel
from app.push.bus_redis import RedisChannel
from app.push.hub import Hub
from app.push.line import Lines
from app.push.recheck import Recheck
from app.settings import Settings
from app.storage.engine import Engine
from app.storage.notify import PostgresChannel
from app.storage.postgres import PostgresEngine
from app.testmode import Failpoints


def open_engine(settings: Settings, clock: DatabaseClock, hub: Hub) -> PostgresEngine:
    """The store, whose commits ring `hub`."""
    return PostgresEngine(
        settings.database_url,
        clock=clock,
        failpoints=Failpoints(settings.test_failpoints if settings.test_mode else None, gevent.sleep),
        on_commit=hub.committed,
        deadline_seconds=settings.write_deadline_seconds,
        connections=settings.postgres_connections,
        allow_weak_durability=settings.allow_weak_durability,
    )


def start_bus(settings: Settings, engine: Engine, hub: Hub, lines: Lines) -> tuple[Bus, Recheck]:
    """Tell the other processes of what is committed here, and hear of theirs. Both parts run until they are stopped."""
    assert isinstance(engine, PostgresEngine)
    bus_url = settings.bus or settings.database_url
    channel: Channel = PostgresChannel(bus_url)
    if not bus_url.startswith("postgres"):
        channel = RedisChannel(bus_url, f"fencepost:{engine.identity}")
    bus = Bus(hub, channel, lambda topic: lines.length(topic) > 0)
    hub.relay(bus.tell)
    recheck = Recheck(engine, hub)
    bus.start()
    recheck.start()
    return bus, recheck
