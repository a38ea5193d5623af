"""What people did in the dashboard: rows are added in the transaction of the deed, and never changed."""

from dataclasses import dataclass
from typing import cast

from sqlalchemy import and_, bindparam, insert, or_, select

from app.storage.engine import Reader, Transaction
from app.storage.statement import Row, Statement
from app.storage.tables import audit

FIRST_PAGE = (1 << 62, "")
"""The place before the newest line."""

_APPEND = Statement(insert(audit).values({column.name: bindparam(column.name) for column in audit.columns}))
_COLUMNS = (audit.c.at, audit.c.audit_id, audit.c.actor, audit.c.action, audit.c.subject, audit.c.detail)
_PAGE = Statement(
    select(*_COLUMNS)
    .where(
        or_(
            audit.c.at < bindparam("at"),
            and_(audit.c.at == bindparam("at"), audit.c.audit_id < bindparam("audit_id")),
        )
    )
    .order_by(audit.c.at.desc(), audit.c.audit_id.desc())
    .limit(bindparam("most"))
)


@dataclass(frozen=True, slots=True)
class Line:
    """One deed: who, what, to what, and the words that go with it (a note, a reason)."""

    at: int
    audit_id: str
    actor: str
    action: str
    subject: str
    detail: str


def append(tx: Transaction, line: Line) -> None:
    """Add a line."""
    tx.write(
        _APPEND,
        at=line.at,
        audit_id=line.audit_id,
        actor=line.actor.encode("utf-8"),
        action=line.action,
        subject=line.subject.encode("utf-8"),
        detail=line.detail.encode("utf-8"),
    )


def page(reader: Reader, *, before: tuple[int, str], most: int) -> list[Line]:
    """The lines before this place, the newest first."""
    return [_line(row) for row in reader.all(_PAGE, at=before[0], audit_id=before[1], most=most)]


def _line(row: Row) -> Line:
    at, audit_id, actor, action, subject, detail = row
    words = [cast(bytes, text).decode("utf-8") for text in (actor, subject, detail)]
    return Line(cast(int, at), cast(str, audit_id), words[0], cast(str, action), words[1], words[2])
