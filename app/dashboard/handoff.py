"""The page of one handoff, and its moves, for who is signed in."""

from collections.abc import Sequence

from flask import Blueprint

from app.clock import monotonic
from app.core import handoff as core
from app.dashboard import deciding
from app.dashboard.deciding import Decision, Place
from app.dashboard.gate import Gate, Goto, Page, Turned, Visit
from app.services.handoff import Handoffs
from app.services.handoff_waits import Waiter
from app.services.outbox import Outbox
from app.services.overview import Overview, Wanted


class HandoffPage:
    """/handoffs/<id>."""

    def __init__(self, gate: Gate, handoffs: Handoffs, overview: Overview, outbox: Outbox) -> None:
        self._gate = gate
        self._handoffs = handoffs
        self._overview = overview
        self._outbox = outbox

    def show(self, visit: Visit, handoff_id: str) -> Page:
        """The page."""
        record, now = self._find(handoff_id)
        shown = {
            **deciding.words(record, "operator", now),
            "title": record.offer.title or handoff_id[:12] + "…",
            "place": _place(handoff_id),
            "waiters": waiting(self._handoffs.waiters(handoff_id)),
            "deliveries": self._outbox.of_handoff(handoff_id) if record.offer.notify_url else [],
            "feed": "handoffs",
            "base": f"{self._gate.settings.public_url}/services/v1/handoff/{handoff_id}",
        }
        return Page("handoff.html", shown)

    def choose(self, visit: Visit, handoff_id: str) -> Page:
        """A button of a state was pressed: ask once more."""
        record, now = self._find(handoff_id)
        decision = deciding.read_decision(visit, handoff_id, self._gate)
        if isinstance(decision, Page):
            return decision
        return deciding.confirm(self._gate, _place(handoff_id), record, decision, now)

    def move(self, visit: Visit, handoff_id: str) -> Page | Goto:
        """Confirm was pressed."""
        record, now = self._find(handoff_id)
        decision = deciding.read_decision(visit, handoff_id, self._gate)
        if isinstance(decision, Page):
            return decision

        def take(wish: Decision) -> core.Moved | core.MoveRefusal | core.NotFound:
            return self._handoffs.move_as_operator(
                handoff_id=handoff_id,
                actor=visit.name,
                to=wish.to,
                expected=wish.expected,
                nonce=wish.nonce,
                note=wish.note,
            )

        return deciding.decide(self._gate, _place(handoff_id), visit, record, decision, now, take)

    def receipt(self, visit: Visit, handoff_id: str, version: str) -> Page:
        """What was decided, and the next one that waits for a person."""
        record, now = self._find(handoff_id)
        page = deciding.receipt(self._gate, _place(handoff_id), record, version, now)
        waiting_next = self._overview.handoffs(Wanted("open", "person"), most=2).rows
        following = next((row for row in waiting_next if row.handoff_id != handoff_id), None)
        return Page(page.template, {**page.words, "following": following}, page.status)

    def _find(self, handoff_id: str) -> tuple[core.HandoffRecord, int]:
        found, now = self._handoffs.look_at([handoff_id])
        if handoff_id not in found:
            raise Turned(deciding.gone(self._gate))
        return found[handoff_id], now


def _place(handoff_id: str) -> Place:
    return Place(f"/handoffs/{handoff_id}", "base.html", "operator")


def waiting(waiters: Sequence[Waiter]) -> list[tuple[str, int]]:
    """Who waits, and for how many seconds."""
    now = monotonic()
    return [(waiter.role, int(now - waiter.since)) for waiter in waiters]


def add_routes(routes: Blueprint, gate: Gate, handoffs: Handoffs, overview: Overview, outbox: Outbox) -> None:
    """The page, the question, the move and the receipt."""
    page = HandoffPage(gate, handoffs, overview, outbox)
    gate.page(routes, "/handoffs/<handoff_id>", page.show)
    gate.form(routes, "/handoffs/<handoff_id>/choose", page.choose)
    gate.form(routes, "/handoffs/<handoff_id>/move", page.move)
    gate.page(routes, "/handoffs/<handoff_id>/receipts/<version>", page.receipt)
