"""How a person moves a handoff, as operator or as reviewer: choose, confirm, receipt.

A choice changes nothing: it leads to a page that repeats what would be decided, on what. That page's form carries the
state, version and digest that were on the screen, and a nonce, so what is decided is what was seen; the decision
itself is taken under the row's lock like any other. The nonce makes a double click, the back button and a repeated
POST the same decision. The button itself is a part of the form: software that submits every form it finds presses no
button, and is asked again.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import assert_never

from app import tokens
from app.core import handoff as core
from app.core.machine import is_state_name
from app.dashboard import machine, payload
from app.dashboard.gate import Gate, Goto, Page, Visit
from app.dashboard.show import iso_words
from app.services.handoff import MoveOutcome

MOST_NOTE = 500
is_nonce = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII).fullmatch
"""Whether a form's nonce is one that our pages make; those of the API have the same form."""
Move = Callable[["Decision"], MoveOutcome]


@dataclass(frozen=True, slots=True)
class Decision:
    """A move as a form carries it."""

    handoff_id: str
    expected: str
    to: str
    version: int
    digest: str
    note: str | None
    nonce: str


@dataclass(frozen=True, slots=True)
class Place:
    """Where on the site somebody decides, and as whom."""

    path: str
    frame: str
    """The template around the pages: the operator's, or the reviewer's."""
    mover: core.Mover


def words(record: core.HandoffRecord, mover: core.Mover, now: int) -> dict[str, object]:
    """What every page about one handoff shows."""
    is_over = record.is_ended or record.is_expired(now)
    allowed = () if is_over else record.allowed(mover)
    shown = payload.shown(record.offer.payload)
    return {
        "record": record,
        "is_expired": record.is_expired(now) and not record.is_ended,
        "left": max(0, record.expires_at - now),
        "allowed": allowed,
        "drawing": machine.draw(record, allowed),
        "payload": shown,
        "last": record.history[-1],
        "seen_at": now,
    }


def read_decision(visit: Visit, handoff_id: str, gate: Gate) -> Decision | Page:
    """The decision in a form, or the page that says what is wrong with the form."""
    version, note = visit.first("version"), visit.first("note").strip()
    to, expected, nonce = visit.first("to"), visit.first("from"), visit.first("nonce")
    if len(note) > MOST_NOTE:
        return gate.problem(
            400, "The note is too long", f"A note has at most {MOST_NOTE} characters; nothing was done."
        )
    is_whole = is_state_name(expected) and version.isascii() and version.isdigit() and len(version) < 4
    if not to:
        return gate.problem(400, "Nothing was chosen", "Press the button of one of the states. Nothing was changed.")
    if not is_whole or not is_state_name(to) or not is_nonce(nonce or "none"):
        return gate.problem(400, "The form is not whole", "Load the page and choose again. Nothing was changed.")
    return Decision(handoff_id, expected, to, int(version), visit.first("digest"), note or None, nonce)


def confirm(gate: Gate, place: Place, record: core.HandoffRecord, decision: Decision, now: int) -> Page:
    """The page that repeats a choice. It changes nothing."""
    stale = _stale(record, decision)
    if stale or decision.to not in record.allowed(place.mover):
        return refused(gate, place, record, decision, now)
    return Page(
        "confirm.html",
        {
            **words(record, place.mover, now),
            "title": f"Move to {decision.to}?",
            "decision": decision,
            "nonce_of_move": tokens.mint_identifier(),
            "is_final": record.machine.is_final(decision.to),
            "place": place,
        },
    )


def decide(
    gate: Gate, place: Place, visit: Visit, record: core.HandoffRecord, decision: Decision, now: int, move: Move
) -> Page | Goto:
    """Take a confirmed decision."""
    if visit.first("confirm") != "yes" or not decision.nonce:
        return confirm(gate, place, record, decision, now)
    if not is_of(record, decision):
        return refused(gate, place, record, decision, now)
    outcome = move(decision)
    match outcome:
        case core.Moved(version=version):
            return Goto(f"{place.path}/receipts/{version}")
        case core.NotFound():
            return gone(gate)
        case core.Expired(record=after):
            return refused(gate, place, after, decision, max(now, after.expires_at))
        case (
            core.StateMismatch(record=after)
            | core.NonceConflict(record=after)
            | core.UnknownState(record=after)
            | core.TransitionNotAllowed(record=after)
            | core.NotPermitted(record=after)
        ):
            return refused(gate, place, after, decision, now)
        case _:
            assert_never(outcome)


def refused(gate: Gate, place: Place, record: core.HandoffRecord, decision: Decision, now: int) -> Page:
    """Nothing was decided, and what happened instead."""
    shown = {
        **words(record, place.mover, now),
        "title": "Nothing was changed",
        "decision": decision,
        "sentence": what_happened(record, decision, place.mover, now),
        "place": place,
    }
    return Page("refused.html", shown, 410 if record.is_expired(now) else 409)


def what_happened(record: core.HandoffRecord, decision: Decision, mover: core.Mover, now: int) -> str:
    """In words: why this decision was not taken."""
    if record.is_expired(now):
        return f"It expired at {iso_words(record.expires_at)}. " + (
            f"It had ended in {record.state} before." if record.is_ended else "Nobody decided in time."
        )
    last = record.history[-1]
    if record.state != decision.expected:
        mine = f"{who(last)} moved it to {last.state} at {iso_words(last.at)}, version {record.version}"
        return f"It moved meanwhile: {mine}."
    if decision.version != record.version or decision.digest != payload.digest(record.offer.payload):
        return "The form is about another version or another payload than the handoff has. Look again, then decide."
    if decision.to not in record.machine.transitions[record.state]:
        return f"No move leads from {record.state} to {decision.to}."
    if decision.to not in record.allowed(mover):
        return f"The {mover} may not move it to {decision.to}; whoever created it left that to the other side."
    return "This form was used for another decision already. Look again, then decide."


def who(entry: core.Entry) -> str:
    """Who wrote a line of the history, for people."""
    return f"the operator {entry.actor}" if entry.actor is not None else f"the {entry.by}"


def receipt(gate: Gate, place: Place, record: core.HandoffRecord, version: str, now: int) -> Page:
    """What was decided: outcome, time, version, digest."""
    number = int(version) if version.isascii() and version.isdigit() and len(version) < 4 else 0
    if not 2 <= number <= record.version:
        return gate.problem(404, "No such receipt", "The handoff has no move of that version.")
    entry = record.history[number - 1]
    shown = {
        **words(record, place.mover, now),
        "title": f"Moved to {entry.state}",
        "entry": entry,
        "number": number,
        "is_final": record.machine.is_final(entry.state),
        "place": place,
    }
    return Page("receipt.html", shown)


def gone(gate: Gate) -> Page:
    """There is no such handoff."""
    sentence = "There is no handoff of this name. It may be over for so long that it was swept away."
    return gate.problem(404, "Nothing here", sentence)


def _stale(record: core.HandoffRecord, decision: Decision) -> bool:
    seen = (record.state, record.version, payload.digest(record.offer.payload))
    return (decision.expected, decision.version, decision.digest) != seen


def is_of(record: core.HandoffRecord, decision: Decision) -> bool:
    """Whether the form is about this payload, and its version and state were ever together; no state comes twice."""
    place = decision.version - 1
    was_there = 0 <= place < record.version and record.history[place].state == decision.expected
    return was_there and decision.digest == payload.digest(record.offer.payload)
