"""The notices that wait, and what became of the others.

A notice is appended in the transaction of its move, so there is one exactly when the move is durable. Several
processes may look for due ones at once; who moves `claimed_until` first has it, and a second update finds it moved. A
claim lapses by itself, so a process that died with one holds nothing up. What a try came to is written only by the
holder of that very claim.
"""

from typing import cast

from sqlalchemy import and_, bindparam, delete, func, insert, select, update

from app.core.outbox import Again, Delivery, Ending, Notice, Over
from app.storage.engine import Reader, Transaction
from app.storage.statement import Row, Statement, Value
from app.storage.tables import outbox

TOPIC = "outbox"

COLUMNS = (
    outbox.c.handoff_id,
    outbox.c.version,
    outbox.c.url,
    outbox.c.body,
    outbox.c.expires_at,
    outbox.c.tries,
    outbox.c.due_at,
    outbox.c.claimed_until,
    outbox.c.ending,
    outbox.c.result,
    outbox.c.tried_at,
)
_THIS = (outbox.c.handoff_id == bindparam("id"), outbox.c.version == bindparam("number"))
_OPEN = (outbox.c.due_at <= bindparam("now"), outbox.c.claimed_until <= bindparam("now"))

_APPEND = Statement(insert(outbox).values({column.name: bindparam(column.name) for column in outbox.columns}))
_place = func.row_number().over(partition_by=outbox.c.receiver, order_by=outbox.c.due_at)
_ranked = select(outbox.c.handoff_id, outbox.c.version, _place.label("place")).where(*_OPEN).subquery()
_FAIR_SHARE = Statement(
    select(*COLUMNS)
    .join(_ranked, and_(outbox.c.handoff_id == _ranked.c.handoff_id, outbox.c.version == _ranked.c.version))
    .where(_ranked.c.place <= bindparam("per_receiver"))
    .order_by(outbox.c.tries, outbox.c.due_at, outbox.c.handoff_id, outbox.c.version)
    .limit(bindparam("most"))
)
_CLAIM = Statement(
    update(outbox).where(*_THIS, *_OPEN).values(claimed_until=bindparam("until"), tries=bindparam("counted"))
)
_SETTLE = Statement(
    update(outbox)
    .where(*_THIS, outbox.c.tries == bindparam("counted"), outbox.c.claimed_until == bindparam("until"))
    .values(
        claimed_until=0,
        due_at=bindparam("due"),
        ending=bindparam("how"),
        result=bindparam("last"),
        tried_at=bindparam("now"),
    )
)
_GIVE_UP = Statement(update(outbox).where(*_THIS, *_OPEN).values(due_at=None, ending=bindparam("how")))
_ONE = Statement(select(*COLUMNS).where(*_THIS))
_REOPEN = Statement(update(outbox).where(*_THIS).values(tries=0, due_at=bindparam("now"), ending=None))
_OF_HANDOFF = Statement(select(*COLUMNS).where(outbox.c.handoff_id == bindparam("id")).order_by(outbox.c.version))
_COUNTS = Statement(select(outbox.c.ending, func.count()).group_by(outbox.c.ending))
_LAPSED = Statement(
    select(outbox.c.handoff_id, outbox.c.version)
    .where(outbox.c.expires_at <= bindparam("now"))
    .order_by(outbox.c.expires_at)
    .limit(bindparam("most"))
)
_DROP = Statement(delete(outbox).where(*_THIS, outbox.c.expires_at <= bindparam("now")))


def append(tx: Transaction, notice: Notice) -> None:
    """Keep a notice, due at once, and wake the senders when the move is durable."""
    tx.write(
        _APPEND,
        handoff_id=notice.handoff_id,
        version=notice.version,
        url=notice.url.encode("utf-8"),
        receiver=notice.receiver.encode("utf-8"),
        body=notice.body,
        expires_at=notice.expires_at,
        tries=0,
        due_at=tx.now(),
        claimed_until=0,
        ending=None,
        result=None,
        tried_at=None,
    )
    tx.ring(TOPIC)


def due(reader: Reader, *, per_receiver: int, most: int) -> list[Delivery]:
    """Notices that may be tried, at most `per_receiver` for one receiver; fresh ones come before retries."""
    found = reader.all(_FAIR_SHARE, now=reader.now(), per_receiver=per_receiver, most=most)
    return [read(row) for row in found]


def claim(tx: Transaction, delivery: Delivery, *, until: int) -> Delivery | None:
    """Begin a try and count it; None when another sender was first."""
    notice, counted = delivery.notice, delivery.tries + 1
    touched = tx.execute(
        _CLAIM, id=notice.handoff_id, number=notice.version, now=tx.now(), until=until, counted=counted
    )
    return Delivery(notice, counted, delivery.due_at, until) if touched else None


def give_up(tx: Transaction, delivery: Delivery, over: Over) -> None:
    """Close a due notice that may not be tried any more."""
    notice = delivery.notice
    tx.write(_GIVE_UP, id=notice.handoff_id, number=notice.version, now=tx.now(), how=over.ending)


def settle(tx: Transaction, delivery: Delivery, *, now: int, result: str, next_step: Again | Over) -> bool:
    """Write down what a claimed try came to; False when the claim is another's by now, and nothing is written."""
    touched = tx.execute(
        _SETTLE,
        id=delivery.notice.handoff_id,
        number=delivery.notice.version,
        counted=delivery.tries,
        until=delivery.claimed_until,
        due=next_step.at if isinstance(next_step, Again) else None,
        how=next_step.ending if isinstance(next_step, Over) else None,
        last=result,
        now=now,
    )
    return touched == 1


def lock(tx: Transaction, handoff_id: str, version: int) -> Delivery | None:
    """One notice, locked; None where there is none."""
    row = tx.lock(_ONE, id=handoff_id, number=version)
    return None if row is None else read(row)


def reopen(tx: Transaction, delivery: Delivery) -> None:
    """Make it due as if it had never been tried, and wake the senders."""
    tx.write(_REOPEN, id=delivery.notice.handoff_id, number=delivery.notice.version, now=tx.now())
    tx.ring(TOPIC)


def of_handoff(reader: Reader, handoff_id: str) -> list[Delivery]:
    """All notices of a handoff, in the order of its moves."""
    return [read(row) for row in reader.all(_OF_HANDOFF, id=handoff_id)]


def counts(reader: Reader) -> dict[str, int]:
    """How many notices there are by ending, and `waiting`."""
    return {str(row[0] or "waiting"): cast(int, row[1]) for row in reader.all(_COUNTS)}


def lapsed(reader: Reader, most: int) -> list[tuple[str, int]]:
    """Notices whose handoff's life is over, the oldest first."""
    rows = reader.all(_LAPSED, now=reader.now(), most=most)
    return [(cast(str, row[0]), cast(int, row[1])) for row in rows]


def drop(tx: Transaction, keys: list[tuple[str, int]]) -> int:
    """Delete those that have lapsed; how many."""
    now = tx.now()
    each: list[dict[str, Value]] = [
        {"id": handoff_id, "number": version, "now": now} for handoff_id, version in sorted(keys)
    ]
    return sum(tx.execute_each(_DROP, each))


def read(row: Row) -> Delivery:
    """A row of these columns as a value."""
    handoff_id, version, url, body, expires_at, tries, due_at, claimed_until, ending, result, tried_at = row
    return Delivery(
        Notice(
            cast(str, handoff_id),
            cast(int, version),
            cast(bytes, url).decode("utf-8"),
            cast(bytes, body),
            cast(int, expires_at),
        ),
        cast(int, tries),
        cast("int | None", due_at),
        cast(int, claimed_until),
        cast("Ending | None", ending),
        cast("str | None", result),
        cast("int | None", tried_at),
    )
