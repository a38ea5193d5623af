"""What becomes of a notice: one small message for one committed move.

    DUE ──try──▶ delivered                      2xx
     ▲  │    └─▶ stopped                        410; another 4xx from the second try on
     │  │    └─▶ exhausted                      the fifth try failed
     └──┘        expired                        the handoff's life ends before the next try
    pause: 15 s, 1 min, 4 min, 10 min, each ± 20 %; longer when the receiver asks for it, to 15 minutes

Invariants, named by the tests that prove them:

N1  A try is counted when it begins, so that a process killed in the middle of one does not get it back: a receiver
    sees a notice at most five times, and once more only when a person asks for it.
N2  A notice that is over is never tried again, unless a person asks for it.
N3  Nothing is tried at or after the end of the handoff's life.
N4  The identifier of a notice is its handoff and version: the same over all tries, so that a receiver knows a repeat.

The body is made with the move, in its transaction, and tells no more than that something moved: never payload, note
or token. Who wants to know reads the handoff, with its own token.
"""

import json
import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal

from app.core.instants import SECOND, seconds_down

EVENT = "agent_handoff.changed"
TRIES = 5
PAUSES_SECONDS = (15, 60, 240, 600)
LONGEST_PAUSE_SECONDS = 900
JITTER = 0.2

Ending = Literal["delivered", "stopped", "exhausted", "expired"]
Cause = Literal["refused", "name", "connection", "tls", "timeout", "answer"]


@dataclass(frozen=True, slots=True)
class Notice:
    """A message to the notify URL of a handoff about the move that made this version."""

    handoff_id: str
    version: int
    url: str
    body: bytes
    expires_at: int

    @property
    def message_id(self) -> str:
        """What a receiver recognises a repeat by (N4)."""
        return f"msg_{self.handoff_id}_{self.version}"

    @property
    def receiver(self) -> str:
        """Whose turn it takes: host and port as they were written. For fairness only, never to decide where it goes."""
        return re.split(r"[/?#]", self.url.partition("://")[2], maxsplit=1)[0].lower()


@dataclass(frozen=True, slots=True)
class Delivery:
    """How far a notice has come. `due_at` is None once it is over; `result` is the last try's, as `word` says it.

    `claimed_until` is the instant until which one sender has it for itself; with `tries` it names the try.
    """

    notice: Notice
    tries: int
    due_at: int | None
    claimed_until: int
    ending: Ending | None = None
    result: str | None = None
    tried_at: int | None = None


@dataclass(frozen=True, slots=True)
class Answered:
    """The receiver answered with this HTTP status, and perhaps said how long to stay away."""

    status: int
    retry_after_seconds: int | None = None


@dataclass(frozen=True, slots=True)
class Undelivered:
    """No answer: why, in one word. `refused` is our own guard, `answer` one that is no HTTP."""

    cause: Cause


@dataclass(frozen=True, slots=True)
class Again:
    """Try once more at this instant."""

    at: int


@dataclass(frozen=True, slots=True)
class Over:
    """Nothing more is sent."""

    ending: Ending


@dataclass(frozen=True, slots=True)
class Resent:
    """It is due again, with all its tries. `repeated`: it was already, and nothing changed."""

    delivery: Delivery
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class NoNotice:
    """There is no notice about this version: no such handoff, no notify URL, the creation, or swept away."""


@dataclass(frozen=True, slots=True)
class TooLate:
    """The handoff's life is over, and with it whatever a receiver could read."""


@dataclass(frozen=True, slots=True)
class Underway:
    """A try is going on at this moment."""


@dataclass(frozen=True, slots=True)
class TriedMeanwhile:
    """It was tried since the person looked: what they decided on is not what there is."""


def resend(delivery: Delivery, seen_tried_at: int | None, now: int) -> Resent | TooLate | Underway | TriedMeanwhile:
    """A person asks for it once more; whether it was delivered makes no difference.

    `seen_tried_at` is the last try that they saw, so that a form that is sent twice sends nothing twice.
    """
    if now >= delivery.notice.expires_at:
        return TooLate()
    if delivery.claimed_until > now:
        return Underway()
    if delivery.tried_at != seen_tried_at:
        return TriedMeanwhile()
    if delivery.tries == 0 and delivery.due_at is not None and delivery.due_at <= now:
        return Resent(delivery, repeated=True)
    return Resent(replace(delivery, tries=0, due_at=now, ending=None))


def before_try(*, tries: int, expires_at: int, now: int) -> Over | None:
    """Whether a due notice that began `tries` tries may begin another; None when it may."""
    if now >= expires_at:
        return Over("expired")
    if tries >= TRIES:  # the process died in the middle of the last one
        return Over("exhausted")
    return None


def after_try(result: Answered | Undelivered, *, tries: int, expires_at: int, now: int, jitter: float) -> Again | Over:
    """What follows on the result of a try. `tries` counts it; `jitter` is a random number in [0, 1)."""
    asked = 0
    if isinstance(result, Answered):
        if 200 <= result.status < 300:
            return Over("delivered")
        if result.status == 410 or (400 <= result.status < 500 and tries >= 2):
            return Over("stopped")
        asked = min(result.retry_after_seconds or 0, LONGEST_PAUSE_SECONDS)
    if tries >= TRIES:
        return Over("exhausted")
    pause = PAUSES_SECONDS[tries - 1] * (1 - JITTER + 2 * JITTER * jitter)
    again = now + round(max(pause, asked) * SECOND)
    return Over("expired") if again >= expires_at else Again(again)


def word(result: Answered | Undelivered) -> str:
    """The result for a table: the status or the cause."""
    return str(result.status) if isinstance(result, Answered) else result.cause


def body(
    *,
    handoff_id: str,
    state: str,
    previous: str,
    by: str,
    version: int,
    ended: bool,
    changed_at: int,
    result_url: str,
) -> bytes:
    """The message about a committed move. `changed_at`: microseconds; printed in whole seconds, rounded down."""
    members = {
        "event": EVENT,
        "handoff_id": handoff_id,
        "state": state,
        "previous": previous,
        "by": by,
        "version": version,
        "ended": ended,
        "changed_at": datetime.fromtimestamp(seconds_down(changed_at), UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "changed_at_timestamp": seconds_down(changed_at),
        "result_url": result_url,
    }
    return json.dumps(members, separators=(",", ":")).encode("ascii")
