"""Notices in the order in which the page shows them: those of the latest handoffs first.

A handoff's end never changes, so a page by cursor neither skips a row nor shows one twice, whatever is tried meanwhile.
"""

from typing import Literal

from sqlalchemy import bindparam, select, text, tuple_
from sqlalchemy.sql.expression import ColumnElement, TextClause

from app.core.outbox import Delivery
from app.storage.engine import Reader
from app.storage.outbox import COLUMNS, read
from app.storage.statement import Statement
from app.storage.tables import FAILING, outbox

DeliveryKind = Literal["failing", "waiting", "delivered"]
DeliveryPlace = tuple[int, str, int]
_ORDER = (outbox.c.expires_at, outbox.c.handoff_id, outbox.c.version)
_FOREVER = 1 << 62


def _range(where: ColumnElement[bool] | TextClause) -> Statement:
    return Statement(
        select(*COLUMNS)
        .where(where, tuple_(*_ORDER) < tuple_(bindparam("at"), bindparam("id"), bindparam("number")))
        .order_by(*(column.desc() for column in _ORDER))
        .limit(bindparam("most"))
    )


_RANGES: dict[DeliveryKind, Statement] = {
    "failing": _range(FAILING),
    "waiting": _range(outbox.c.ending.is_(None)),
    "delivered": _range(outbox.c.ending == text("'delivered'")),
}


def deliveries(reader: Reader, kind: DeliveryKind, after: DeliveryPlace | None, most: int) -> list[Delivery]:
    """Notices of this kind after the place. One that was tried in vain and waits for its next try is of two kinds."""
    at, handoff_id, version = after or (_FOREVER, "~", 0)
    found = reader.all(_RANGES[kind], at=at, id=handoff_id, number=version, most=most)
    return [read(row) for row in found]
