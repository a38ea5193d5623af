"""A full disk refuses writes and nothing else; when space returns, so do they."""

import gevent
import pytest
from sqlalchemy import bindparam, insert, text

from app.storage.engine import Transaction, Unavailable
from app.storage.statement import Statement
from app.storage.tables import meta
from tests.storage import shelf
from tests.storage.shelf import Open

_cap = Statement(text("PRAGMA max_page_count = 20"))
_lift = Statement(text("PRAGMA max_page_count = 100000"))
_put = Statement(insert(meta).values(name=bindparam("named"), number=1))


def _fill(tx: Transaction) -> None:
    for n in range(50):
        tx.execute(_put, named=f"shelf.{n}" + "x" * 4000)


def test_a_full_disk_answers_no_and_recovers_when_space_returns(open_engine: Open) -> None:
    engine = open_engine()
    engine.run(lambda tx: shelf.put(tx, "before"))
    engine.run(lambda tx: tx.all(_cap))
    calls = [shelf.putting(engine, "with it"), shelf.calling(engine, _fill)]
    gevent.joinall(calls)
    for call in calls:
        assert isinstance(call.exception, Unavailable)
        assert call.exception.committed == "no"
    assert shelf.names(engine) == ["before"]
    assert engine.report()["problems"] == []
    engine.run(lambda tx: shelf.put(tx, "small enough"))
    with pytest.raises(Unavailable, match="full"):
        engine.run(_fill)
    engine.run(lambda tx: tx.all(_lift))
    engine.run(_fill)
    assert len(shelf.names(engine)) == 52
