"""The accounts of credit tokens. Empty for ever where no call has a price."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "credit_account",
        sa.Column("account_hash", sa.LargeBinary(32), primary_key=True),
        sa.Column("granted", sa.BigInteger, nullable=False),
        sa.Column("spent", sa.BigInteger, nullable=False),
        sa.Column("calls", sa.BigInteger, nullable=False),
    )


def downgrade() -> None:
    op.drop_table("credit_account")
