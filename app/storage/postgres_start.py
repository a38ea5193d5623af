"""What must be so before a PostgreSQL database is served from, and how the epoch rises.

The fences' epoch belongs to one table in one timeline of one cluster. A promoted standby has another timeline, a dump
that was loaded elsewhere another cluster, one that was loaded here another table: each may have forgotten the last
grants, so the epoch rises by one, under the lock of its row, before the next fence is drawn (etcd #13766: a counter
that went back after a crash).
"""

from typing import Any, cast

import psycopg
from sqlalchemy.exc import ProgrammingError

from app.settings import StartRefused
from app.storage.migrate import migrate, postgres_engine
from app.storage.postgres_commit import drop_old
from app.storage.postgres_pool import Anyone
from app.tokens import random_bytes

_TIMELINE = "('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::int"
_PLACE_NAMES = ("cluster", "timeline", "table")
_PLACE = f"SELECT system_identifier, {_TIMELINE}, 'meta'::regclass::oid::bigint FROM pg_control_system()"
_PUT = "INSERT INTO meta (name, number) VALUES (%s, %s) ON CONFLICT (name) DO UPDATE SET number = excluded.number"
_OLDEST_SERVER = 140_000


def prepare(url: str, *, allow_weak_durability: bool) -> dict[str, object]:
    """Check the server, migrate, make the first numbers. Returns facts for the report. Raises StartRefused."""
    try:
        with psycopg.connect(url, autocommit=True, prepare_threshold=None, connect_timeout=5) as connection:
            facts = _check(connection, allow_weak_durability=allow_weak_durability)
            migrate(postgres_engine(url))
            _first_numbers(connection)
            raise_epoch(connection)
            drop_old(connection)
            return {**facts, "identity": _numbers(connection, "")["identity"]}
    except psycopg.errors.InsufficientPrivilege as fault:
        raise _not_allowed(fault) from None
    except ProgrammingError as fault:
        if isinstance(fault.orig, psycopg.errors.InsufficientPrivilege):
            raise _not_allowed(fault.orig) from None
        raise
    except psycopg.OperationalError as fault:
        raise StartRefused(
            f"The PostgreSQL database cannot be reached ({type(fault).__name__}). Is the server up, and is "
            "FENCEPOST_DATABASE_URL right?"
        ) from None


def _not_allowed(fault: psycopg.Error) -> StartRefused:
    said = str(fault).splitlines()[0]
    return StartRefused(
        f"The role of FENCEPOST_DATABASE_URL may not do what a start needs: {said}. It must own the tables or be "
        "allowed to create them (GRANT CREATE, USAGE ON SCHEMA public), and call pg_control_system(), "
        "pg_walfile_name(pg_lsn) and pg_current_wal_insert_lsn() (GRANT EXECUTE ON FUNCTION …), by which a failover "
        "is noticed."
    )


def raise_epoch(connection: Anyone) -> None:
    """Raise the epoch by one if this is not the place it belongs to."""
    place = _place(connection)
    if _is_at(_numbers(connection, ""), place):
        return
    with connection.transaction():
        kept = _numbers(connection, " WHERE name = 'epoch' FOR UPDATE")
        if _is_at(_numbers(connection, ""), place):
            return
        for name, number in {**place, "epoch": kept["epoch"] + 1}.items():
            connection.execute(_PUT, (name, number))


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
    if "epoch" in _numbers(connection, ""):
        return
    fresh = {**_place(connection), "epoch": 0, "identity": int.from_bytes(random_bytes(8), "big") >> 1}
    for name, number in fresh.items():
        connection.execute("INSERT INTO meta (name, number) VALUES (%s, %s) ON CONFLICT DO NOTHING", (name, number))


def _place(connection: Anyone) -> dict[str, int]:
    """Where the numbers live: the cluster's identifier, given by initdb; its timeline; the table's number in it."""
    row = connection.execute(cast(Any, _PLACE)).fetchone()
    assert row is not None
    return {name: int(str(number)) for name, number in zip(_PLACE_NAMES, row, strict=True)}


def _is_at(kept: dict[str, int], place: dict[str, int]) -> bool:
    return all(kept.get(name) == number for name, number in place.items())


def _numbers(connection: Anyone, condition: str) -> dict[str, int]:
    rows = connection.execute(cast(Any, f"SELECT name, number FROM meta{condition}")).fetchall()
    return {str(name): int(cast(int, number)) for name, number in rows}


def _word(connection: Anyone, query: str) -> str:
    row = connection.execute(cast(Any, query)).fetchone()
    assert row is not None
    return str(row[0])
