"""Every table, as SQLAlchemy Core sees it. `migrations/versions` brings a database to this shape.

Text from outside is LargeBinary (UTF-8 bytes), so that a NUL means the same to both databases. Instants are
BigInteger microseconds.
"""

from sqlalchemy import BigInteger, Column, Index, Integer, LargeBinary, MetaData, String, Table, text

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

# Live ones in the order of their ends, for the page that shows them; a row that nobody holds is not in it.
Index(
    "ix_lease_held",
    lease.c.lease_expires_at,
    lease.c.key_hash,
    sqlite_where=lease.c.owner_hash.is_not(None),
    postgresql_where=lease.c.owner_hash.is_not(None),
)

# How much of a day's allowance an address has used or reserved: see core/limits.py.
daily_count = Table(
    "daily_count",
    metadata,
    Column("counter_hash", LargeBinary(32), primary_key=True),
    Column("day", Integer, primary_key=True),
    Column("used", Integer, nullable=False),
)

# A handoff, written once but for its standing (`state`, `version`, `ended`, `changed_at`), which repeats the last line
# of its history for lists. `creation_hash` digests the creator's nonce. A row is kept for as long as either the
# handoff or the nonce lives: `removable_at`.
handoff = Table(
    "handoff",
    metadata,
    Column("handoff_id", String(32), primary_key=True),
    Column("owner_hash", LargeBinary(32), nullable=False),
    Column("receiver_hash", LargeBinary(32), nullable=False),
    Column("creation_hash", LargeBinary(32)),
    Column("machine", LargeBinary, nullable=False),
    Column("payload", LargeBinary, nullable=False),
    Column("title", LargeBinary),
    Column("audience", String(8), nullable=False),
    Column("notify_url", LargeBinary),
    Column("ttl_seconds", Integer, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False, index=True),
    Column("removable_at", BigInteger, nullable=False, index=True),
    Column("state", String(32), nullable=False),
    Column("version", Integer, nullable=False),
    Column("ended", Integer, nullable=False),
    Column("changed_at", BigInteger, nullable=False),
    Index("uq_handoff_creation_hash", "creation_hash", unique=True),
    # Two for the dashboard's list, which merges ranges of them: see overview.py.
    Index("ix_handoff_standing", "ended", "audience", "expires_at", "handoff_id"),
    Index("ix_handoff_state", "state", "ended", "audience", "expires_at", "handoff_id"),
)

# What people were asked and has moved, for the page that says what was decided last. SQLite takes a partial index only
# for a query that says its condition word by word, so it is spelled here.
DECIDED = text("audience = 'person' AND version > 1")
Index("ix_handoff_decided", handoff.c.changed_at, handoff.c.handoff_id, sqlite_where=DECIDED, postgresql_where=DECIDED)

# The lines of a handoff's history, only ever added. `mover` is who; `nonce` is the mover's, for a move sent again.
handoff_history = Table(
    "handoff_history",
    metadata,
    Column("handoff_id", String(32), primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("state", String(32), nullable=False),
    Column("previous", String(32)),
    Column("mover", String(8), nullable=False),
    Column("actor", LargeBinary),
    Column("at", BigInteger, nullable=False),
    Column("note", LargeBinary),
    Column("nonce", String(64)),
)

# Who owns a once-key namespace. The name itself stands beside each claim.
once_namespace = Table(
    "once_namespace",
    metadata,
    Column("namespace_hash", LargeBinary(32), primary_key=True),
    Column("token_hash", LargeBinary(32), nullable=False),
    Column("founded_at", BigInteger, nullable=False),
    Column("last_ended_at", BigInteger, nullable=False, index=True),
)

# The newest claim of each action; `namespace` and `action_key` are for those who look at it.
claim = Table(
    "claim",
    metadata,
    Column("claim_hash", LargeBinary(32), primary_key=True),
    Column("namespace_hash", LargeBinary(32), nullable=False, index=True),
    Column("namespace", LargeBinary, nullable=False),
    Column("action_key", LargeBinary, nullable=False),
    Column("claimant_hash", LargeBinary(32), nullable=False),
    Column("fence", BigInteger, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("claimed_at", BigInteger, nullable=False),
    Column("changed_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False, index=True),
    Column("lease_expires_at", BigInteger),
    Column("payload_hash", LargeBinary(32)),
    Column("completed_at", BigInteger),
    Column("result", LargeBinary),
    Column("result_hash", LargeBinary(32)),
    Column("conflicts", Integer, nullable=False),
)

# The lists of the page: unfinished claims by their age, completed ones by their completion.
Index(
    "ix_claim_open",
    claim.c.claimed_at,
    claim.c.claim_hash,
    sqlite_where=claim.c.completed_at.is_(None),
    postgresql_where=claim.c.completed_at.is_(None),
)
Index(
    "ix_claim_completed",
    claim.c.completed_at,
    claim.c.claim_hash,
    sqlite_where=claim.c.completed_at.is_not(None),
    postgresql_where=claim.c.completed_at.is_not(None),
)


# A notice about one move: see core/outbox.py. `due_at` is null once it is over, so that its index holds only what is
# still to be sent. `receiver` is for fairness between receivers.
outbox = Table(
    "outbox",
    metadata,
    Column("handoff_id", String(32), primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("url", LargeBinary, nullable=False),
    Column("receiver", LargeBinary, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("expires_at", BigInteger, nullable=False, index=True),
    Column("tries", Integer, nullable=False),
    Column("due_at", BigInteger, index=True),
    Column("claimed_until", BigInteger, nullable=False),
    Column("ending", String(16)),
    Column("result", String(16)),
    Column("tried_at", BigInteger),
    Index("ix_outbox_ending", "ending", "expires_at", "handoff_id", "version"),
)

# Notices that were tried in vain or given up. An OR here would be taken apart by SQLite, and the index left aside.
FAILING = text("CASE WHEN ending IS NULL THEN tries > 0 ELSE ending <> 'delivered' END")
Index(
    "ix_outbox_failing",
    outbox.c.expires_at,
    outbox.c.handoff_id,
    outbox.c.version,
    sqlite_where=FAILING,
    postgresql_where=FAILING,
)

# Who may sign in to the dashboard: see core/person.py.
person = Table(
    "person",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("role", String(8), nullable=False),
    Column("password", LargeBinary, nullable=False),
    Column("added_at", BigInteger, nullable=False),
)

# One row for each cookie that opens the dashboard, by the digest of its token.
session = Table(
    "session",
    metadata,
    Column("token_hash", LargeBinary(32), primary_key=True),
    Column("name", String(64), nullable=False, index=True),
    Column("expires_at", BigInteger, nullable=False, index=True),
)

# Sign-in links that were printed while there was no operator. `start_hash` is the start that printed it.
sign_in_code = Table(
    "sign_in_code",
    metadata,
    Column("code_hash", LargeBinary(32), primary_key=True),
    Column("start_hash", LargeBinary(32), nullable=False),
    Column("expires_at", BigInteger, nullable=False),
)

# Who did what in the dashboard. Rows are only ever added.
audit = Table(
    "audit",
    metadata,
    Column("at", BigInteger, primary_key=True),
    Column("audit_id", String(32), primary_key=True),
    Column("actor", LargeBinary, nullable=False),
    Column("action", String(32), nullable=False),
    Column("subject", LargeBinary, nullable=False),
    Column("detail", LargeBinary, nullable=False),
)

# What a credit token was granted and has spent, in millionths of a dollar: see core/credit.py. `granted` is 0 in a row
# that only holds a place for the lock. No row where no call has a price.
credit_account = Table(
    "credit_account",
    metadata,
    Column("account_hash", LargeBinary(32), primary_key=True),
    Column("granted", BigInteger, nullable=False),
    Column("spent", BigInteger, nullable=False),
    Column("calls", BigInteger, nullable=False),
)
