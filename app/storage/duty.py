"""Work that one process at a time does for all: who has it writes until when, and it lapses by itself.

A row of `meta`, no advisory lock: a process that died with a duty holds it up for a minute, whatever stands between it
and the database. A term that lies further ahead than any that is given was written under a clock that ran ahead, and
is void.
"""

from sqlalchemy import bindparam, select, update

from app.core.instants import SECOND
from app.storage.engine import Transaction
from app.storage.statement import Statement, insert_if_absent
from app.storage.tables import meta

TERM_SECONDS = 60

_TERM = Statement(select(meta.c.number).where(meta.c.name == bindparam("name")))
_HOLD_PLACE = Statement(lambda dialect: insert_if_absent(dialect, meta, {"number": 0}))
_PUT = Statement(update(meta).where(meta.c.name == bindparam("of")).values(number=bindparam("until")))
_RENEW = Statement(
    update(meta)
    .where(meta.c.name == bindparam("of"), meta.c.number == bindparam("mine"))
    .values(number=bindparam("until"))
)


def take(tx: Transaction, name: str) -> int | None:
    """The end of our term, which names it; None while another process has one."""
    row = tx.lock(_TERM, _HOLD_PLACE, name=name)
    now = tx.now()
    term = TERM_SECONDS * SECOND
    if row is not None and now < int(str(row[0])) <= now + term:
        return None
    if row is None:
        tx.execute(_HOLD_PLACE, name=name)
    tx.write(_PUT, of=name, until=now + term)
    return now + term


def keep(tx: Transaction, name: str, mine: int) -> int | None:
    """A new term after ours, while it is ours still; None when another process took over."""
    until = max(tx.now() + TERM_SECONDS * SECOND, mine + 1)
    return until if tx.execute(_RENEW, of=name, mine=mine, until=until) else None


def give_up(tx: Transaction, name: str, mine: int) -> None:
    """Let the next have it."""
    tx.write(_RENEW, of=name, mine=mine, until=0)
