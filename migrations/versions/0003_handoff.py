"""Handoffs and their histories."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "handoff",
        sa.Column("handoff_id", sa.String(32), primary_key=True),
        sa.Column("owner_hash", sa.LargeBinary(32), nullable=False),
        sa.Column("receiver_hash", sa.LargeBinary(32), nullable=False),
        sa.Column("creation_hash", sa.LargeBinary(32)),
        sa.Column("machine", sa.LargeBinary, nullable=False),
        sa.Column("payload", sa.LargeBinary, nullable=False),
        sa.Column("title", sa.LargeBinary),
        sa.Column("audience", sa.String(8), nullable=False),
        sa.Column("notify_url", sa.LargeBinary),
        sa.Column("ttl_seconds", sa.Integer, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("expires_at", sa.BigInteger, nullable=False),
        sa.Column("removable_at", sa.BigInteger, nullable=False),
        sa.Column("state", sa.String(32), nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("ended", sa.Integer, nullable=False),
        sa.Column("changed_at", sa.BigInteger, nullable=False),
    )
    op.create_index("uq_handoff_creation_hash", "handoff", ["creation_hash"], unique=True)
    op.create_index("ix_handoff_expires_at", "handoff", ["expires_at"])
    op.create_index("ix_handoff_removable_at", "handoff", ["removable_at"])
    op.create_table(
        "handoff_history",
        sa.Column("handoff_id", sa.String(32), primary_key=True),
        sa.Column("version", sa.Integer, primary_key=True),
        sa.Column("state", sa.String(32), nullable=False),
        sa.Column("previous", sa.String(32)),
        sa.Column("mover", sa.String(8), nullable=False),
        sa.Column("actor", sa.LargeBinary),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("note", sa.LargeBinary),
        sa.Column("nonce", sa.String(64)),
    )


def downgrade() -> None:
    op.drop_table("handoff_history")
    op.drop_index("ix_handoff_removable_at", "handoff")
    op.drop_index("ix_handoff_expires_at", "handoff")
    op.drop_index("uq_handoff_creation_hash", "handoff")
    op.drop_table("handoff")
