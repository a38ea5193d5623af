"""Marks by which PostgreSQL tells what became of a commit whose answer was lost: see app/storage/postgres_commit.py."""

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute(
            "CREATE TABLE commit_mark (slot BIGINT PRIMARY KEY, number BIGINT NOT NULL, used_at TIMESTAMPTZ NOT NULL)"
            " WITH (fillfactor = 50)"
        )


def downgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP TABLE commit_mark")
