"""The indexes by which claims are listed: unfinished ones by their age, completed ones by their completion."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

_OPEN = sa.text("completed_at IS NULL")
_DONE = sa.text("completed_at IS NOT NULL")


def upgrade() -> None:
    op.create_index("ix_claim_open", "claim", ["claimed_at", "claim_hash"], sqlite_where=_OPEN, postgresql_where=_OPEN)
    op.create_index(
        "ix_claim_completed", "claim", ["completed_at", "claim_hash"], sqlite_where=_DONE, postgresql_where=_DONE
    )


def downgrade() -> None:
    op.drop_index("ix_claim_completed", "claim")
    op.drop_index("ix_claim_open", "claim")
