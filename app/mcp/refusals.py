"""The refusals of tools that REST answers with 400, 404, 413, 429 and 503, member by member, for the output schemas."""

from typing import Annotated, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from app.wire.answers import Fix, No, RetryAfter, Sentence

LimitBytes = Annotated[int, Field(ge=1, description="The most that is taken.")]
SizeBytes = Annotated[int, Field(ge=1, description="The size of what was sent.")]


class InvalidRefusal(TypedDict):
    """400: the arguments are not as they must be."""

    ok: No
    code: Annotated[
        Literal["invalid_request", "invalid_json"],
        Field(description="invalid_request, invalid_json: correct the arguments; the same again is refused again."),
    ]
    error: Sentence
    fix: NotRequired[Fix]
    field: NotRequired[Annotated[str, Field(description="The argument that is wrong.")]]
    position: NotRequired[Annotated[int, Field(ge=0, description="The byte of the arguments that is wrong.")]]


class BodyTooLargeRefusal(TypedDict):
    """413: the arguments as a whole are too large."""

    ok: No
    code: Annotated[Literal["body_too_large"], Field(description="body_too_large: send less; nothing was done.")]
    error: Sentence
    fix: Fix
    limit_bytes: LimitBytes


class ResultTooLargeRefusal(TypedDict):
    """413: a result is too large."""

    ok: No
    code: Annotated[
        Literal["result_too_large"],
        Field(description="result_too_large: nothing was recorded; send less, such as a reference."),
    ]
    error: Sentence
    fix: Fix
    size_bytes: SizeBytes
    limit_bytes: LimitBytes


class PayloadTooLargeRefusal(TypedDict):
    """413: a payload is too large."""

    ok: No
    code: Annotated[
        Literal["payload_too_large"],
        Field(description="payload_too_large: nothing was created; send less, such as a reference."),
    ]
    error: Sentence
    fix: Fix
    size_bytes: SizeBytes
    limit_bytes: LimitBytes


class NotFoundRefusal(TypedDict):
    """404: one answer for an unknown object and for a wrong token."""

    ok: No
    code: Annotated[Literal["not_found"], Field(description="not_found: unknown, or the token does not fit.")]
    error: Sentence
    fix: Fix


class NotifyRefusal(TypedDict):
    """400: no webhook may go there."""

    ok: No
    code: Annotated[
        Literal["notify_url_refused"], Field(description="notify_url_refused: use a public address, or none.")
    ]
    error: Sentence
    fix: Fix


class UnavailableRefusal(TypedDict):
    """503: the database."""

    ok: No
    code: Annotated[Literal["unavailable"], Field(description="unavailable: call again after retry_after_seconds.")]
    error: Sentence
    fix: Fix
    committed: Annotated[
        Literal["no", "unknown"],
        Field(description="no: nothing was done. unknown: it may have been; look, or repeat with the same token."),
    ]
    retry_after_seconds: RetryAfter


class WaitersRefusal(TypedDict):
    """503: nobody else may wait here."""

    ok: No
    code: Annotated[Literal["too_many_waiters"], Field(description="too_many_waiters: ask without waiting.")]
    error: Sentence
    fix: Fix
    retry_after_seconds: RetryAfter


class FullRefusal(TypedDict):
    """503: no room for another."""

    ok: No
    code: Annotated[Literal["full"], Field(description="full: come back after retry_after_seconds.")]
    error: Sentence
    fix: Fix
    retry_after_seconds: RetryAfter


class LimitRefusal(TypedDict):
    """429: so many a day."""

    ok: No
    code: Annotated[Literal["rate_limited"], Field(description="rate_limited: nothing more today.")]
    error: Sentence
    fix: Fix
    retry_after_seconds: RetryAfter


class UnpaidRefusal(TypedDict):
    """401, 402: the call costs something and was not paid for."""

    ok: No
    code: Annotated[
        Literal["payment_required", "insufficient_credit", "invalid_credit_token"],
        Field(
            description="payment_required: send a credit_token. insufficient_credit: it holds too little. "
            "invalid_credit_token: nobody was given that one. Nothing was done."
        ),
    ]
    error: Sentence
    fix: Fix
    balance_usd: NotRequired[Annotated[str, Field(description="What the credit token holds, in US dollars.")]]
    required_usd: NotRequired[Annotated[str, Field(description="What the call costs, in US dollars.")]]
    trial: NotRequired[Annotated[str, Field(description="Where to get a free credit token by POST.")]]


EVERYWHERE = (InvalidRefusal, BodyTooLargeRefusal, UnavailableRefusal)
"""What every tool may answer."""
