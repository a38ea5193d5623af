"""The lists of the dashboard read an index from their place on, and never sort: a million rows cost nothing more."""

import sqlite3
from pathlib import Path

import pytest

from app.storage import migrate, overview, overview_claim, overview_lease, overview_outbox

LISTS = {
    "held leases": overview_lease._HELD,
    "ended leases": overview_lease._ENDED,
    "lapsed leases": overview_lease._LAPSED,
    "unfinished claims": overview_claim._OPEN,
    "completed claims": overview_claim._COMPLETED,
    "last decided": overview._DECIDED,
    **{f"{kind} notices": statement for kind, statement in overview_outbox._RANGES.items()},
    **{f"handoffs {kind}": statement for kind, statement in overview._RANGES.items()},
}


@pytest.mark.parametrize("name", LISTS)
def test_a_list_reads_an_index_in_its_order(tmp_path: Path, name: str) -> None:
    file = tmp_path / "a.db"
    migrate.migrate(migrate.sqlite_engine(file))
    text = LISTS[name].text("sqlite")
    database = sqlite3.connect(file)
    plan = [row[3] for row in database.execute("EXPLAIN QUERY PLAN " + text, [None] * text.count("?"))]
    database.close()
    assert any("USING INDEX" in step or "USING COVERING INDEX" in step for step in plan), plan
    # Equal ends may be put in order by themselves ("for right part"), all rows never.
    assert not any("TEMP B-TREE FOR ORDER BY" in step or "MULTI-INDEX" in step for step in plan), plan
