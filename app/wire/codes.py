"""Every machine word that a refusal can carry, with its HTTP status and what it says to people.

A word is never renamed once released: programs branch on it. `error` is one sentence for people; `fix`, where
there is something to do, is one that a language model can act on. A route may put a more exact sentence in place of
either, never another status.
"""

from dataclasses import dataclass
from enum import StrEnum


class Code(StrEnum):
    """The stable word of a refusal, its member `code`."""

    # every route
    INVALID_REQUEST = "invalid_request"
    INVALID_JSON = "invalid_json"
    QUERY_NOT_ALLOWED = "query_not_allowed"
    INCOMPLETE_BODY = "incomplete_body"
    TOKEN_REQUIRED = "token_required"  # noqa: S105  (a word, no secret)
    ORIGIN_NOT_ALLOWED = "origin_not_allowed"
    UPGRADE_REQUIRED = "upgrade_required"
    UNKNOWN_ROUTE = "unknown_route"
    NOT_FOUND = "not_found"
    METHOD_NOT_ALLOWED = "method_not_allowed"
    NOT_ACCEPTABLE = "not_acceptable"
    REQUEST_TIMEOUT = "request_timeout"
    BODY_TOO_LARGE = "body_too_large"
    UNSUPPORTED_MEDIA_TYPE = "unsupported_media_type"
    RATE_LIMITED = "rate_limited"
    INTERNAL = "internal"
    UNAVAILABLE = "unavailable"
    FULL = "full"
    TOO_MANY_WAITERS = "too_many_waiters"
    NOT_READY = "not_ready"
    # what is no proper HTTP, refused before any route
    INVALID_HTTP = "invalid_http"
    TARGET_TOO_LONG = "target_too_long"
    HEADERS_TOO_LARGE = "headers_too_large"
    EXPECTATION_FAILED = "expectation_failed"
    TRANSFER_CODING_UNSUPPORTED = "transfer_coding_unsupported"
    # lease
    LEASE_HELD = "lease_held"
    LEASE_CONFLICT = "lease_conflict"
    LEASE_LOST = "lease_lost"
    ALREADY_COMPLETED = "already_completed"
    RESULT_TOO_LARGE = "result_too_large"
    # handoff
    PAYLOAD_TOO_LARGE = "payload_too_large"
    NOTIFY_URL_REFUSED = "notify_url_refused"
    EXPIRED = "expired"
    NONCE_CONFLICT = "nonce_conflict"
    UNKNOWN_STATE = "unknown_state"
    STATE_MISMATCH = "state_mismatch"
    TRANSITION_NOT_ALLOWED = "transition_not_allowed"
    MOVE_NOT_PERMITTED = "move_not_permitted"
    # once-key and credits
    FORBIDDEN = "forbidden"
    NO_CLAIM = "no_claim"
    NOT_LEASED = "not_leased"
    CLAIM_LOST = "claim_lost"
    WEAK_NAMESPACE = "weak_namespace"
    PAYMENT_REQUIRED = "payment_required"
    INSUFFICIENT_CREDIT = "insufficient_credit"
    INVALID_CREDIT_TOKEN = "invalid_credit_token"  # noqa: S105


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a code stands for: the HTTP status, the sentence for people, the next step."""

    http: int
    error: str
    fix: str | None = None


MEANINGS: dict[Code, Meaning] = {
    Code.INVALID_REQUEST: Meaning(400, "The request is not valid"),
    Code.INVALID_JSON: Meaning(
        400, "The body is not valid JSON", "Send one JSON object in UTF-8, each member name once."
    ),
    Code.QUERY_NOT_ALLOWED: Meaning(
        400,
        "This route takes no query parameters",
        "Send members in the JSON body and tokens in the Authorization header.",
    ),
    Code.INCOMPLETE_BODY: Meaning(
        400, "The body ended before its announced length; nothing was done", "Send the whole request again."
    ),
    Code.TOKEN_REQUIRED: Meaning(401, "A bearer token is required", "Send the header `Authorization: Bearer <token>`."),
    Code.ORIGIN_NOT_ALLOWED: Meaning(
        403,
        "Requests from this web origin are not allowed",
        "Call from the server's own origin, from a program without an Origin header, or have the operator allow it.",
    ),
    Code.UPGRADE_REQUIRED: Meaning(
        426, "This address is a WebSocket", "Connect with a WebSocket client, or use the waiting read instead."
    ),
    Code.UNKNOWN_ROUTE: Meaning(404, "There is no such route", "See /llms.txt or /openapi.json for the routes."),
    Code.NOT_FOUND: Meaning(
        404,
        "Not found, or the token does not fit",
        "Check the identifier and the token; both kinds of mistake get this same answer.",
    ),
    Code.METHOD_NOT_ALLOWED: Meaning(
        405, "This route does not take that method", "Use a method listed in the Allow header."
    ),
    Code.NOT_ACCEPTABLE: Meaning(
        406, "Answers are JSON, which the Accept header excludes", "Send `Accept: application/json`."
    ),
    Code.REQUEST_TIMEOUT: Meaning(408, "The body came too slowly; nothing was done", "Send the whole request again."),
    Code.BODY_TOO_LARGE: Meaning(413, "The body is too large", "Send a smaller body; store big data elsewhere."),
    Code.UNSUPPORTED_MEDIA_TYPE: Meaning(
        415, "The body must be plain JSON", "Send the header `Content-Type: application/json`."
    ),
    Code.RATE_LIMITED: Meaning(429, "The daily limit of this address is used up", "Wait as long as Retry-After says."),
    Code.INTERNAL: Meaning(
        500,
        "The server failed on this request",
        "Send it again; if it fails again, tell the operator the request id.",
    ),
    Code.UNAVAILABLE: Meaning(
        503, "The database cannot be reached or is too busy", "Send the request again after Retry-After seconds."
    ),
    Code.FULL: Meaning(503, "The server has no room for another one now", "Try again after Retry-After seconds."),
    Code.TOO_MANY_WAITERS: Meaning(
        503,
        "Too many callers are waiting on this server",
        "Try again after Retry-After seconds, or ask without waiting.",
    ),
    Code.NOT_READY: Meaning(503, "The server cannot serve now", "See `checks` for what is wrong."),
    Code.INVALID_HTTP: Meaning(400, "The request is not valid HTTP/1.1"),
    Code.TARGET_TOO_LONG: Meaning(414, "The request line is too long", "Send members in the JSON body."),
    Code.HEADERS_TOO_LARGE: Meaning(431, "The headers are too many or too long", "Send fewer or shorter headers."),
    Code.EXPECTATION_FAILED: Meaning(417, "The only expectation understood is 100-continue"),
    Code.TRANSFER_CODING_UNSUPPORTED: Meaning(501, "The only transfer coding understood is chunked"),
    Code.LEASE_HELD: Meaning(
        409,
        "Lease is held",
        "Do not start the work; ask again after retry_after_seconds, or pass wait_seconds to stand in line.",
    ),
    Code.LEASE_CONFLICT: Meaning(
        409,
        "The key is bound to another fingerprint until its lifecycle ends",
        "Do not do the work under this key; use the fingerprint it began with, or another key.",
    ),
    Code.LEASE_LOST: Meaning(
        409,
        "This owner token does not hold the lease",
        "Stop the work at once and write nothing more under this lease; acquire again to go on.",
    ),
    Code.ALREADY_COMPLETED: Meaning(
        409,
        "It was completed already and cannot be changed",
        "Take the recorded result; do not do the work again.",
    ),
    Code.RESULT_TOO_LARGE: Meaning(
        413,
        "The result is too large; nothing was recorded",
        "Complete it again with a smaller result, such as a reference to where the data is stored.",
    ),
    Code.PAYLOAD_TOO_LARGE: Meaning(
        413,
        "The payload is too large; nothing was created",
        "Send a smaller payload, such as a reference to where the data is stored.",
    ),
    Code.NOTIFY_URL_REFUSED: Meaning(
        400,
        "A webhook may not go to this URL; nothing was created",
        "Use an http or https URL of a public host on an allowed port, or leave notify_url out and wait instead.",
    ),
    Code.EXPIRED: Meaning(410, "The handoff has expired", "Create a new handoff if the work is still to be done."),
    Code.NONCE_CONFLICT: Meaning(
        409,
        "This nonce was used for something else; nothing was recorded",
        "Use a new nonce for a new intention, and the old one only to repeat the very same call.",
    ),
    Code.UNKNOWN_STATE: Meaning(409, "The handoff declares no such state", "Choose one of `states`."),
    Code.STATE_MISMATCH: Meaning(
        409,
        "The handoff is not in the state named by `from`",
        "Read the handoff, decide anew from current_state, and move only if the move still makes sense.",
    ),
    Code.TRANSITION_NOT_ALLOWED: Meaning(
        409, "The handoff cannot move into that state from where it is", "Choose one of `allowed`."
    ),
    Code.MOVE_NOT_PERMITTED: Meaning(
        403, "This token may not move the handoff into that state", "Leave this move to the other side."
    ),
    Code.FORBIDDEN: Meaning(
        200,
        "The namespace exists and the namespace token is missing or wrong",
        "Send the namespace_token that the first claim returned, or use a namespace of your own.",
    ),
    Code.NO_CLAIM: Meaning(404, "There is no such claim", "Claim the action first."),
    Code.NOT_LEASED: Meaning(
        409, "The claim has no lease to renew", "Nothing is to be renewed: the claim is held until it expires."
    ),
    Code.CLAIM_LOST: Meaning(
        409,
        "This claim token is not that of the current claimant",
        "Stop: do not do or repeat the side effect. Another claimant took over; claim again to see its result.",
    ),
    Code.WEAK_NAMESPACE: Meaning(
        400,
        "A new namespace needs a stronger name here",
        "Use at least 16 characters of two classes, such as letters and digits.",
    ),
    Code.PAYMENT_REQUIRED: Meaning(
        402,
        "This call costs credit",
        "Get a free trial token with POST /credits/trial (tool credits_trial) and send it as credit_token.",
    ),
    Code.INSUFFICIENT_CREDIT: Meaning(402, "The credit does not cover this call", "Ask the operator for more credit."),
    Code.INVALID_CREDIT_TOKEN: Meaning(401, "The credit token is unknown", "Check the credit token."),
}
