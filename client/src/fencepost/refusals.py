"""The refusals, one class for each code that the server answers with. See docs/errors.md of the server for each."""

from fencepost.errors import Refused, Unreachable


class InvalidRequest(Refused):
    """A member is missing, unknown or out of its range."""

    code = "invalid_request"


class InvalidJson(Refused):
    """The body was no strict JSON."""

    code = "invalid_json"


class QueryNotAllowed(Refused):
    """The route takes no query parameters."""

    code = "query_not_allowed"


class IncompleteBody(Refused):
    """The body ended too early; nothing was done."""

    code = "incomplete_body"


class TokenRequired(Refused):
    """No bearer token was sent."""

    code = "token_required"


class OriginNotAllowed(Refused):
    """The server does not answer pages of this origin."""

    code = "origin_not_allowed"


class UpgradeRequired(Refused):
    """This address is a WebSocket."""

    code = "upgrade_required"


class UnknownRoute(Refused):
    """There is no such route: is this a Fencepost server?"""

    code = "unknown_route"


class NotFound(Refused):
    """No such object, or not with this token."""

    code = "not_found"


class MethodNotAllowed(Refused):
    """The route does not take that method."""

    code = "method_not_allowed"


class NotAcceptable(Refused):
    """Answers are JSON."""

    code = "not_acceptable"


class RequestTimeout(Refused):
    """The body came too slowly; nothing was done."""

    code = "request_timeout"


class BodyTooLarge(Refused):
    """The request is too big."""

    code = "body_too_large"


class UnsupportedMediaType(Refused):
    """The body must be JSON."""

    code = "unsupported_media_type"


class RateLimited(Refused):
    """The daily allowance of this address is used up."""

    code = "rate_limited"


class Internal(Refused):
    """The server failed on this request."""

    code = "internal"


class LeaseHeldAnswer(Refused):
    """Somebody holds the lease."""

    code = "lease_held"


class LeaseConflictAnswer(Refused):
    """The key is bound to another fingerprint."""

    code = "lease_conflict"


class LeaseLostAnswer(Refused):
    """The owner token does not hold the lease."""

    code = "lease_lost"


class AlreadyCompleted(Refused):
    """It was completed already, and that stands."""

    code = "already_completed"


class ResultTooLarge(Refused):
    """The result is too big; the lease or claim stays."""

    code = "result_too_large"


class PayloadTooLarge(Refused):
    """The payload is too big."""

    code = "payload_too_large"


class NotifyUrlRefused(Refused):
    """Webhooks may not go there."""

    code = "notify_url_refused"


class Expired(Refused):
    """The handoff's life is over."""

    code = "expired"


class NonceConflict(Refused):
    """The nonce was used for something else."""

    code = "nonce_conflict"


class UnknownState(Refused):
    """The handoff does not declare that state."""

    code = "unknown_state"


class StateMismatch(Refused):
    """The handoff is in another state than the move expected."""

    code = "state_mismatch"


class TransitionNotAllowed(Refused):
    """The machine has no such move."""

    code = "transition_not_allowed"


class MoveNotPermitted(Refused):
    """This side may not move into that state."""

    code = "move_not_permitted"


class Forbidden(Refused):
    """The namespace belongs to somebody else."""

    code = "forbidden"


class NoClaim(Refused):
    """There is no such claim."""

    code = "no_claim"


class NotLeased(Refused):
    """The claim has no lease to renew."""

    code = "not_leased"


class ClaimLost(Refused):
    """Another caller has taken the claim over."""

    code = "claim_lost"


class WeakNamespace(Refused):
    """The server wants a stronger name."""

    code = "weak_namespace"


class PaymentRequired(Refused):
    """The call costs credit."""

    code = "payment_required"


class InsufficientCredit(Refused):
    """The credit does not cover this call."""

    code = "insufficient_credit"


class InvalidCreditToken(Refused):
    """The credit token is unknown."""

    code = "invalid_credit_token"


class InvalidHttp(Refused):
    """The request was not valid HTTP/1.1: something between changed it."""

    code = "invalid_http"


class TargetTooLong(Refused):
    """The request line is too long."""

    code = "target_too_long"


class HeadersTooLarge(Refused):
    """The headers are too many or too long."""

    code = "headers_too_large"


class ExpectationFailed(Refused):
    """The expectation is not understood."""

    code = "expectation_failed"


class TransferCodingUnsupported(Refused):
    """The transfer coding is not understood."""

    code = "transfer_coding_unsupported"


class Unavailable(Refused, Unreachable):
    """The database was away or too busy until the time was up."""

    code = "unavailable"


class Full(Refused, Unreachable):
    """There was no room for another one until the time was up."""

    code = "full"


class TooManyWaiters(Refused, Unreachable):
    """Too many callers were waiting on the server until the time was up."""

    code = "too_many_waiters"


class NotReady(Refused, Unreachable):
    """The server could not serve until the time was up."""

    code = "not_ready"
