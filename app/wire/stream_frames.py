"""The frames that a server sends, as compact JSON in UTF-8. docs/stream.md shows one of each."""

from collections.abc import Mapping

from app.core.handoff import HandoffRecord, Mover, Seen
from app.core.instants import seconds_down
from app.wire.codes import MEANINGS, Code
from app.wire.handoff import seen
from app.wire.json import dump
from app.wire.reply import pair

HEARTBEAT_SECONDS = 20


def hello(*, version: str, now: int, limits: Mapping[str, int]) -> bytes:
    """The first frame."""
    return dump(
        {
            "t": "hello",
            "server": "fencepost",
            "version": version,
            **pair("now", now),
            "heartbeat_seconds": HEARTBEAT_SECONDS,
            "limits": dict(limits),
        }
    )


def snap(id: str, record: HandoffRecord, by: Mover, left: int, *, is_reset: bool, wants_payload: bool) -> bytes:
    """What a read answers, as the token's side sees it. `left` is microseconds of life."""
    members = dict(seen(Seen(record, by, left)))
    payload = members.pop("payload")
    del members["ok"], members["handoff_id"]
    frame = {"t": "snap", "id": id, "handoff": record.handoff_id, **members}
    if is_reset:
        frame["reset"] = True
    if wants_payload:
        frame["payload"] = payload
    return dump(frame)


def chg(id: str, record: HandoffRecord, version: int, left: int) -> bytes:
    """The move that made this version."""
    entry = record.history[version - 1]
    frame: dict[str, object] = {
        "t": "chg",
        "id": id,
        "handoff": record.handoff_id,
        "version": version,
        "state": entry.state,
        "previous": entry.previous,
        "by": entry.by,
        **pair("at", entry.at),
        "note": entry.note,
        "ended": record.machine.is_final(entry.state),
        "seconds_left": seconds_down(left),
    }
    if entry.actor is not None:
        frame["actor"] = entry.actor
    return dump(frame)


def live(id: str, record: HandoffRecord) -> bytes:
    """Everything up to this version has been sent."""
    return dump({"t": "live", "id": id, "handoff": record.handoff_id, "version": record.version})


def end(id: str, record: HandoffRecord, reason: str) -> bytes:
    """Nothing follows for this subscription."""
    return dump(
        {
            "t": "end",
            "id": id,
            "handoff": record.handoff_id,
            "version": record.version,
            "state": record.state,
            "reason": reason,
        }
    )


def lease(id: str, *, status: str, fence: int | None, left: int | None, cause: str | None) -> bytes:
    """Where a lease stands. `left` is microseconds."""
    return dump(
        {
            "t": "lease",
            "id": id,
            "status": status,
            "fencing_token": fence,
            "seconds_left": None if left is None else seconds_down(left),
            "cause": cause,
        }
    )


def feed(id: str, name: str, members: Mapping[str, object]) -> bytes:
    """What is new on one of the operator's feeds."""
    return dump({"t": "feed", "id": id, "feed": name, **members})


def err(id: str | None, code: str, error: str | None = None, retry_after_ms: int | None = None) -> bytes:
    """This frame or subscription failed; the socket stays. The sentence defaults to the code's own."""
    said = error or MEANINGS[Code(code)].error
    return dump({"t": "err", "id": id, "code": str(code), "error": said, "retry_after_ms": retry_after_ms})


def heartbeat(*, now: int, subscriptions: int) -> bytes:
    """Still here."""
    return dump({"t": "hb", **pair("now", now), "subs": subscriptions})


def goaway(reason: str, reconnect_after_ms: int) -> bytes:
    """A planned close follows."""
    return dump({"t": "goaway", "reason": reason, "reconnect_after_ms": reconnect_after_ms})
