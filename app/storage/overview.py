"""Handoffs in the order in which lists show them.

A list goes by the end of life: open ones the soonest first, what is over the latest first. Each of its pages is a few
short ranges of an index (open or ended, for agents or for people), merged here, so it costs the same among a thousand
rows and a million. Payloads and histories are not touched.
"""

import heapq
import json
from dataclasses import dataclass
from itertools import islice
from typing import Literal, cast

from sqlalchemy import and_, bindparam, or_, select
from sqlalchemy.sql.expression import BindParameter, ColumnElement

from app.core.handoff import Audience
from app.storage.engine import Reader
from app.storage.statement import Row, Statement
from app.storage.tables import DECIDED, handoff

Standing = Literal["open", "ended", "expired", "all"]
Place = tuple[int, str]
_COLUMNS = (
    handoff.c.handoff_id,
    handoff.c.title,
    handoff.c.audience,
    handoff.c.machine,
    handoff.c.state,
    handoff.c.version,
    handoff.c.ended,
    handoff.c.created_at,
    handoff.c.changed_at,
    handoff.c.expires_at,
)


@dataclass(frozen=True, slots=True)
class ListedHandoff:
    """A row of a list."""

    handoff_id: str
    title: str | None
    audience: Audience
    states: tuple[str, ...]
    final: tuple[str, ...]
    transitions: dict[str, list[str]]
    state: str
    version: int
    is_ended: bool
    created_at: int
    changed_at: int
    expires_at: int


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a list shows. `after` is the place of the last row of the page before."""

    standing: Standing = "open"
    audience: Audience | None = None
    state: str | None = None
    after: Place | None = None


def _range(*, rising: bool, with_state: bool) -> Statement:
    end, name = handoff.c.expires_at, handoff.c.handoff_id
    at: BindParameter[int] = bindparam("at")
    id_: BindParameter[str] = bindparam("id")
    beyond: ColumnElement[bool] = or_(end > at, and_(end == at, name > id_))
    if not rising:
        beyond = or_(end < at, and_(end == at, name < id_))
    limits = [end > bindparam("low"), end <= bindparam("high")]
    where = [handoff.c.ended == bindparam("is_ended"), handoff.c.audience == bindparam("whom"), *limits, beyond]
    if with_state:
        where.append(handoff.c.state == bindparam("standing"))
    order = (end, name) if rising else (end.desc(), name.desc())
    return Statement(select(*_COLUMNS).where(*where).order_by(*order).limit(bindparam("most")))


_RANGES = {
    (rising, with_state): _range(rising=rising, with_state=with_state)
    for rising in (True, False)
    for with_state in (True, False)
}
_FOREVER = 1 << 62
_DECIDED = Statement(
    select(handoff.c.handoff_id)
    .where(DECIDED)
    .order_by(handoff.c.changed_at.desc(), handoff.c.handoff_id.desc())
    .limit(bindparam("most"))
)


def handoffs(reader: Reader, wanted: Wanted, most: int) -> list[ListedHandoff]:
    """Up to so many rows after the place."""
    now = reader.now()
    rising = wanted.standing == "open"
    audiences = ("agent", "person") if wanted.audience is None else (wanted.audience,)
    at, after = wanted.after or ((-1, "") if rising else (_FOREVER, "~"))
    spans = {
        "open": [(0, now, _FOREVER)],
        "ended": [(1, -1, _FOREVER)],
        "expired": [(0, -1, now)],
        "all": [(0, -1, _FOREVER), (1, -1, _FOREVER)],
    }[wanted.standing]
    statement = _RANGES[rising, wanted.state is not None]
    more = {} if wanted.state is None else {"standing": wanted.state}
    found = [
        # The bound of the range is put as tight as the place allows: the index then begins to read there.
        _rows(
            reader.all(
                statement,
                is_ended=is_ended,
                whom=whom,
                low=max(low, at - 1) if rising else low,
                high=high if rising else min(high, at),
                at=at,
                id=after,
                most=most,
                **more,
            )
        )
        for is_ended, low, high in spans
        for whom in audiences
    ]
    merged = heapq.merge(*found, key=lambda row: (row.expires_at, row.handoff_id), reverse=not rising)
    return list(islice(merged, most))


def last_decided(reader: Reader) -> str | None:
    """The handoff for a person that moved last; None where none has."""
    row = reader.one(_DECIDED, most=1)
    return None if row is None else cast(str, row[0])


def _rows(rows: list[Row]) -> list[ListedHandoff]:
    return [_row(row) for row in rows]


def _row(row: Row) -> ListedHandoff:
    handoff_id, title, audience, machine, state, version, ended, created_at, changed_at, expires_at = row
    declared = json.loads(cast(bytes, machine))
    return ListedHandoff(
        cast(str, handoff_id),
        None if title is None else cast(bytes, title).decode("utf-8"),
        cast(Audience, audience),
        tuple(declared["states"]),
        tuple(declared["final"]),
        declared["transitions"],
        cast(str, state),
        cast(int, version),
        bool(ended),
        cast(int, created_at),
        cast(int, changed_at),
        cast(int, expires_at),
    )
