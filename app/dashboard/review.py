"""The reviewer's pages: a person with nothing but a link `…/review#<handoff_id>.<token>`.

`/review` is the same bytes for everyone and holds no secret. Its script takes the fragment out of the address and
trades it by POST for a cookie that opens this one handoff only; without the script the token is pasted into a field.
The trade moves nothing and uses nothing up, so a link scanner may do it as often as it likes. The cookie is sealed with
the server's key and holds which handoff, which side and until when: nothing is stored, and the token is not in it.
"""

import re

from flask import Blueprint, request

from app import tokens
from app.core import handoff as core
from app.core.instants import SECOND, seconds_down
from app.dashboard import deciding
from app.dashboard.deciding import Decision, Place
from app.dashboard.gate import Cookie, Gate, Goto, Page, Turned, Visit
from app.dashboard.handoff import waiting
from app.services.handoff import Handoffs

_GRACE_SECONDS = 3600
_CAP = 8 * 1024
_LINK = re.compile(r"([0-9a-f]{32})\.([A-Za-z0-9_-]{1,128})", re.ASCII)
_COOKIE = re.compile(r"(owner|receiver)\.(\d{1,12})\.([A-Za-z0-9_-]{43})", re.ASCII)
_WRONG = "That token opens no handoff. Ask whoever sent the link for it once more; it may also be over for long."


class Review:
    """/review and /review/<id>."""

    def __init__(self, gate: Gate, handoffs: Handoffs) -> None:
        self._gate = gate
        self._handoffs = handoffs
        self._key = gate.settings.secret_key.encode()
        self._cookie = ("__Secure-" if gate.is_secure else "") + "fencepost_review"

    # --------------------------------------------------------------------------------------- the trade

    def stranger(self) -> Visit:
        """Somebody who has shown nothing yet."""
        return Visit(None, "")

    def stranger_with_form(self) -> Visit:
        """The same with a form. What it proves is in it: it needs no cookie, so there is none to abuse."""
        self._gate.check_origin()
        return Visit(None, "", form=self._gate.read_form(_CAP))

    def door(self, _: Visit) -> Page:
        """The page that the link leads to."""
        return Page("review_door.html", {"sentence": ""}, is_same_for_all=True)

    def trade(self, visit: Visit) -> Page | Goto:
        """A token for a cookie."""
        link = _LINK.fullmatch(visit.first("token").strip().rpartition("#")[2])
        opened = None if link is None else self._handoffs.open(handoff_id=link.group(1), token=link.group(2))
        if link is None or opened is None:
            return Page("review_door.html", {"sentence": _WRONG}, 404, is_same_for_all=True)
        role, record, now = opened
        handoff_id, path = record.handoff_id, f"/review/{record.handoff_id}"
        left = max(0, seconds_down(record.expires_at - now)) + _GRACE_SECONDS
        end = str(seconds_down(now) + left)
        sealed = tokens.sealed(self._key, "review", handoff_id, role, end)
        return Goto(path, (Cookie(self._cookie, f"{role}.{end}.{sealed}", left, path),))

    # --------------------------------------------------------------------------------------- the handoff

    def reviewer(self) -> Visit:
        """Somebody whose cookie opens the handoff of this path. Raises Turned."""
        value = request.cookies.get(self._cookie, "")
        if self._role(value, str((request.view_args or {}).get("handoff_id"))) is None:
            said = "This page opens with the link that you were sent. Open it again, or paste its token here."
            raise Turned(Page("review_door.html", {"sentence": said}, 401, is_same_for_all=True))
        return Visit(None, self._gate.sealed("review:" + value), value)

    def reviewer_with_form(self) -> Visit:
        """The same with a form that is theirs. Raises Turned, Refused."""
        return self._gate.proven(self.reviewer(), _CAP)

    def show(self, visit: Visit, handoff_id: str) -> Page:
        """What is asked, of whom, until when; or what came of it."""
        record, now, place, role = self._find(visit, handoff_id)
        shown = {
            **deciding.words(record, role, now),
            "title": record.offer.title or "A handoff for you",
            "place": place,
            "role": role,
            "waiters": waiting(self._handoffs.waiters(handoff_id)),
            "feed": "poll",
        }
        return Page("review.html", shown)

    def choose(self, visit: Visit, handoff_id: str) -> Page:
        """A button of a state was pressed: ask once more."""
        record, now, place, _ = self._find(visit, handoff_id)
        decision = deciding.read_decision(visit, handoff_id, self._gate)
        if isinstance(decision, Page):
            return decision
        return deciding.confirm(self._gate, place, record, decision, now)

    def move(self, visit: Visit, handoff_id: str) -> Page | Goto:
        """Confirm was pressed."""
        record, now, place, role = self._find(visit, handoff_id)
        decision = deciding.read_decision(visit, handoff_id, self._gate)
        if isinstance(decision, Page):
            return decision

        def take(wish: Decision) -> core.Moved | core.MoveRefusal | core.NotFound:
            return self._handoffs.move_as_reviewer(
                handoff_id=handoff_id,
                role=role,
                to=wish.to,
                expected=wish.expected,
                nonce=wish.nonce,
                note=wish.note,
            )

        return deciding.decide(self._gate, place, visit, record, decision, now, take)

    def receipt(self, visit: Visit, handoff_id: str, version: str) -> Page:
        """What was decided."""
        record, now, place, _ = self._find(visit, handoff_id)
        page = deciding.receipt(self._gate, place, record, version, now)
        return Page(page.template, {**page.words, "following": None}, page.status)

    def _find(self, visit: Visit, handoff_id: str) -> tuple[core.HandoffRecord, int, Place, core.Role]:
        found, now = self._handoffs.look_at([handoff_id])
        role = self._role(visit.token, handoff_id)
        if handoff_id not in found or role is None:
            raise Turned(deciding.gone(self._gate))
        return found[handoff_id], now, Place(f"/review/{handoff_id}", "review_frame.html", role), role

    def _role(self, value: str, handoff_id: str) -> core.Role | None:
        """Which side the cookie is of; None for one that was not sealed for this handoff, or is over."""
        parts = _COOKIE.fullmatch(value)
        if parts is None:
            return None
        role: core.Role = "owner" if parts.group(1) == "owner" else "receiver"
        sealed = tokens.sealed(self._key, "review", handoff_id, role, parts.group(2))
        is_ours = tokens.same_text(parts.group(3), sealed)
        return role if is_ours and self._gate.clock.now() < int(parts.group(2)) * SECOND else None


def add_routes(routes: Blueprint, gate: Gate, handoffs: Handoffs) -> None:
    """The door, the trade, the page, the question, the move and the receipt."""
    review = Review(gate, handoffs)
    gate.open(routes, "/review", review.door, visit=review.stranger)
    gate.open(routes, "/review", review.trade, visit=review.stranger_with_form, method="POST")
    one = "/review/<handoff_id>"
    gate.open(routes, one, review.show, visit=review.reviewer)
    gate.open(routes, one + "/choose", review.choose, visit=review.reviewer_with_form, method="POST")
    gate.open(routes, one + "/move", review.move, visit=review.reviewer_with_form, method="POST")
    gate.open(routes, one + "/receipts/<version>", review.receipt, visit=review.reviewer)
