"""The indexes of what needs a person: notices by their ending and those that fail, and what was decided last."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

_FAILING = sa.text("CASE WHEN ending IS NULL THEN tries > 0 ELSE ending <> 'delivered' END")
_DECIDED = sa.text("audience = 'person' AND version > 1")


def upgrade() -> None:
    op.create_index("ix_outbox_ending", "outbox", ["ending", "expires_at", "handoff_id", "version"])
    op.create_index(
        "ix_outbox_failing",
        "outbox",
        ["expires_at", "handoff_id", "version"],
        sqlite_where=_FAILING,
        postgresql_where=_FAILING,
    )
    op.create_index(
        "ix_handoff_decided",
        "handoff",
        ["changed_at", "handoff_id"],
        sqlite_where=_DECIDED,
        postgresql_where=_DECIDED,
    )


def downgrade() -> None:
    op.drop_index("ix_handoff_decided", "handoff")
    op.drop_index("ix_outbox_failing", "outbox")
    op.drop_index("ix_outbox_ending", "outbox")
