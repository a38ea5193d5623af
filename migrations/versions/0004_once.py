"""Once-keys: who owns a namespace, and the newest claim of each action."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "once_namespace",
        sa.Column("namespace_hash", sa.LargeBinary(32), primary_key=True),
        sa.Column("token_hash", sa.LargeBinary(32), nullable=False),
        sa.Column("founded_at", sa.BigInteger, nullable=False),
        sa.Column("last_ended_at", sa.BigInteger, nullable=False),
    )
    op.create_index("ix_once_namespace_last_ended_at", "once_namespace", ["last_ended_at"])
    op.create_table(
        "claim",
        sa.Column("claim_hash", sa.LargeBinary(32), primary_key=True),
        sa.Column("namespace_hash", sa.LargeBinary(32), nullable=False),
        sa.Column("namespace", sa.LargeBinary, nullable=False),
        sa.Column("action_key", sa.LargeBinary, nullable=False),
        sa.Column("claimant_hash", sa.LargeBinary(32), nullable=False),
        sa.Column("fence", sa.BigInteger, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("claimed_at", sa.BigInteger, nullable=False),
        sa.Column("changed_at", sa.BigInteger, nullable=False),
        sa.Column("expires_at", sa.BigInteger, nullable=False),
        sa.Column("lease_expires_at", sa.BigInteger),
        sa.Column("payload_hash", sa.LargeBinary(32)),
        sa.Column("completed_at", sa.BigInteger),
        sa.Column("result", sa.LargeBinary),
        sa.Column("result_hash", sa.LargeBinary(32)),
        sa.Column("conflicts", sa.Integer, nullable=False),
    )
    op.create_index("ix_claim_namespace_hash", "claim", ["namespace_hash"])
    op.create_index("ix_claim_expires_at", "claim", ["expires_at"])


def downgrade() -> None:
    op.drop_index("ix_claim_expires_at", "claim")
    op.drop_index("ix_claim_namespace_hash", "claim")
    op.drop_table("claim")
    op.drop_index("ix_once_namespace_last_ended_at", "once_namespace")
    op.drop_table("once_namespace")
