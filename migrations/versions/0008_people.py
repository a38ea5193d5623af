"""People who sign in to the dashboard, what they did, and the order in which lists show handoffs."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "person",
        sa.Column("name", sa.String(64), primary_key=True),
        sa.Column("role", sa.String(8), nullable=False),
        sa.Column("password", sa.LargeBinary, nullable=False),
        sa.Column("added_at", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "session",
        sa.Column("token_hash", sa.LargeBinary(32), primary_key=True),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("expires_at", sa.BigInteger, nullable=False),
    )
    op.create_index("ix_session_name", "session", ["name"])
    op.create_index("ix_session_expires_at", "session", ["expires_at"])
    op.create_table(
        "sign_in_code",
        sa.Column("code_hash", sa.LargeBinary(32), primary_key=True),
        sa.Column("start_hash", sa.LargeBinary(32), nullable=False),
        sa.Column("expires_at", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "audit",
        sa.Column("at", sa.BigInteger, primary_key=True),
        sa.Column("audit_id", sa.String(32), primary_key=True),
        sa.Column("actor", sa.LargeBinary, nullable=False),
        sa.Column("action", sa.String(32), nullable=False),
        sa.Column("subject", sa.LargeBinary, nullable=False),
        sa.Column("detail", sa.LargeBinary, nullable=False),
    )
    op.create_index("ix_handoff_standing", "handoff", ["ended", "audience", "expires_at", "handoff_id"])
    op.create_index("ix_handoff_state", "handoff", ["state", "ended", "audience", "expires_at", "handoff_id"])


def downgrade() -> None:
    op.drop_index("ix_handoff_state", "handoff")
    op.drop_index("ix_handoff_standing", "handoff")
    for table in ("audit", "sign_in_code", "session", "person"):
        op.drop_table(table)
