"""The list of handoffs: filters in the address, pages by cursor, moves for many at once, export.

Moving many is the same as moving one, many times: each row carries the state, version and digest that were seen, and a
nonce of its own, and gets its own result.
"""

import re
from collections.abc import Iterator
from urllib.parse import urlencode

from flask import Blueprint, Response

from app.core.handoff import Audience
from app.core.machine import is_state_name
from app.dashboard import export
from app.dashboard.gate import Gate, Page, Visit
from app.services.handoff import Handoffs
from app.services.overview import ListedHandoff, Overview, Place, Standing, Wanted

_AFTER = re.compile(r"(\d{1,18})\.([0-9a-f]{32})", re.ASCII)
_STANDINGS: tuple[Standing, ...] = ("open", "ended", "expired", "all")
_AUDIENCES: tuple[Audience, ...] = ("person", "agent")


class HandoffList:
    """The pages."""

    def __init__(self, overview: Overview, handoffs: Handoffs) -> None:
        self._overview = overview
        self._handoffs = handoffs

    def show(self, visit: Visit) -> Page:
        """One page of it."""
        wanted = wanted_of(visit)
        page = self._overview.handoffs(wanted)
        filters = filters_of(wanted)
        words = {
            "title": "Handoffs",
            "rows": page.rows,
            "now": page.now,
            "waiters": {row.handoff_id: self._handoffs.waiters(row.handoff_id) for row in page.rows},
            "wanted": wanted,
            "standings": _STANDINGS,
            "audiences": _AUDIENCES,
            "states": sorted({state for row in page.rows for state in row.transitions[row.state]}),
            "query": urlencode(filters),
            "older": None if page.after is None else urlencode({**filters, "after": "{}.{}".format(*page.after)}),
            "feed": "handoffs",
            "refresh": 30,
        }
        return Page("handoffs.html", words)

    def as_csv(self, visit: Visit) -> Response:
        """All of it as a table."""
        wanted = wanted_of(visit)
        return export.response(export.csv_lines(self._every(wanted)), "text/csv", "handoffs.csv")

    def as_json(self, visit: Visit) -> Response:
        """All of it as a JSON array."""
        wanted = wanted_of(visit)
        return export.response(export.json_lines(self._every(wanted)), "application/json", "handoffs.json")

    def _every(self, wanted: Wanted) -> Iterator[tuple[ListedHandoff, int]]:
        after: Place | None = None
        while True:
            page = self._overview.handoffs(
                Wanted(wanted.standing, wanted.audience, wanted.state, after), most=export.ROWS_AT_ONCE
            )
            yield from ((row, page.now) for row in page.rows)
            after = page.after
            if after is None:
                return


def add_routes(routes: Blueprint, gate: Gate, overview: Overview, handoffs: Handoffs) -> None:
    """/handoffs and its exports."""
    listed = HandoffList(overview, handoffs)
    gate.page(routes, "/handoffs", listed.show)
    gate.page(routes, "/handoffs/export.csv", listed.as_csv)
    gate.page(routes, "/handoffs/export.json", listed.as_json)


def wanted_of(visit: Visit) -> Wanted:
    """The filters of an address; what is no filter is left out."""
    standing, audience, state = (visit.query.get(name, "") for name in ("show", "for", "state"))
    place = _AFTER.fullmatch(visit.query.get("after", ""))
    return Wanted(
        next((known for known in _STANDINGS if known == standing), "open"),
        next((known for known in _AUDIENCES if known == audience), None),
        state if is_state_name(state) else None,
        None if place is None else (int(place.group(1)), place.group(2)),
    )


def filters_of(wanted: Wanted) -> dict[str, str]:
    """The same as words of an address."""
    return {
        name: value
        for name, value in (("show", wanted.standing), ("for", wanted.audience), ("state", wanted.state))
        if value and value != "open"
    }
