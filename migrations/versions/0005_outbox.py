"""Notices to be sent."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "outbox",
        sa.Column("handoff_id", sa.String(32), primary_key=True),
        sa.Column("version", sa.Integer, primary_key=True),
        sa.Column("url", sa.LargeBinary, nullable=False),
        sa.Column("receiver", sa.LargeBinary, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.Column("expires_at", sa.BigInteger, nullable=False),
        sa.Column("tries", sa.Integer, nullable=False),
        sa.Column("due_at", sa.BigInteger),
        sa.Column("claimed_until", sa.BigInteger, nullable=False),
        sa.Column("ending", sa.String(16)),
        sa.Column("result", sa.String(16)),
        sa.Column("tried_at", sa.BigInteger),
    )
    op.create_index("ix_outbox_expires_at", "outbox", ["expires_at"])
    op.create_index("ix_outbox_due_at", "outbox", ["due_at"])


def downgrade() -> None:
    op.drop_index("ix_outbox_due_at", "outbox")
    op.drop_index("ix_outbox_expires_at", "outbox")
    op.drop_table("outbox")
