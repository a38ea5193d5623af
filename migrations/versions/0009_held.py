"""The index by which live leases are listed. Only held rows are in it, so a released or completed one costs nothing."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

_HELD = sa.text("owner_hash IS NOT NULL")


def upgrade() -> None:
    op.create_index(
        "ix_lease_held", "lease", ["lease_expires_at", "key_hash"], sqlite_where=_HELD, postgresql_where=_HELD
    )


def downgrade() -> None:
    op.drop_index("ix_lease_held", "lease")
