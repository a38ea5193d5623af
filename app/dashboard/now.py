"""The first page: what needs a person, by time left; or, where nobody is needed, what was decided last."""

from flask import Blueprint

from app.core.instants import SECOND
from app.dashboard.gate import Gate, Page, Visit
from app.services.agenda import Agendas
from app.services.handoff import Handoffs


class Now:
    """The page."""

    def __init__(self, agendas: Agendas, handoffs: Handoffs) -> None:
        self._agendas = agendas
        self._handoffs = handoffs

    def show(self, visit: Visit) -> Page:
        """All of it, in one look."""
        agenda = self._agendas.look()
        words = {
            "title": "Now",
            "agenda": agenda,
            "now": agenda.now,
            "second": SECOND,
            "waiters": {row.handoff_id: self._handoffs.waiters(row.handoff_id) for row in agenda.handoffs},
            "feed": "handoffs leases",
            "refresh": 15,
        }
        return Page("now.html", words)


def add_routes(routes: Blueprint, gate: Gate, agendas: Agendas, handoffs: Handoffs) -> None:
    """The root of the site."""
    gate.page(routes, "/", Now(agendas, handoffs).show)
