"""Deliveries: the webhooks that fail, wait or arrived, and how to have one sent again.

The form names the last try that was seen, so a double click, the back button and a repeated POST send nothing twice.
"""

import re
from urllib.parse import urlencode

from flask import Blueprint

from app.core.outbox import TRIES, Delivery, NoNotice, Resent, TooLate, TriedMeanwhile
from app.dashboard.gate import Gate, Goto, Page, Visit
from app.services.outbox import Outbox
from app.services.overview import DeliveryKind, DeliveryPlace, Overview

_AFTER = re.compile(r"(\d{1,18})\.([0-9a-f]{32})\.(\d{1,3})", re.ASCII)
_NAME = re.compile(r"[0-9a-f]{32}", re.ASCII)
_VERSION = re.compile(r"[1-9]\d{0,2}", re.ASCII)
_TRIED_AT = re.compile(r"\d{0,18}", re.ASCII)
_KINDS: tuple[DeliveryKind, ...] = ("failing", "waiting", "delivered")


class DeliveryList:
    """The page, and the deed."""

    def __init__(self, gate: Gate, overview: Overview, outbox: Outbox) -> None:
        self._gate = gate
        self._overview = overview
        self._outbox = outbox

    def show(self, visit: Visit) -> Page:
        """One page of the list."""
        asked = visit.query.get("show", "")
        kind: DeliveryKind = next((known for known in _KINDS if known == asked), "failing")
        page = self._overview.deliveries(kind, after=_place(visit.query.get("after", "")))
        older = None
        if page.after is not None:
            older = urlencode({"show": kind, "after": "{}.{}.{}".format(*page.after)})
        words = {
            "title": "Deliveries",
            "rows": page.rows,
            "now": page.now,
            "kinds": _KINDS,
            "kind": kind,
            "is_first": "after" not in visit.query,
            "standing": standing,
            "tries": TRIES,
            "older": older,
            "feed": "handoffs",
            "refresh": 15,
        }
        return Page("deliveries.html", words)

    def resend(self, visit: Visit) -> Page | Goto:
        """Resend was pressed."""
        handoff_id, version, seen = (visit.first(name) for name in ("handoff", "version", "tried"))
        if not (_NAME.fullmatch(handoff_id) and _VERSION.fullmatch(version) and _TRIED_AT.fullmatch(seen)):
            return self._not_done("Load the page and press Resend again.", 400)
        outcome = self._outbox.resend(
            handoff_id=handoff_id,
            version=int(version),
            seen_tried_at=int(seen) if seen else None,
            actor=visit.name,
        )
        match outcome:
            case Resent():
                return Goto("/deliveries?show=waiting")
            case NoNotice():
                return self._not_done("There is no such notice any more: its handoff is over.", 404)
            case TooLate():
                return self._not_done("Its handoff has expired; nothing is left to be read.", 410)
            case TriedMeanwhile():
                return self._not_done("It was tried since this page was made. Look what came of it first.", 409)
            case _:
                return self._not_done("It is being sent at this very moment. Look again in a few seconds.", 409)

    def _not_done(self, sentence: str, status: int) -> Page:
        return self._gate.problem(status, "Not sent again", sentence, onward="/deliveries")


def standing(delivery: Delivery, now: int) -> str:
    """How far it has come, in one word."""
    if delivery.ending is not None:
        return delivery.ending
    if delivery.claimed_until > now:
        return "sending"
    return "retrying" if delivery.tries else "waiting"


def _place(text: str) -> DeliveryPlace | None:
    found = _AFTER.fullmatch(text)
    return None if found is None else (int(found.group(1)), found.group(2), int(found.group(3)))


def add_routes(routes: Blueprint, gate: Gate, overview: Overview, outbox: Outbox) -> None:
    """/deliveries, and Resend."""
    listed = DeliveryList(gate, overview, outbox)
    gate.page(routes, "/deliveries", listed.show)
    gate.form(routes, "/deliveries/resend", listed.resend)
