"""What the store knows about itself."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "meta",
        sa.Column("name", sa.String(64), primary_key=True),
        sa.Column("number", sa.BigInteger, nullable=False),
    )


def downgrade() -> None:
    op.drop_table("meta")
