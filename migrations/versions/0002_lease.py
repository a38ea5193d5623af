"""Leases, and the daily counters per address."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "lease",
        sa.Column("key_hash", sa.LargeBinary(32), primary_key=True),
        sa.Column("fingerprint_hash", sa.LargeBinary(32)),
        sa.Column("owner_hash", sa.LargeBinary(32)),
        sa.Column("fence", sa.BigInteger, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("ttl_seconds", sa.Integer, nullable=False),
        sa.Column("granted_at", sa.BigInteger, nullable=False),
        sa.Column("lease_expires_at", sa.BigInteger, nullable=False),
        sa.Column("absolute_expires_at", sa.BigInteger, nullable=False),
        sa.Column("holder", sa.LargeBinary),
        sa.Column("completed_at", sa.BigInteger),
        sa.Column("result", sa.LargeBinary),
        sa.Column("spent_hash", sa.LargeBinary(32)),
        sa.Column("spent_how", sa.String(16)),
        sa.Column("cause", sa.String(16), nullable=False),
    )
    op.create_index("ix_lease_absolute_expires_at", "lease", ["absolute_expires_at"])
    op.create_table(
        "daily_count",
        sa.Column("counter_hash", sa.LargeBinary(32), primary_key=True),
        sa.Column("day", sa.Integer, primary_key=True),
        sa.Column("used", sa.Integer, nullable=False),
    )


def downgrade() -> None:
    op.drop_table("daily_count")
    op.drop_index("ix_lease_absolute_expires_at", "lease")
    op.drop_table("lease")
