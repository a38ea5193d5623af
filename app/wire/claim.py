"""The once-key on the wire: members in, and an answer for every outcome.

A claim is always answered with HTTP 200, since a caller has to branch on `status` anyway. In every answer that has
one, `result` stands right before `has_result`, as the bytes that were sent; what a receipt says of it is in
receipt.py.
"""

from typing import Annotated, assert_never

from pydantic import Field

from app.core import claim as core
from app.core.credit import Charged, InsufficientCredit, PaymentRequired, UnknownCredit, Unpaid
from app.core.instants import seconds_up
from app.core.namespace import NamespaceForbidden, NamespaceWeak
from app.wire import credit, errors
from app.wire.codes import MEANINGS, Code
from app.wire.json import RawJson
from app.wire.kinds import ClaimantToken, Raw, ShownToken, WaitSeconds
from app.wire.members import Members, Rule
from app.wire.reply import Reply, pair, refusal, retry_after

_NO_CONTROLS = r"^[^\x00-\x1f\x7f-\x9f]*$"
_SHOWN_ONCE = (
    "This claim made you the owner of the namespace. Keep namespace_token: it is shown once, and every call in the "
    "namespace needs it from now on."
)
_UNREADABLE = "A result was recorded but cannot be read back; tell the operator, and do not repeat the action."
_ALREADY_DETAIL = "The action was done and its result is kept until expires_at; a completed claim is not released."

OnceNamespace = Annotated[
    str,
    Rule("text of 1 to 128 characters, no control characters among them"),
    Field(
        min_length=1,
        max_length=128,
        pattern=_NO_CONTROLS,
        description="Name of the application. The first claim in it gets its namespace_token, which every later call "
        "needs; use a name that nobody else would choose.",
    ),
]

ActionKey = Annotated[
    str,
    Rule("text of 1 to 256 characters, no control characters among them"),
    Field(
        min_length=1,
        max_length=256,
        pattern=_NO_CONTROLS,
        description="Name of the action that must happen once, the same at every retry, such as charge-order-1042.",
    ),
]

PayloadDigest = Annotated[
    str,
    Field(
        min_length=1,
        max_length=128,
        description="Digest of the action's input, compared as text without case. Another one for the same action is "
        "a conflict.",
    ),
]

Ttl = Annotated[
    int, Field(ge=1, le=core.LONGEST_TTL_SECONDS, description="How long, in whole seconds from 1 to 31536000.")
]


class _Named(Members):
    namespace: OnceNamespace
    action_key: ActionKey
    namespace_token: ShownToken | None = Field(
        default=None, description="The namespace's token; the first claim in a namespace may bring its own."
    )


class ClaimAction(_Named):
    """Be the one to act."""

    payload_sha256: PayloadDigest | None = None
    ttl: Ttl = Field(default=core.DEFAULT_TTL_SECONDS, description="Life of the claim in seconds, 1 to 31536000.")
    lease_ttl: Ttl | None = Field(
        default=None,
        description="Let another take the claim over when it is not completed within so many seconds, 1 to 31536000. "
        "Without it nobody gets past the claim before its ttl ends.",
    )
    claim_token: ClaimantToken | None = None
    wait_seconds: WaitSeconds = 0
    credit_token: ShownToken | None = Field(
        default=None, description="Pays for the claim where this server asks a price."
    )


class CompleteAction(_Named):
    """Record what came of it."""

    result: Raw | None = Field(
        default=None,
        description="Any JSON of at most 16384 bytes, kept as sent; later callers get it. Absent: nothing.",
    )
    ttl: Ttl = Field(
        default=core.DEFAULT_TTL_SECONDS, description="Keep the result for so many seconds from now, 1 to 31536000."
    )
    claim_token: ShownToken | None = Field(
        default=None, description="Proof of being the current claimant; refused with claim_lost if another took over."
    )


class ReleaseAction(_Named):
    """Give it up, undone."""

    claim_token: ShownToken | None = Field(default=None, description="Proof of being the current claimant.")


class RenewAction(_Named):
    """Keep the lease."""

    claim_token: ShownToken = Field(description="Proof of being the current claimant.")
    lease_ttl: Ttl = Field(description="The lease ends so many seconds from now, 1 to 31536000, or with the claim.")


class ActionStatus(_Named):
    """Look."""


class RotateToken(Members):
    """Replace the namespace's token."""

    namespace: OnceNamespace
    namespace_token: ShownToken | None = Field(default=None, description="The token that is to be replaced.")


ClaimOutcome = (
    core.Claimed
    | core.InProgress
    | core.ClaimHeld
    | core.Duplicate
    | core.ClaimConflict
    | NamespaceForbidden
    | NamespaceWeak
    | Unpaid
)


def claimed(
    asked: ClaimAction,
    outcome: ClaimOutcome,
    claim_token: str,
    namespace_token: str | None = None,
    suggested_name: str | None = None,
    charged: Charged | None = None,
) -> Reply:
    """The answer to a claim: 200 with its status; 400 for a name too weak for a new namespace, 401 or 402 unpaid."""
    reply = _claimed(asked, outcome, claim_token, namespace_token, suggested_name)
    return credit.with_charge(reply, charged)


def _claimed(
    asked: ClaimAction,
    outcome: ClaimOutcome,
    claim_token: str,
    namespace_token: str | None,
    suggested_name: str | None,
) -> Reply:
    match outcome:
        case core.Claimed():
            return _answer("claimed", asked, _won(outcome, claim_token, namespace_token))
        case core.InProgress(record, left):
            times = {**_since(record), **_lease(record), **pair("expires_at", record.expires_at)}
            return _come_back("in_progress", asked, times, seconds_up(left))
        case core.ClaimHeld(record, left):
            times = {**_since(record), **pair("expires_at", record.expires_at)}
            return _come_back("held", asked, times, seconds_up(left))
        case core.Duplicate(record):
            return _answer("duplicate", asked, {**_since(record), **_done(record)})
        case core.ClaimConflict(record):
            return _answer("conflict", asked, {**_since(record), **pair("expires_at", record.expires_at)})
        case NamespaceForbidden():
            meaning = MEANINGS[Code.FORBIDDEN]
            said: dict[str, object] = {"error": meaning.error, "code": Code.FORBIDDEN.value, "fix": meaning.fix}
            return _answer("forbidden", asked, said)
        case NamespaceWeak():
            fix = MEANINGS[Code.WEAK_NAMESPACE].fix
            return refusal(
                Code.WEAK_NAMESPACE,
                fix=f'{fix} For example "{suggested_name}".',
                field="namespace",
                members={"suggestion": suggested_name},
            )
        case PaymentRequired() | InsufficientCredit() | UnknownCredit():
            return credit.unpaid(outcome)
        case _:
            assert_never(outcome)


def completed(
    asked: CompleteAction,
    outcome: core.ClaimCompleted
    | core.AlreadyCompleted
    | core.NoClaim
    | core.ClaimLost
    | core.ResultTooLarge
    | NamespaceForbidden,
) -> Reply:
    """The answer to a completion, the first one or a later one."""
    match outcome:
        case core.ClaimCompleted(record):
            return _answer("completed", asked, _done(record))
        case core.AlreadyCompleted(record):
            return _answer("already_completed", asked, _done(record))
        case core.ResultTooLarge(size):
            return refusal(
                Code.RESULT_TOO_LARGE,
                error=f"The result has {size} bytes, {core.LARGEST_RESULT_BYTES} are allowed; the claim stays open",
                members={"size_bytes": size, "limit_bytes": core.LARGEST_RESULT_BYTES},
            )
        case core.NoClaim() | core.ClaimLost() | NamespaceForbidden():
            return _refused(outcome)
        case _:
            assert_never(outcome)


def released(
    asked: ReleaseAction,
    outcome: core.ClaimReleased | core.AlreadyCompleted | core.NoClaim | core.ClaimLost | NamespaceForbidden,
) -> Reply:
    """The answer to a release."""
    match outcome:
        case core.ClaimReleased():
            return _answer("released", asked, {})
        case core.AlreadyCompleted():
            return refusal(Code.ALREADY_COMPLETED, members={"detail": _ALREADY_DETAIL})
        case core.NoClaim() | core.ClaimLost() | NamespaceForbidden():
            return _refused(outcome)
        case _:
            assert_never(outcome)


def renewed(
    asked: RenewAction,
    outcome: core.ClaimRenewed
    | core.AlreadyCompleted
    | core.NoClaim
    | core.ClaimLost
    | core.NotLeased
    | NamespaceForbidden,
) -> Reply:
    """The answer to a renewal."""
    match outcome:
        case core.ClaimRenewed(record):
            times = {**_since(record), **pair("expires_at", record.expires_at), **_lease(record)}
            return _answer("claimed", asked, {**times, **_ownership(record)})
        case core.AlreadyCompleted():
            return refusal(Code.ALREADY_COMPLETED)
        case core.NotLeased():
            return refusal(Code.NOT_LEASED)
        case core.NoClaim() | core.ClaimLost() | NamespaceForbidden():
            return _refused(outcome)
        case _:
            assert_never(outcome)


def status(asked: ActionStatus, outcome: core.ClaimStatus | NamespaceForbidden) -> Reply:
    """Where the action stands: never the result, never a token."""
    if isinstance(outcome, NamespaceForbidden):
        return _refused(outcome)
    record = outcome.record
    if record is None:
        return _answer(outcome.status, asked, {"has_result": False})
    times = {**_since(record), **pair("expires_at", record.expires_at), **_lease(record), **_completion(record)}
    return _answer(outcome.status, asked, {**times, **_ownership(record), "has_result": record.recorded() == "result"})


def rotated(asked: RotateToken, namespace_token: str | None) -> Reply:
    """The answer to a rotation; None where the token shown was not the namespace's."""
    if namespace_token is None:
        return _refused(NamespaceForbidden())
    return Reply(200, {"status": "rotated", "namespace": asked.namespace, "namespace_token": namespace_token})


def _answer(status: str, asked: _Named, members: dict[str, object]) -> Reply:
    names = {"status": status, "namespace": asked.namespace, "action_key": asked.action_key}
    return Reply(200, {**names, **members})


def _come_back(status: str, asked: _Named, times: dict[str, object], seconds: int) -> Reply:
    reply = _answer(status, asked, {**times, "retry_after": seconds})
    return Reply(reply.status, reply.body, retry_after(seconds))


def _refused(outcome: core.NoClaim | core.ClaimLost | NamespaceForbidden) -> Reply:
    match outcome:
        case core.NoClaim():
            return refusal(Code.NO_CLAIM)
        case core.ClaimLost():
            return refusal(Code.CLAIM_LOST)
        case NamespaceForbidden():
            return errors.not_found()
        case _:
            assert_never(outcome)


def _won(outcome: core.Claimed, claim_token: str, namespace_token: str | None) -> dict[str, object]:
    record = outcome.record
    members = {**_since(record), **pair("expires_at", record.expires_at), **_lease(record)}
    members["claim_token"] = claim_token
    members |= _ownership(record)
    if outcome.recovered:
        members["recovered"] = True
    if outcome.repeated:
        members["repeated"] = True
    if namespace_token is not None:
        members |= {"namespace_token": namespace_token, "note": _SHOWN_ONCE}
    return members


def _ownership(record: core.ClaimRecord) -> dict[str, object]:
    return {"fencing_token": record.fence, "attempt": record.attempt}


def _since(record: core.ClaimRecord) -> dict[str, object]:
    return pair("claimed_at", record.claimed_at)


def _lease(record: core.ClaimRecord) -> dict[str, object]:
    return {} if record.lease_expires_at is None else pair("lease_expires_at", record.lease_expires_at)


def _completion(record: core.ClaimRecord) -> dict[str, object]:
    return {} if record.completed_at is None else pair("completed_at", record.completed_at)


def _done(record: core.ClaimRecord) -> dict[str, object]:
    members = {**_completion(record), **pair("expires_at", record.expires_at)}
    recorded = record.recorded()
    if recorded == "unreadable":
        members["result_error"] = _UNREADABLE
    readable = record.result if recorded == "result" else None
    members["result"] = RawJson("null" if readable is None else readable.decode("utf-8"))
    members["has_result"] = readable is not None
    return members
