"""The counter of fences on PostgreSQL, where many processes draw from it. SQLite keeps its count in `meta`."""

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute("CREATE SEQUENCE fence_count MINVALUE 1 MAXVALUE 1099511627775 NO CYCLE CACHE 1")


def downgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP SEQUENCE fence_count")
