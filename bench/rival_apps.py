"""What people write themselves: a lock behind two Flask routes, on Redis or on PostgreSQL.

Both promise what a finished job of ours does: one holder, a fence, and on completion a result for the next caller. The
advisory lock promises only the first, and only while its connection lives: it is the floor. Served by the very process
that serves Fencepost, so what is compared is what happens behind the route.
"""

import json
import os
from collections.abc import Callable
from typing import Any

from gevent import monkey

monkey.patch_all()

import psycopg  # noqa: E402
import redis  # noqa: E402
from flask import Response, request  # noqa: E402
from gevent.queue import Queue  # noqa: E402

from bench.empty import Empty  # noqa: E402

STORE = os.environ.get("BENCH_STORE", "")
Ask = dict[str, Any]
Act = Callable[[Ask], int | None]
"""Does it, and returns the fence (0 where there is none), or None when it was refused."""

_CONNECTIONS = 16
_KEPT_SECONDS = 86_400

_REDIS_ACQUIRE = """
if redis.call('EXISTS', 'result:' .. KEYS[1]) == 1 then return false end
if not redis.call('SET', 'lock:' .. KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return false end
return redis.call('INCR', 'fence')
"""
_REDIS_END = """
if redis.call('GET', 'lock:' .. KEYS[1]) ~= ARGV[1] then return false end
if ARGV[2] ~= '' then redis.call('SET', 'result:' .. KEYS[1], ARGV[2], 'EX', ARGV[3]) end
redis.call('DEL', 'lock:' .. KEYS[1])
return 0
"""

SCHEMA = """
CREATE SEQUENCE IF NOT EXISTS fence;
CREATE TABLE IF NOT EXISTS lock (
    key text PRIMARY KEY, token text, fence bigint NOT NULL, expires timestamptz NOT NULL, result text
)
"""
_ROW_ACQUIRE = """
INSERT INTO lock VALUES (%(key)s, %(token)s, nextval('fence'), clock_timestamp() + %(ttl)s * interval '1 s', NULL)
ON CONFLICT (key) DO UPDATE SET token = excluded.token, fence = excluded.fence, expires = excluded.expires
WHERE lock.expires < clock_timestamp() AND lock.result IS NULL RETURNING fence
"""
_ROW_COMPLETE = (
    "UPDATE lock SET result = %(result)s, token = NULL WHERE key = %(key)s AND token = %(token)s RETURNING 0"
)
_ROW_RELEASE = "DELETE FROM lock WHERE key = %(key)s AND token = %(token)s RETURNING 0"
_ADVISORY_ACQUIRE = "SELECT 0 WHERE pg_try_advisory_lock(hashtextextended(%(key)s, 0))"
_ADVISORY_END = "SELECT 0 WHERE pg_advisory_unlock(hashtextextended(%(key)s, 0))"


def _served(acquire: Act, release: Act, complete: Act) -> Empty:
    app = Empty("rival", static_folder=None, template_folder=None)

    def add(name: str, act: Act) -> None:
        def view() -> Response:
            ask = request.get_json()
            fence = act(ask)
            if fence is None:
                return Response(b'{"ok":false}', 409, mimetype="application/json")
            told = {"ok": True, "fence": fence} | ({"owner_token": ask["owner_token"]} if name == "acquire" else {})
            return Response(json.dumps(told), mimetype="application/json")

        app.add_url_rule(f"/{name}", name, view, methods=["POST"])

    for name, act in (("acquire", acquire), ("release", release), ("complete", complete)):
        add(name, act)
    app.add_url_rule("/healthz", "healthz", lambda: Response(b'{"ok":true}', mimetype="application/json"))
    return app


def on_redis() -> Empty:
    """One script for each call; the server syncs its log before it answers."""
    pool = redis.BlockingConnectionPool.from_url(STORE, max_connections=_CONNECTIONS)
    store: Any = redis.Redis(connection_pool=pool)
    take, end = store.register_script(_REDIS_ACQUIRE), store.register_script(_REDIS_END)

    def ended(ask: Ask, result: str) -> int | None:
        done: int | None = end(keys=[ask["key"]], args=[ask["owner_token"], result, _KEPT_SECONDS])
        return done

    return _served(
        lambda ask: take(keys=[ask["key"]], args=[ask["owner_token"], int(ask["ttl_seconds"] * 1000)]),
        lambda ask: ended(ask, ""),
        lambda ask: ended(ask, json.dumps(ask["result"])),
    )


def on_rows() -> Empty:
    """One statement for each call, each its own durable transaction."""
    ask_database = _statements(_CONNECTIONS)
    return _served(
        lambda ask: ask_database(
            _ROW_ACQUIRE, {"key": ask["key"], "token": ask["owner_token"], "ttl": ask["ttl_seconds"]}
        ),
        lambda ask: ask_database(_ROW_RELEASE, {"key": ask["key"], "token": ask["owner_token"]}),
        lambda ask: ask_database(
            _ROW_COMPLETE, {"key": ask["key"], "token": ask["owner_token"], "result": json.dumps(ask["result"])}
        ),
    )


def on_advisory_locks() -> Empty:
    """A lock in memory: no time limit, no fence, no result. It belongs to a connection, so all share one."""
    ask_database = _statements(1)

    def end(ask: Ask) -> int | None:
        return ask_database(_ADVISORY_END, {"key": ask["key"]})

    return _served(lambda ask: ask_database(_ADVISORY_ACQUIRE, {"key": ask["key"]}), end, end)


def _statements(connections: int) -> Callable[[str, dict[str, Any]], int | None]:
    idle: Queue[psycopg.Connection[Any]] = Queue()
    for _ in range(connections):
        idle.put(psycopg.connect(STORE, autocommit=True))

    def ask(statement: str, values: dict[str, Any]) -> int | None:
        connection = idle.get()
        try:
            row = connection.execute(statement, values).fetchone()
        finally:
            idle.put(connection)
        return None if row is None else int(row[0])

    return ask


def __getattr__(name: str) -> Empty:
    makers = {"redis_application": on_redis, "rows_application": on_rows, "advisory_application": on_advisory_locks}
    if name not in makers:
        raise AttributeError(name)
    return makers[name]()
