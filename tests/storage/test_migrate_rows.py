"""Down step by step and up again with a row in every table, on both engines: what a step does not concern is kept."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import DateTime, Engine, LargeBinary, MetaData, String, Table, insert, select
from sqlalchemy.types import TypeEngine

from app.storage import migrate
from tests.real.cluster import shared_cluster

Rows = dict[str, dict[str, Any]]


def sqlite(folder: Path) -> Engine:
    return migrate.sqlite_engine(folder / "a.db")


def postgres(_: Path) -> Engine:
    return migrate.postgres_engine(shared_cluster().database())


def tables(engine: Engine) -> list[Table]:
    found = MetaData()
    found.reflect(engine)
    return [table for name, table in found.tables.items() if name not in ("alembic_version", "migration_lock")]


def _value(kind: TypeEngine[Any]) -> object:
    match kind:
        case String():
            return "a"
        case LargeBinary():
            return b"a\x00b"
        case DateTime():
            return datetime(2026, 1, 1, tzinfo=UTC)
        case _:
            return 7


def fill(engine: Engine) -> None:
    """One row in every table."""
    found = tables(engine)
    with engine.begin() as connection:
        for table in found:
            values = {column.name: _value(column.type) for column in table.columns}
            connection.execute(insert(table).values(**values))


def rows(engine: Engine) -> Rows:
    known = tables(engine)
    with engine.connect() as connection:
        found = {table.name: connection.execute(select(table)).mappings().first() for table in known}
    return {name: dict(row) for name, row in found.items() if row is not None}


def changed(before: Rows, after: Rows) -> list[str]:
    """Values that are in both and differ, and rows of kept tables that are gone."""
    return [
        f"{name}.{column}"
        for name, row in before.items()
        if name in after
        for column, value in row.items()
        if column in after[name] and after[name][column] != value
    ]


@pytest.mark.parametrize("make", [sqlite, postgres])
def test_rows_outlive_the_way_down_and_up_where_their_table_does(
    make: Callable[[Path], Engine], tmp_path: Path
) -> None:
    engine = make(tmp_path)
    migrate.migrate(engine)
    chain = migrate._chain()
    fill(engine)
    for below in reversed(chain[:-1]):
        before = rows(engine)
        migrate.migrate(engine, below)
        after = rows(engine)
        kept = {table.name for table in tables(engine)}
        assert sorted(kept & set(before)) == sorted(after), below
        assert changed(before, after) == [], below
    assert migrate.migrate(engine) == [migrate.EMPTY, chain[-1]]
    fill(engine)
    before = rows(engine)
    migrate.migrate(engine, chain[-2])
    migrate.migrate(engine)
    after = rows(engine)
    assert changed({name: row for name, row in before.items() if name in after}, after) == []
    engine.dispose()
