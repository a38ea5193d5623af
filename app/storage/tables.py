"""Every table, as SQLAlchemy Core sees it. `migrations/versions` brings a database to this shape.

Text from outside is LargeBinary (UTF-8 bytes), so that a NUL means the same to both databases. Instants are
BigInteger microseconds.
"""

from sqlalchemy import BigInteger, Column, MetaData, String, Table

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# What the store knows about itself: see meta.py for the names.
meta = Table(
    "meta",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("number", BigInteger, nullable=False),
)
