"""Bring a database to the schema of this code, or back.

All steps run in one transaction, so that a start that is killed half way leaves the old schema. Two starts do not
race: on SQLite one process holds the file, on PostgreSQL a row of `migration_lock` is locked first, in that same
transaction (no advisory locks and no session state: it works through a pooler too); who loses the race to make that
table begins again. A schema that this code does
not know was written by a newer release, and is refused.

A new revision is a file `migrations/versions/NNNN_topic.py`, where NNNN is its `revision`, with `down_revision` naming
the one before it. What there is, is read from the file names, and Alembic (which brings Mako and Pygments) is imported
only when there is a step to take: most starts find the schema as it should be and should not pay for it.
"""

from pathlib import Path

from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from app.settings import StartRefused
from app.shipped import folder

_MADE_BY_ANOTHER = ("23505", "42P07", "42710")
"""What PostgreSQL says to `CREATE TABLE IF NOT EXISTS` when another transaction makes that table in this very moment:
a unique violation of its own catalogue, a duplicate table, a duplicate type. The next time it is there."""
NEWEST = "head"
EMPTY = "base"


class SchemaTooNew(StartRefused):
    """The database was written by a newer release."""


def scripts() -> Path:
    """Where the revisions are: inside the installed package, or beside it in a checkout."""
    return folder("migrations")


def sqlite_engine(path: Path) -> Engine:
    """A SQLAlchemy engine for schema work on a file that this process holds; its transactions cover DDL too."""
    engine = create_engine(f"sqlite:///{path}", poolclass=NullPool, connect_args={"isolation_level": None})
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
    return engine


def postgres_engine(url: str) -> Engine:
    """A SQLAlchemy engine for schema work on `postgresql://…`."""
    return create_engine(url.replace("postgresql://", "postgresql+psycopg://", 1), poolclass=NullPool)


def migrate(engine: Engine, target: str = NEWEST) -> list[str]:
    """Go to `target` (a revision, NEWEST or EMPTY); the revisions before and after. Raises SchemaTooNew."""
    try:
        return _migrate(engine, target)
    except DBAPIError as fault:
        if getattr(fault.orig, "sqlstate", None) not in _MADE_BY_ANOTHER:
            raise
    return _migrate(engine, target)


def _migrate(engine: Engine, target: str) -> list[str]:
    with engine.begin() as connection:
        if connection.dialect.name == "postgresql":
            _lock_row(connection)
        before = _revision(connection)
        refuse_newer(before)
        if _index(before) != _index(target):
            _walk(connection, target, is_up=_index(before) < _index(target))
        return [before, _revision(connection)]


def revision_of(engine: Engine) -> str:
    """The revision a database is at; EMPTY when it has none."""
    with engine.connect() as connection:
        return _revision(connection)


def newest_revision() -> str:
    """The revision this code needs."""
    return _chain()[-1]


def _revision(connection: Connection) -> str:
    if not connection.dialect.has_table(connection, "alembic_version"):
        return EMPTY
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar() or EMPTY


def _chain() -> list[str]:
    return [EMPTY, *sorted(file.name.split("_")[0] for file in (scripts() / "versions").glob("[0-9]*_*.py"))]


def _index(revision: str) -> int:
    chain = _chain()
    return len(chain) - 1 if revision == NEWEST else chain.index(revision)


def refuse_newer(revision: str) -> None:
    """Raise SchemaTooNew for a revision that this code does not know."""
    if revision not in _chain():
        raise SchemaTooNew(
            f"The database has schema {revision}, which this release does not know (it knows up to "
            f"{newest_revision()}): it was written by a newer release. Install that one, or restore a backup."
        )


def _walk(connection: Connection, target: str, *, is_up: bool) -> None:
    from alembic import command
    from alembic.config import Config

    configuration = Config()
    configuration.set_main_option("script_location", str(scripts()).replace("%", "%%"))
    configuration.attributes["connection"] = connection
    (command.upgrade if is_up else command.downgrade)(configuration, target)


def _lock_row(connection: Connection) -> None:
    connection.execute(text("CREATE TABLE IF NOT EXISTS migration_lock (id INTEGER PRIMARY KEY)"))
    connection.execute(text("INSERT INTO migration_lock (id) VALUES (1) ON CONFLICT DO NOTHING"))
    connection.execute(text("SELECT id FROM migration_lock WHERE id = 1 FOR UPDATE"))
