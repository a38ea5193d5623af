"""What a caller cannot go on from. Every refusal of the server has a class of its own, found by its stable code."""

from collections.abc import Mapping
from typing import Any


class FencepostError(Exception):
    """Anything this package raises."""


class Unreachable(FencepostError):
    """The server gave no usable answer within the time limit, though the call was sent again and again.

    Whether it was carried out is unknown; sending the same call once more is safe, for it carries its own token.
    """


class LeaseLost(FencepostError):
    """The lease is not certainly held any more: stop the guarded work.

    `reason` is "lost" when the server said so, "expired" when no renewal was heard of in time, "broken" when an
    operator took it.
    """

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(f"the lease of {key!r} is lost: {reason}")
        self.reason = reason


class NotGranted(FencepostError):
    """The lease could not be had in the time given; `outcome` says who or what stood in the way."""

    def __init__(self, key: str, outcome: object) -> None:
        super().__init__(f"the lease of {key!r} was not granted: {type(outcome).__name__}")
        self.outcome = outcome


class InProgressElsewhere(FencepostError):
    """Another caller is still at this action, and it did not end in the time given."""


class Refused(FencepostError):
    """The server refused the call as it was sent. `code` is stable, `details` is the whole answer."""

    code = ""

    def __init__(self, status: int, answer: Mapping[str, Any]) -> None:
        super().__init__(
            f"{answer.get('error', 'refused')} ({answer.get('code', status)}). {answer.get('fix', '')}".strip()
        )
        self.status = status
        self.details = answer


_CLASSES: dict[str, type[Refused]] = {}


def _refusal(name: str, code: str, meaning: str) -> type[Refused]:
    made = type(name, (Refused,), {"code": code, "__doc__": meaning, "__module__": __name__})
    _CLASSES[code] = made
    return made


InvalidRequest = _refusal("InvalidRequest", "invalid_request", "A member is missing, unknown or out of its range.")
InvalidJson = _refusal("InvalidJson", "invalid_json", "The body was no strict JSON.")
TokenRequired = _refusal("TokenRequired", "token_required", "No bearer token was sent.")
NotFound = _refusal("NotFound", "not_found", "No such object, or not with this token.")
NoClaim = _refusal("NoClaim", "no_claim", "There is no such claim.")
Expired = _refusal("Expired", "expired", "The handoff's life is over.")
StateMismatch = _refusal("StateMismatch", "state_mismatch", "The handoff is in another state than the move expected.")
UnknownState = _refusal("UnknownState", "unknown_state", "The handoff does not declare that state.")
TransitionNotAllowed = _refusal("TransitionNotAllowed", "transition_not_allowed", "The machine has no such move.")
MoveNotPermitted = _refusal("MoveNotPermitted", "move_not_permitted", "This party may not move into that state.")
NonceConflict = _refusal("NonceConflict", "nonce_conflict", "The nonce was used for something else.")
ResultTooLarge = _refusal("ResultTooLarge", "result_too_large", "The result is too big; the lease or claim stays.")
PayloadTooLarge = _refusal("PayloadTooLarge", "payload_too_large", "The payload is too big.")
BodyTooLarge = _refusal("BodyTooLarge", "body_too_large", "The request is too big.")
AlreadyCompleted = _refusal("AlreadyCompleted", "already_completed", "It was completed already.")
ClaimLost = _refusal("ClaimLost", "claim_lost", "Another caller has taken the claim over.")
NotLeased = _refusal("NotLeased", "not_leased", "The claim has no lease to renew.")
Forbidden = _refusal("Forbidden", "forbidden", "The namespace belongs to somebody else.")
WeakNamespace = _refusal("WeakNamespace", "weak_namespace", "The server wants a stronger name.")
NotifyUrlRefused = _refusal("NotifyUrlRefused", "notify_url_refused", "Webhooks may not go there.")
RateLimited = _refusal("RateLimited", "rate_limited", "The daily allowance is used up.")
Full = _refusal("Full", "full", "There is no room for another live handoff.")
LeaseLostAnswer = _refusal("LeaseLostAnswer", "lease_lost", "The owner token does not hold the lease.")


def refused(status: int, answer: Mapping[str, Any]) -> Refused:
    """The exception of an answer that is no success and that no caller branches on."""
    return _CLASSES.get(str(answer.get("code")), Refused)(status, answer)


class PayloadMismatch(FencepostError):
    """The action key was claimed for another payload: one of the two callers uses the key wrongly."""
