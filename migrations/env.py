"""Alembic's entry. The connection comes from app/storage/migrate.py, which also holds the lock."""

from alembic import context

from app.storage.tables import metadata

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=metadata, render_as_batch=True)
with context.begin_transaction():
    context.run_migrations()
