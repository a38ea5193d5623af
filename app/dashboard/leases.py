"""Leases: what is held and until when, what ended and why, and the break.

Keys are known to the server only as digests. The page can name them: the names are digested in the browser, with the
recipe of services/lease.key_hash, and never sent. A break needs the fencing token that was seen: another one meanwhile
means another holder, who is left alone.
"""

import re
from urllib.parse import urlencode

from flask import Blueprint

from app.core.instants import SECOND
from app.core.lease import Broken, LeaseRecord
from app.dashboard.gate import Gate, Goto, Page, Visit
from app.services.lease import Leases
from app.services.overview import LeasePlace, Overview

_AFTER = re.compile(r"(\d{1,18})\.([0-9a-f]{64})", re.ASCII)
_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)
_FENCE = re.compile(r"[1-9]\d{0,15}", re.ASCII)
_LONGEST_REASON = 500
_ROWS = (100, 500, 2_000)
"""How many rows a page has: few for everybody, many for who watches a whole fleet."""


class LeaseList:
    """The pages."""

    def __init__(self, gate: Gate, overview: Overview, leases: Leases) -> None:
        self._gate = gate
        self._overview = overview
        self._leases = leases

    def show(self, visit: Visit) -> Page:
        """One page of the list: live ones, or ended ones."""
        is_held = visit.query.get("show") != "ended"
        most = next((most for most in _ROWS if str(most) == visit.query.get("rows")), _ROWS[0])
        page = self._overview.leases(held=is_held, after=_place(visit.query.get("after", "")), most=most)
        shown = ({} if is_held else {"show": "ended"}) | ({} if most == _ROWS[0] else {"rows": str(most)})
        older = None
        if page.after is not None:
            older = urlencode({**shown, "after": f"{page.after[0]}.{page.after[1].hex()}"})
        words = {
            "title": "Leases",
            "rows": page.rows,
            "now": page.now,
            "is_held": is_held,
            "most": most,
            "choices": _ROWS,
            "query": urlencode(shown),
            "is_first": "after" not in visit.query,
            "in_line": {row.key_hash: self._leases.in_line(row.key_hash) for row in page.rows},
            "ending": ending,
            "older": older,
            "second": SECOND,
            "feed": "leases",
            "refresh": 15,
        }
        return Page("leases.html", words)

    def one(self, visit: Visit, digest: str) -> Page:
        """One lease, with the form that breaks it."""
        hashed = self._known(digest)
        found, now = self._leases.statuses([hashed])
        status = found[hashed]
        if status.record is None:
            return self._gate.problem(404, "No such lease", "Its lifecycle is over, or the address is not right.")
        words = {
            "title": "Lease",
            "digest": digest,
            "record": status.record,
            "status": status.status,
            "now": now,
            "in_line": self._leases.in_line(hashed),
            "ending": ending,
            "second": SECOND,
            "feed": "leases",
            "refresh": 15,
        }
        return Page("lease.html", words)

    def break_off(self, visit: Visit, digest: str) -> Page | Goto:
        """Take the key from the holder that was seen."""
        hashed = self._known(digest)
        fence, reason = visit.first("fence").strip(), visit.first("reason").strip()
        if not _FENCE.fullmatch(fence):
            return self._not_done(
                "Say which holder you mean: the fencing token is a whole number, as the page shows it."
            )
        if not 1 <= len(reason) <= _LONGEST_REASON:
            return self._not_done(f"Give a reason of 1 to {_LONGEST_REASON} characters; the audit keeps it.")
        outcome = self._leases.break_off(hashed=hashed, fence=int(fence), actor=visit.name, reason=reason)
        if isinstance(outcome, Broken):
            return Goto(f"/leases/{digest}")
        now_fence = "nobody holds it now" if outcome.fence is None else f"its fencing token is {outcome.fence} now"
        return self._not_done(
            f"It is not held under fencing token {fence} any more ({now_fence}). Nothing was broken: look again.", 409
        )

    def _not_done(self, sentence: str, status: int = 400) -> Page:
        return self._gate.problem(status, "Not broken", sentence, onward="/leases")

    def _known(self, digest: str) -> bytes:
        return bytes.fromhex(digest) if _DIGEST.fullmatch(digest) else b""


def ending(record: LeaseRecord, now: int) -> str:
    """Why nobody holds it: completed, released, broken or lapsed; empty while somebody does."""
    if record.is_held(now):
        return ""
    return record.spent_how or "lapsed" if record.owner_hash is None else "lapsed"


def _place(text: str) -> LeasePlace | None:
    found = _AFTER.fullmatch(text)
    return None if found is None else (int(found.group(1)), bytes.fromhex(found.group(2)))


def add_routes(routes: Blueprint, gate: Gate, overview: Overview, leases: Leases) -> None:
    """/leases, one lease, and its break."""
    listed = LeaseList(gate, overview, leases)
    gate.page(routes, "/leases", listed.show)
    gate.page(routes, "/leases/<digest>", listed.one)
    gate.form(routes, "/leases/<digest>/break", listed.break_off)
