"""Every table, as SQLAlchemy Core sees it. `migrations/versions` brings a database to this shape.

Text from outside is LargeBinary (UTF-8 bytes), so that a NUL means the same to both databases. Instants are
BigInteger microseconds.
"""

from sqlalchemy import BigInteger, Column, Integer, LargeBinary, MetaData, String, Table

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

# One key's lifecycle, found by its digest: see core/lease.py for the words. `fence` is 0 in a row that only holds a
# place for the lock. The index serves the sweep; its column never changes within a lifecycle.
lease = Table(
    "lease",
    metadata,
    Column("key_hash", LargeBinary(32), primary_key=True),
    Column("fingerprint_hash", LargeBinary(32)),
    Column("owner_hash", LargeBinary(32)),
    Column("fence", BigInteger, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("ttl_seconds", Integer, nullable=False),
    Column("granted_at", BigInteger, nullable=False),
    Column("lease_expires_at", BigInteger, nullable=False),
    Column("absolute_expires_at", BigInteger, nullable=False, index=True),
    Column("holder", LargeBinary),
    Column("completed_at", BigInteger),
    Column("result", LargeBinary),
    Column("spent_hash", LargeBinary(32)),
    Column("spent_how", String(16)),
    Column("cause", String(16), nullable=False),
)

# How much of a day's allowance an address has used or reserved: see core/limits.py.
daily_count = Table(
    "daily_count",
    metadata,
    Column("counter_hash", LargeBinary(32), primary_key=True),
    Column("day", Integer, primary_key=True),
    Column("used", Integer, nullable=False),
)
