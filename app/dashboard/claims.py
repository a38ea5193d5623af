"""Claims: what is unfinished and since when, what was completed, and the release of an abandoned one."""

import re
from urllib.parse import urlencode

from flask import Blueprint

from app.core.claim import ClaimRecord, ClaimReleased
from app.dashboard.gate import Gate, Goto, Page, Visit
from app.services.claim import Claims
from app.services.overview import ClaimPlace, Overview

_AFTER = re.compile(r"(\d{1,18})\.([0-9a-f]{64})", re.ASCII)
_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)
_FENCE = re.compile(r"[1-9]\d{0,15}", re.ASCII)
_LONGEST_REASON = 500


class ClaimList:
    """The pages."""

    def __init__(self, gate: Gate, overview: Overview, claims: Claims) -> None:
        self._gate = gate
        self._overview = overview
        self._claims = claims

    def show(self, visit: Visit) -> Page:
        """One page of the list: unfinished ones, or completed ones."""
        is_open = visit.query.get("show") != "completed"
        page = self._overview.claims(completed=not is_open, after=_place(visit.query.get("after", "")))
        older = None
        if page.after is not None:
            shown = {} if is_open else {"show": "completed"}
            older = urlencode({**shown, "after": f"{page.after[0]}.{page.after[1].hex()}"})
        words = {
            "title": "Claims",
            "rows": page.rows,
            "now": page.now,
            "is_open": is_open,
            "is_first": "after" not in visit.query,
            "standing": standing,
            "older": older,
            "feed": "claims",
            "refresh": 15,
        }
        return Page("claims.html", words)

    def one(self, visit: Visit, digest: str) -> Page:
        """One claim, with the form that releases it."""
        claim, now = self._overview.claim(_hash(digest))
        if claim is None:
            return self._gate.problem(404, "No such claim", "It is over, or the address is not right.")
        words = {"title": "Claim", "digest": digest, "claim": claim, "now": now, "standing": standing, "feed": "claims"}
        return Page("claim.html", {**words, "refresh": 15})

    def release(self, visit: Visit, digest: str) -> Page | Goto:
        """Release the unfinished claim that was seen."""
        fence, reason = visit.first("fence").strip(), visit.first("reason").strip()
        if not _FENCE.fullmatch(fence):
            return self._not_done(
                "Say which claim you mean: the fencing token is a whole number, as the page shows it."
            )
        if not 1 <= len(reason) <= _LONGEST_REASON:
            return self._not_done(f"Give a reason of 1 to {_LONGEST_REASON} characters; the audit keeps it.")
        outcome = self._claims.break_off(claim_hash=_hash(digest), fence=int(fence), actor=visit.name, reason=reason)
        if isinstance(outcome, ClaimReleased):
            return Goto("/claims")
        return self._not_done("It is finished, over, or claimed anew. Nothing was released: look again.", 409)

    def _not_done(self, sentence: str, status: int = 400) -> Page:
        return self._gate.problem(status, "Not released", sentence, onward="/claims")


def standing(record: ClaimRecord, now: int) -> str:
    """Where it stands, in the words of the interface."""
    if record.is_completed():
        return "completed"
    if record.is_lapsed(now):
        return "lapsed"
    return "held" if record.lease_expires_at is None else "in_progress"


def _hash(digest: str) -> bytes:
    return bytes.fromhex(digest) if _DIGEST.fullmatch(digest) else b""


def _place(text: str) -> ClaimPlace | None:
    found = _AFTER.fullmatch(text)
    return None if found is None else (int(found.group(1)), bytes.fromhex(found.group(2)))


def add_routes(routes: Blueprint, gate: Gate, overview: Overview, claims: Claims) -> None:
    """/claims, one claim, and its release."""
    listed = ClaimList(gate, overview, claims)
    gate.page(routes, "/claims", listed.show)
    gate.page(routes, "/claims/<digest>", listed.one)
    gate.form(routes, "/claims/<digest>/release", listed.release)
