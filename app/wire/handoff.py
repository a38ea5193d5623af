"""What the four handoff routes answer. What they take is in handoff_members.py.

The payload never goes through a parser and a printer: it is kept and answered as its text.
"""

from collections.abc import Callable
from typing import assert_never

from app.core import handoff as core
from app.core.instants import seconds_down
from app.core.limits import Exhausted
from app.wire import errors, tags
from app.wire.codes import Code
from app.wire.handoff_answers import CreatedAnswer, HistoryEntry, MovedAnswer, SeenAnswer, WaitedAnswer
from app.wire.json import RawJson
from app.wire.reply import Reply, iso, pair, refusal


def created(
    outcome: core.Created | core.OfferConflict | core.NoRoom | Exhausted,
    *,
    owner_token: str,
    receiver_token: str,
    public_url: str,
    notify_secret: Callable[[str], str],
) -> Reply:
    """The answer to a creation. `public_url` is how callers reach this server.

    `notify_secret(handoff_id)` is shown where there is a URL to notify.
    """
    match outcome:
        case core.Created(record=record):
            path = f"/services/v1/handoff/{record.handoff_id}"
            body: CreatedAnswer = {
                "ok": True,
                "handoff_id": record.handoff_id,
                "owner_token": owner_token,
                "receiver_token": receiver_token,
                "state": record.state,
                "ended": record.is_ended,
                "version": record.version,
                "states": list(record.machine.states),
                "final": list(record.machine.final),
                "transitions": _transitions(record),
                "created_at": iso(record.created_at),
                "created_at_timestamp": seconds_down(record.created_at),
                "expires_at": iso(record.expires_at),
                "expires_at_timestamp": seconds_down(record.expires_at),
                "expire_timestamp": seconds_down(record.expires_at),
                "seconds_left": seconds_down(outcome.left),
                "read_url": public_url + path,
                "review_url": f"{public_url}/review#{record.handoff_id}.{receiver_token}",
            }
            if record.offer.notify_url is not None:
                body["notify_secret"] = notify_secret(record.handoff_id)
            if outcome.repeated:
                body["repeated"] = True
            return Reply(201, body)
        case core.OfferConflict():
            return refusal(
                Code.NONCE_CONFLICT, error="This nonce was used to create another handoff; nothing was created"
            )
        case core.NoRoom():
            return errors.full(
                outcome.retry_after_seconds, error="As many handoffs are live as this server takes; nothing was created"
            )
        case Exhausted():
            return errors.rate_limited(outcome.reset_seconds, what="new handoffs", limit=outcome.limit)
        case _:
            assert_never(outcome)


def notify_url_refused(reason: str) -> Reply:
    """400: no webhook may go there, for a reason that can be told without asking a name server."""
    return refusal(Code.NOTIFY_URL_REFUSED, error=f"{reason}; nothing was created")


def read(outcome: core.Seen | core.Expired | core.NotFound, if_none_match: str | None) -> Reply:
    """The answer to a read; 304 for a caller that knows this version."""
    match outcome:
        case core.Seen():
            tag = tags.header(outcome.record.version)
            if tags.matches(if_none_match, outcome.record.version):
                return Reply(304, {}, tag)
            return Reply(200, seen(outcome), tag)
        case core.Expired():
            return _expired(outcome)
        case core.NotFound():
            return errors.not_found()
        case _:
            assert_never(outcome)


def waited(outcome: core.Waited | core.Expired | core.NotFound) -> Reply:
    """The answer to a wait."""
    match outcome:
        case core.Waited():
            body: WaitedAnswer = {
                **seen(outcome.seen),
                "changed": outcome.has_changed,
                "wait_reason": outcome.reason,
                "waited_seconds": round(outcome.waited_seconds, 1),
            }
            return Reply(200, body, tags.header(outcome.seen.record.version))
        case core.Expired():
            return _expired(outcome)
        case core.NotFound():
            return errors.not_found()
        case _:
            assert_never(outcome)


def moved(outcome: core.Moved | core.MoveRefusal | core.NotFound) -> Reply:
    """The answer to a move."""
    match outcome:
        case core.Moved():
            return _moved(outcome)
        case core.NonceConflict():
            return _refused(Code.NONCE_CONFLICT, outcome)
        case core.UnknownState():
            return _refused(Code.UNKNOWN_STATE, outcome, {"states": list(outcome.record.machine.states)})
        case core.StateMismatch():
            return _refused(Code.STATE_MISMATCH, outcome)
        case core.TransitionNotAllowed():
            return _refused(Code.TRANSITION_NOT_ALLOWED, outcome)
        case core.NotPermitted():
            return _refused(Code.MOVE_NOT_PERMITTED, outcome)
        case core.Expired():
            return _expired(outcome)
        case core.NotFound():
            return errors.not_found()
        case _:
            assert_never(outcome)


def seen(outcome: core.Seen) -> SeenAnswer:
    """The body of a read."""
    record = outcome.record
    body: SeenAnswer = {
        "ok": True,
        "handoff_id": record.handoff_id,
        "state": record.state,
        "ended": record.is_ended,
        "version": record.version,
        "role": outcome.role,
        "states": list(record.machine.states),
        "final": list(record.machine.final),
        "transitions": _transitions(record),
        "allowed": list(record.allowed(outcome.role)),
        "payload": RawJson(record.offer.payload.decode("utf-8")),
        "note": record.offer.note,
        "title": record.offer.title,
        "audience": record.offer.audience,
        "history": [entry(line) for line in record.history],
        "created_at": iso(record.created_at),
        "created_at_timestamp": seconds_down(record.created_at),
        "expires_at": iso(record.expires_at),
        "expires_at_timestamp": seconds_down(record.expires_at),
        "seconds_left": seconds_down(outcome.left),
    }
    if record.machine.permissions is not None:
        body["permissions"] = dict(record.machine.permissions)
    return body


def entry(line: core.Entry) -> HistoryEntry:
    """One line of a history."""
    body: HistoryEntry = {
        "state": line.state,
        "from": line.previous,
        "by": line.by,
        "at": iso(line.at),
        "at_timestamp": seconds_down(line.at),
        "note": line.note,
    }
    if line.actor is not None:
        body["actor"] = line.actor
    return body


def _moved(outcome: core.Moved) -> Reply:
    line, record = outcome.entry, outcome.record
    body: MovedAnswer = {
        "ok": True,
        "state": line.state,
        "previous": line.previous or "",
        "by": line.by,
        "version": outcome.version,
        "ended": outcome.is_ended,
        "changed_at": iso(line.at),
        "changed_at_timestamp": seconds_down(line.at),
        "history_length": outcome.version,
        "repeated": outcome.repeated,
        "current_state": record.state,
        "current_version": record.version,
        "current_ended": record.is_ended,
    }
    if line.actor is not None:
        body["actor"] = line.actor
    return Reply(200, body)


_Refusal = core.NonceConflict | core.UnknownState | core.StateMismatch | core.TransitionNotAllowed | core.NotPermitted


def _refused(code: Code, outcome: _Refusal, more: dict[str, object] | None = None) -> Reply:
    allowed = {"allowed": list(outcome.record.allowed(outcome.by))}
    return refusal(code, members={**_standing(outcome.record), **allowed, **(more or {})})


def _expired(outcome: core.Expired) -> Reply:
    record = outcome.record
    return refusal(Code.EXPIRED, members={**_standing(record), **pair("expires_at", record.expires_at)})


def _standing(record: core.HandoffRecord) -> dict[str, object]:
    return {"current_state": record.state, "current_version": record.version, "current_ended": record.is_ended}


def _transitions(record: core.HandoffRecord) -> dict[str, list[str]]:
    return {state: list(targets) for state, targets in record.machine.transitions.items()}
