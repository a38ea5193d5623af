"""What must be so before a PostgreSQL database is served from, and how the epoch rises.

The fences' epoch belongs to one timeline of one cluster. A promoted standby has another timeline, a dump that was
loaded elsewhere another cluster: either may have forgotten the last grants, so the epoch rises by one, under the lock
of its row, before the next fence is drawn (etcd #13766: a counter that went back after a crash).
"""

from typing import Any, cast

import psycopg

from app.settings import StartRefused
from app.storage.migrate import migrate, postgres_engine
from app.storage.postgres_transaction import Anyone
from app.tokens import random_bytes

_TIMELINE = "('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::int"
_OLDEST_SERVER = 140_000


def prepare(url: str, *, allow_weak_durability: bool) -> dict[str, object]:
    """Check the server, migrate, make the first numbers. Returns facts for the report. Raises StartRefused."""
    try:
        with psycopg.connect(url, autocommit=True, prepare_threshold=None, connect_timeout=5) as connection:
            facts = _check(connection, allow_weak_durability=allow_weak_durability)
            migrate(postgres_engine(url))
            _first_numbers(connection)
            raise_epoch(connection)
            return facts
    except psycopg.OperationalError as fault:
        raise StartRefused(
            f"The PostgreSQL database cannot be reached ({type(fault).__name__}). Is the server up, and is "
            "FENCEPOST_DATABASE_URL right?"
        ) from None


def raise_epoch(connection: Anyone) -> None:
    """Raise the epoch by one if the cluster or its timeline is not the one the epoch belongs to."""
    with connection.transaction():
        kept = _numbers(connection, " WHERE name IN ('timeline', 'cluster', 'epoch') ORDER BY name FOR UPDATE")
        now = {"timeline": _one(connection, f"SELECT {_TIMELINE}"), "cluster": _cluster(connection)}
        if all(kept[name] == now[name] for name in now):
            return
        for name, number in {**now, "epoch": kept["epoch"] + 1}.items():
            connection.execute("UPDATE meta SET number = %s WHERE name = %s", (number, name))


def _check(connection: Anyone, *, allow_weak_durability: bool) -> dict[str, object]:
    version = connection.info.server_version
    if version < _OLDEST_SERVER:
        raise StartRefused(f"PostgreSQL 14 or newer is needed; this server is {version // 10_000}.")
    if _word(connection, "SELECT pg_is_in_recovery()::text") == "true":
        raise StartRefused("This PostgreSQL is a replica, which cannot be written to. Point at the primary.")
    weak = [
        f"{name} is {value}"
        for name, accepted in (("fsync", {"on"}), ("synchronous_commit", {"on", "remote_apply", "remote_write"}))
        if (value := _word(connection, f"SHOW {name}")) not in accepted
    ]
    if weak and not allow_weak_durability:
        raise StartRefused(
            f"This PostgreSQL may lose acknowledged commits: {' and '.join(weak)}. Switch them on, or accept it with "
            "FENCEPOST_ALLOW_WEAK_DURABILITY=1."
        )
    durability = f"WEAK: {' and '.join(weak)}" if weak else "fsync, synchronous_commit"
    release = f"{version // 10_000}.{version % 10_000}"
    return {"engine": "postgresql", "version": release, "durability": durability}


def _first_numbers(connection: Anyone) -> None:
    fresh = {
        "epoch": 0,
        "timeline": _one(connection, f"SELECT {_TIMELINE}"),
        "cluster": _cluster(connection),
        "identity": int.from_bytes(random_bytes(8), "big") >> 1,
    }
    for name, number in fresh.items():
        connection.execute("INSERT INTO meta (name, number) VALUES (%s, %s) ON CONFLICT DO NOTHING", (name, number))


def _cluster(connection: Anyone) -> int:
    """The cluster's identifier, given by initdb, as a signed 64-bit number."""
    return _one(connection, "SELECT system_identifier FROM pg_control_system()")


def _numbers(connection: Anyone, condition: str) -> dict[str, int]:
    rows = connection.execute(cast(Any, f"SELECT name, number FROM meta{condition}")).fetchall()
    return {str(name): int(cast(int, number)) for name, number in rows}


def _one(connection: Anyone, query: str) -> int:
    return int(_word(connection, query))


def _word(connection: Anyone, query: str) -> str:
    row = connection.execute(cast(Any, query)).fetchone()
    assert row is not None
    return str(row[0])
