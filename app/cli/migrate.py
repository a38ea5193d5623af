"""`fencepost-server migrate`: the schema to this release, without serving. A server does the same when it starts."""

from app.settings import Settings
from app.storage.migrate import migrate, postgres_engine, sqlite_engine
from app.storage.sqlite_custody import inspect, leave
from app.storage.sqlite_file import FileLock, connect_writer, refuse_network_filesystem


def migrate_database(settings: Settings) -> tuple[str, str]:
    """The revisions before and after. Raises StartRefused where a server holds the file or the schema is newer."""
    if not settings.is_sqlite:
        before, after = migrate(postgres_engine(settings.database_url))
        return before, after
    refuse_network_filesystem(settings.sqlite_file.parent)
    lock = FileLock(settings.sqlite_file)
    try:
        inspect(settings.sqlite_file, lock.note)
        connection = connect_writer(settings.sqlite_file)  # held meanwhile, so that the log does not go before its time
        try:
            before, after = migrate(sqlite_engine(settings.sqlite_file))
            settings.sqlite_file.chmod(0o600)
        finally:
            leave(connection)
            connection.close()
    finally:
        lock.release()
    return before, after
