"""What one operation costs on PostgreSQL: processor time here and in the database, log written, round trips.

`python -m bench.postgres_cost` makes a cluster of its own with the settings of a default installation. The figures go
into bench/scale.py, with the date and the machine.
"""

from gevent import monkey

monkey.patch_all()

import os  # noqa: E402
import time  # noqa: E402
from collections.abc import Callable  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import psycopg  # noqa: E402

from app.clock import DatabaseClock  # noqa: E402
from app.push.deadlines import Deadlines  # noqa: E402
from app.push.hub import Hub  # noqa: E402
from app.push.line import Lines  # noqa: E402
from app.push.seats import Seats  # noqa: E402
from app.services.lease import Leases  # noqa: E402
from app.services.waiting import Waiting  # noqa: E402
from app.storage.postgres import PostgresEngine  # noqa: E402
from tests.real.cluster import Cluster  # noqa: E402
from tests.real.server import children  # noqa: E402

_TIMES = 500
_TICKS = os.sysconf("SC_CLK_TCK")


class Nobody:
    """A caller that stays."""

    def is_open(self) -> bool:
        return True

    def on_hang_up(self, wake: Callable[[], None]) -> Any:
        raise NotImplementedError


def processor_seconds(pids: list[int]) -> float:
    """User and system time of these processes."""
    total = 0
    for pid in pids:
        try:
            words = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
        except FileNotFoundError:  # a vacuum that has ended
            continue
        total += int(words[11]) + int(words[12])
    return total / _TICKS


def measure(name: str, cluster: Cluster, url: str, engine: PostgresEngine, act: Callable[[int], object]) -> None:
    """Run it many times and print what each took."""
    assert cluster.process is not None
    pids = children(cluster.process.pid)
    with psycopg.connect(url, autocommit=True) as asks:
        log_at = "SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn"
        wal, trips, database, here = asks.execute(log_at).fetchone(), engine.trips, processor_seconds(pids), os.times()
        began = time.monotonic()
        for number in range(_TIMES):
            act(number)
        wall, now = time.monotonic() - began, os.times()
        written = int(asks.execute(log_at).fetchone()[0]) - int(wal[0])  # type: ignore[index]
    ours = now.user + now.system - here.user - here.system
    theirs = processor_seconds(pids) - database
    print(
        f"{name:20} trips {(engine.trips - trips) / _TIMES:.1f}  server {ours / _TIMES * 1e3:.2f} ms  database "
        f"{theirs / _TIMES * 1e3:.2f} ms  log {written / _TIMES:.0f} bytes  wall {wall / _TIMES * 1e3:.1f} ms"
    )


def main() -> None:
    """Measure and print."""
    cluster = Cluster()
    url, clock, hub = cluster.database(), DatabaseClock(), Hub()
    engine = PostgresEngine(url, clock=clock, deadline_seconds=30.0)
    leases = Leases(engine, Waiting(Lines(hub), Deadlines(clock, hub), Seats(10), looks_first=True))
    owners: dict[int, str] = {}

    def key(number: int) -> dict[str, Any]:
        return {"key": f"{number:05}-abcdefghijklmnopqrstuvwxyz0123456789", "namespace": None}

    def acquire(number: int) -> None:
        members: dict[str, Any] = {"fingerprint": None, "owner_token": None, "wait_seconds": 0, "holder": None}
        owners.setdefault(
            number, leases.acquire(**key(number), **members, ttl_seconds=600, caller=Nobody()).owner_token
        )

    try:
        acquire(_TIMES)
        measure("acquire, granted", cluster, url, engine, acquire)
        measure("acquire, refused", cluster, url, engine, acquire)
        measure("renew", cluster, url, engine, lambda n: leases.renew(**key(n), owner_token=owners[n], ttl_seconds=600))
        measure("lease status", cluster, url, engine, lambda n: leases.status(**key(n)))
        measure("release", cluster, url, engine, lambda n: leases.release(**key(n), owner_token=owners[n]))
    finally:
        engine.close()
        cluster.close()


if __name__ == "__main__":
    main()
