"""Moving many handoffs into one state.

It is the same as moving each by itself: a page repeats every row with the state, version and digest that were seen,
each row gets a nonce of its own, and each gets its own result. What moved meanwhile is refused alone.
"""

from dataclasses import dataclass

from flask import Blueprint

from app import tokens
from app.core import handoff as core
from app.core.machine import is_state_name
from app.dashboard import deciding, payload
from app.dashboard.deciding import Decision
from app.dashboard.gate import Gate, Page, Visit
from app.services.handoff import Handoffs

_MOST = 100


@dataclass(frozen=True, slots=True)
class Picked:
    """A row: the handoff, what would be decided on it, and why that cannot be, or what came of it."""

    record: core.HandoffRecord | None
    decision: Decision
    trouble: str = ""
    is_done: bool = False


class Bulk:
    """The question and the deed."""

    def __init__(self, gate: Gate, handoffs: Handoffs) -> None:
        self._gate = gate
        self._handoffs = handoffs

    def choose(self, visit: Visit) -> Page:
        """Rows were picked: repeat them, change nothing."""
        picked = tuple(dict.fromkeys(visit.form.get("pick", ())))
        to, note = visit.first("to"), visit.first("note").strip()
        if not picked or not is_state_name(to) or len(note) > deciding.MOST_NOTE:
            sentence = "Pick at least one row and name the state to move to. Nothing was changed."
            return self._gate.problem(400, "Nothing was picked" if not picked else "Where to?", sentence)
        if len(picked) > _MOST:
            return self._gate.problem(400, "Too many rows", f"Pick at most {_MOST} rows at once. Nothing was changed.")
        found, now = self._handoffs.look_at(picked)
        rows = [self._row(found[name], to, note, now) for name in picked if name in found]
        shown = {"title": f"Move {len(rows)} to {to}?", "rows": rows, "to": to, "note": note, "is_done": False}
        return Page("bulk.html", shown)

    def move(self, visit: Visit) -> Page:
        """Confirm was pressed: each by itself."""
        names, expected, versions, digests, nonces = (
            visit.form.get(name, ()) for name in ("id", "from", "version", "digest", "nonce")
        )
        to, note = visit.first("to"), visit.first("note").strip()
        is_whole = len({len(names), len(expected), len(versions), len(digests), len(nonces)}) == 1
        is_whole = is_whole and 0 < len(set(names)) == len(names) <= _MOST and all(map(deciding.is_nonce, nonces))
        are_words = is_state_name(to) and all(map(is_state_name, expected)) and all(map(_is_number, versions))
        if visit.first("confirm") != "yes" or not is_whole or not are_words or len(note) > deciding.MOST_NOTE:
            sentence = "Load the list and pick again. Nothing was changed."
            return self._gate.problem(400, "The form is not whole", sentence)
        rows = [
            self._take(visit, Decision(name, state, to, int(version), digest, note or None, nonce))
            for name, state, version, digest, nonce in zip(names, expected, versions, digests, nonces, strict=True)
        ]
        done = sum(row.is_done for row in rows)
        shown = {"title": f"{done} of {len(rows)} moved to {to}", "rows": rows, "to": to, "note": note, "is_done": True}
        shown["here"] = "/handoffs"
        return Page("bulk.html", shown)

    def _row(self, record: core.HandoffRecord, to: str, note: str, now: int) -> Picked:
        digest = payload.digest(record.offer.payload)
        nonce = tokens.mint_identifier()
        decision = Decision(record.handoff_id, record.state, to, record.version, digest, note or None, nonce)
        may = not record.is_expired(now) and to in record.allowed("operator")
        return Picked(record, decision, "" if may else deciding.what_happened(record, decision, "operator", now))

    def _take(self, visit: Visit, wish: Decision) -> Picked:
        found, now = self._handoffs.look_at([wish.handoff_id])
        record = found.get(wish.handoff_id)
        if record is None:
            return Picked(None, wish, "There is no handoff of this name any more.")
        if not deciding.is_of(record, wish):
            return Picked(record, wish, deciding.what_happened(record, wish, "operator", now))
        outcome = self._handoffs.move_as_operator(
            handoff_id=wish.handoff_id,
            actor=visit.name,
            to=wish.to,
            expected=wish.expected,
            nonce=wish.nonce,
            note=wish.note,
        )
        if isinstance(outcome, core.Moved):
            return Picked(outcome.record, wish, is_done=True)
        if isinstance(outcome, core.NotFound):
            return Picked(None, wish, "There is no handoff of this name any more.")
        return Picked(outcome.record, wish, deciding.what_happened(outcome.record, wish, "operator", now))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 4


def add_routes(routes: Blueprint, gate: Gate, handoffs: Handoffs) -> None:
    """The question and the deed."""
    bulk = Bulk(gate, handoffs)
    gate.form(routes, "/handoffs/bulk", bulk.choose)
    gate.form(routes, "/handoffs/bulk/move", bulk.move)
