"""Forward, back and forward again; never past what the code knows."""

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, inspect, text

from app.storage import migrate
from app.storage.sqlite import SqliteEngine
from app.storage.tables import metadata
from tests.real.cluster import shared_cluster
from tests.storage.shelf import Open

ROOT = Path(__file__).resolve().parents[2]


def test_a_database_goes_up_down_and_up_again(tmp_path: Path) -> None:
    engine = migrate.sqlite_engine(tmp_path / "a.db")
    newest = migrate.newest_revision()
    assert migrate.migrate(engine) == [migrate.EMPTY, newest]
    assert migrate.migrate(engine) == [newest, newest]
    assert migrate.migrate(engine, migrate.EMPTY) == [newest, migrate.EMPTY]
    assert inspect(engine).get_table_names() == ["alembic_version"]
    assert migrate.migrate(engine) == [migrate.EMPTY, newest]


@pytest.mark.postgres
def test_a_start_that_meets_another_on_an_empty_database_waits_for_it() -> None:
    engine = migrate.postgres_engine(shared_cluster().database())
    with ThreadPoolExecutor(1) as beside:
        with engine.begin() as other:
            other.execute(text("CREATE TABLE migration_lock (id INTEGER PRIMARY KEY)"))
            start = beside.submit(migrate.migrate, engine)
            await_blocked(engine)
        assert start.result(60) == [migrate.EMPTY, migrate.newest_revision()]


def await_blocked(engine: Engine) -> None:
    """Until somebody in this database waits for another's transaction."""
    database = "datname = current_database() AND wait_event_type = 'Lock'"
    query = text(f"SELECT count(*) FROM pg_sleep(0.02), pg_stat_activity WHERE {database}")
    deadline = time.monotonic() + 30
    count = 0
    while not count:
        assert time.monotonic() < deadline, "nobody waits"
        with engine.connect() as connection:
            count = connection.execute(query).scalar() or 0


def test_each_revision_can_be_undone_alone(tmp_path: Path) -> None:
    engine = migrate.sqlite_engine(tmp_path / "a.db")
    chain = [script.revision for script in ScriptDirectory(str(migrate.scripts())).walk_revisions()][::-1]
    for below, revision in zip([migrate.EMPTY, *chain], chain, strict=False):
        assert migrate.migrate(engine, revision) == [below, revision]
        assert migrate.migrate(engine, below) == [revision, below]
        assert migrate.migrate(engine, revision) == [below, revision]


def test_the_file_names_are_the_revisions_in_their_order() -> None:
    chain = [script.revision for script in ScriptDirectory(str(migrate.scripts())).walk_revisions()][::-1]
    files = sorted(file.name for file in (migrate.scripts() / "versions").glob("*.py"))
    assert [name.split("_")[0] for name in files] == chain


def test_a_start_that_finds_the_schema_as_it_should_be_does_not_import_alembic(tmp_path: Path) -> None:
    migrate.migrate(migrate.sqlite_engine(tmp_path / "a.db"))
    program = (
        "import sys; from pathlib import Path; from app.storage import migrate; "
        f"migrate.migrate(migrate.sqlite_engine(Path({str(tmp_path / 'a.db')!r}))); "
        "sys.exit('alembic' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False).returncode == 0


def test_the_revisions_end_in_what_the_tables_say(tmp_path: Path) -> None:
    engine = migrate.sqlite_engine(tmp_path / "a.db")
    migrate.migrate(engine)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []


def test_a_schema_of_a_newer_release_is_refused_and_left_alone(tmp_path: Path, open_engine: Open) -> None:
    file = tmp_path / "fencepost.db"
    engine = migrate.sqlite_engine(file)
    migrate.migrate(engine)
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(migrate.SchemaTooNew, match="schema 9999, which this release does not know"):
        open_engine()
    assert migrate.revision_of(engine) == "9999"


def test_a_step_that_fails_leaves_the_old_schema(tmp_path: Path) -> None:
    engine = migrate.sqlite_engine(tmp_path / "a.db")
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE meta (something INTEGER)"))
    with pytest.raises(Exception, match="already exists"):
        migrate.migrate(engine)
    assert migrate.revision_of(engine) == migrate.EMPTY
    assert inspect(engine).get_table_names() == ["meta"]


def test_the_engine_migrates_when_it_opens(tmp_path: Path, open_engine: Open) -> None:
    engine = open_engine(tmp_path / "deeper" / "fencepost.db")
    assert isinstance(engine, SqliteEngine)
    assert migrate.revision_of(migrate.sqlite_engine(tmp_path / "deeper" / "fencepost.db")) == migrate.newest_revision()
