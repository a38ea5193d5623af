"""A database with very many rows of each kind, written in one go: what a list page costs then.

python -m tests.real.crowded ROWS       prints the milliseconds of each page, in JSON
"""

import json
import sqlite3
import sys
import time
from pathlib import Path

from tests.real.api import Api
from tests.real.people import Person, add_person, sign_in, visit
from tests.real.server import RunningServer

PAGES = {
    "/": 0,
    "/handoffs": 50,
    "/handoffs?show=all": 50,
    "/handoffs?show=ended": 50,
    "/handoffs?show=expired": 50,
    "/handoffs?for=person&state=s1": 50,
    "/leases": 100,
    "/leases?show=ended": 100,
    "/claims": 100,
    "/claims?show=completed": 100,
    "/deliveries": 100,
    "/deliveries?show=waiting": 100,
    "/deliveries?show=delivered": 100,
    "/audit": 100,
}
"""Each list page, and how many rows it shows."""
_SECOND, _DAY = 1_000_000, 86_400_000_000
_MACHINE = (
    '{"states":["s0","s1","s2"],"final":["s2"],"transitions":{"s0":["s1","s2"],"s1":["s2"],"s2":[]},"permissions":{}}'
)
_NUMBERS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :rows) "
_FILL = {
    # A third is open, a third ended, a third expired; each hundredth is for a person.
    "handoff": """printf('%032x', i), randomblob(32), randomblob(32), NULL, :machine, x'31', NULL,
        CASE i % 100 WHEN 0 THEN 'person' ELSE 'agent' END, NULL, 86400, :now - :day,
        CASE i % 3 WHEN 2 THEN :now - i ELSE :now + :day - i END, :now + :day,
        CASE i % 3 WHEN 1 THEN 's2' ELSE 's1' END, 2, i % 3 = 1, :now - i""",
    "handoff_history": """printf('%032x', i), 2, 's1', 's0', 'owner', NULL, :now, NULL, NULL""",
    # Half are held; of the others half lapsed and half were released.
    "lease": """randomblob(32), NULL, CASE WHEN i % 4 = 3 THEN NULL ELSE randomblob(32) END, 1000 + i, 1, 60, :now - 1,
        CASE i % 4 WHEN 2 THEN :now - i ELSE :now + :day / 2 + i END, :now + :day / 2 + i, x'68', NULL, NULL, NULL,
        CASE i % 4 WHEN 3 THEN 'released' END, 'granted'""",
    "claim": """randomblob(32), zeroblob(32), x'63', CAST('action-' || i AS BLOB), randomblob(32), 1000 + i, 1,
        :now - i, :now - i, :now + :day, NULL, NULL, CASE i % 2 WHEN 0 THEN :now - i END, NULL, NULL, 0""",
    "outbox": """printf('%032x', i), 2, CAST('http://r.example/' || i AS BLOB), CAST('r' || i % 50 AS BLOB), x'7b7d',
        :now + :day, CASE i % 3 WHEN 0 THEN 0 ELSE 5 END, CASE i % 3 WHEN 0 THEN :now + :day END, 0,
        CASE i % 3 WHEN 1 THEN 'delivered' WHEN 2 THEN 'exhausted' END, '500', :now - i""",
    "audit": """:now - i, printf('%032x', i), x'61', 'handoff.move', x'62', x'63'""",
}

_BEGINNINGS = "printf('%032x', i), 1, 's0', NULL, 'owner', NULL, :now - :day, NULL, NULL"


def fill(file: Path, rows: int) -> None:
    """So many rows of each kind."""
    now = time.time_ns() // 1_000
    with sqlite3.connect(file) as database:
        for table, values in [*_FILL.items(), ("handoff_history", _BEGINNINGS)]:
            statement = f"{_NUMBERS}INSERT INTO {table} SELECT {values} FROM n"
            database.execute(statement, {"rows": rows, "now": now, "day": _DAY, "machine": _MACHINE.encode()})
    database.close()


def crowd(server: RunningServer, rows: int) -> None:
    """Fill the database of a server, which is stopped meanwhile."""
    server.terminate()
    fill(server.data_dir / "fencepost.db", rows)
    server.start()


def milliseconds(api: Api, person: Person, path: str, *, times: int = 5) -> tuple[float, int]:
    """The median time of a page, and how many rows it shows."""
    taken: list[float] = []
    for _ in range(times):
        began = time.perf_counter()
        answer = visit(api, person, path)
        taken.append((time.perf_counter() - began) * 1_000)
        assert answer.status == 200, (path, answer.status)
    return sorted(taken)[times // 2], answer.raw.count(b"<tr data-key=") or answer.raw.count(b"<tr><td>")


def measure(rows: int) -> dict[str, float]:
    """The median milliseconds of each page among so many rows of each kind."""
    with RunningServer(environment={"FENCEPOST_SWEEP_SECONDS": "86400"}) as server:
        assert add_person(server, "ann", "correct horse battery").returncode == 0
        crowd(server, rows)
        with Api(server.port) as api:
            person = sign_in(api, "ann", "correct horse battery")
            found = {}
            for path, expected in PAGES.items():
                took, shown = milliseconds(api, person, path)
                assert shown >= expected, (path, shown)
                found[path] = round(took, 1)
            return found


if __name__ == "__main__":
    json.dump(measure(int(sys.argv[1])), sys.stdout, indent=1)
