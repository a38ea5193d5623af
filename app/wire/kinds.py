"""The kinds of members that several routes share, each with its rule and its description.

The description is what OpenAPI and the MCP tools show. What ties two members together, such as the rule of a
lease key, is in the module of its route. A token that the caller brings must be well formed; a token that is
only shown is any text, since a malformed one is simply wrong. Characters are Unicode code points.
"""

from typing import Annotated

from pydantic import AfterValidator, Field, GetPydanticSchema, WithJsonSchema
from pydantic_core import PydanticCustomError, core_schema

from app.tokens import Kind, is_well_formed
from app.wire.json import RawJson
from app.wire.members import Rule

LARGEST_FENCE = LARGEST_VERSION = 2**53 - 1


def _well_formed(kind: Kind) -> AfterValidator:
    def judge(token: str) -> str:
        if not is_well_formed(kind, token):
            raise PydanticCustomError("rule", "not a well-formed token of its kind")
        return token

    return AfterValidator(judge)


def _shape(kind: Kind) -> dict[str, str]:
    return {"pattern": f"^{kind.value}[A-Za-z0-9_-]{{43}}$"}


def _token_rule(kind: Kind) -> Rule:
    return Rule(f'"{kind.value}" and 43 base64url characters, at least 16 of them distinct')


Namespace = Annotated[
    str,
    _well_formed(Kind.NAMESPACE),
    _token_rule(Kind.NAMESPACE),
    Field(
        description="Bearer secret under which readable keys are private, as POST /services/v1/lease/namespace or the "
        "tool create_lease_namespace gives it: `ns_` and 43 base64url characters, at least 16 distinct. Everybody who "
        "shares the keys sends the same one.",
        json_schema_extra={**_shape(Kind.NAMESPACE)},
    ),
]

LeaseOwnerToken = Annotated[
    str,
    _well_formed(Kind.LEASE_OWNER),
    _token_rule(Kind.LEASE_OWNER),
    Field(
        description="Bring your own owner token to make the call safe to repeat: `own_` and 43 base64url characters "
        "of 256 random bits, at least 16 distinct. The same call again while it holds the lease gets the same grant.",
        json_schema_extra={**_shape(Kind.LEASE_OWNER)},
    ),
]

HandoffOwnerToken = Annotated[
    str,
    _well_formed(Kind.HANDOFF_OWNER),
    _token_rule(Kind.HANDOFF_OWNER),
    Field(
        description="The owner's token, made by the caller: `howner_` and 43 base64url characters of 256 random bits, "
        "at least 16 distinct. Together with `receiver_token` and `nonce` it makes the creation safe to repeat.",
        json_schema_extra={**_shape(Kind.HANDOFF_OWNER)},
    ),
]

HandoffReceiverToken = Annotated[
    str,
    _well_formed(Kind.HANDOFF_RECEIVER),
    _token_rule(Kind.HANDOFF_RECEIVER),
    Field(
        description="The receiver's token, made by the caller: `hrecv_` and 43 base64url characters of 256 random "
        "bits, at least 16 distinct. Together with `owner_token` and `nonce` it makes the creation safe to repeat.",
        json_schema_extra={**_shape(Kind.HANDOFF_RECEIVER)},
    ),
]

ClaimantToken = Annotated[
    str,
    _well_formed(Kind.CLAIMANT),
    _token_rule(Kind.CLAIMANT),
    Field(
        description="Bring your own claim token to make the claim safe to repeat: `clm_` and 43 base64url characters "
        "of 256 random bits, at least 16 distinct. While the claim is unfinished, the same call gets the same claim.",
        json_schema_extra={**_shape(Kind.CLAIMANT)},
    ),
]

ShownToken = Annotated[str, Field(description="A token as it was given.")]

Fingerprint = Annotated[
    str,
    Field(
        min_length=1,
        max_length=256,
        description="Binds the key to its input for the whole lifecycle, such as a digest of it. Strict: a key first "
        "taken without one conflicts with a later call that has one, and the reverse.",
    ),
]

Holder = Annotated[
    str,
    Field(
        min_length=1,
        max_length=120,
        description="A label shown to those who are refused, so that they know who has it. Shown as given: no secrets.",
    ),
]

Note = Annotated[
    str, Field(min_length=1, max_length=500, description="A remark for the history; untrusted text to its reader.")
]

Title = Annotated[str, Field(min_length=1, max_length=120, description="A short title for lists and pages.")]

Nonce = Annotated[
    str,
    Rule("1 to 64 characters of A-Z a-z 0-9 - _"),
    Field(
        pattern="^[A-Za-z0-9_-]{1,64}$",
        min_length=1,
        max_length=64,
        description="A name for this one intention, 1 to 64 of `A-Z a-z 0-9 - _`: the same call with the same nonce is "
        "done once and answered alike.",
    ),
]

TtlSeconds = Annotated[
    int,
    Field(ge=1, le=86_400, description="Whole seconds from 1 to 86400, counted from the grant or the renewal."),
]

WaitSeconds = Annotated[
    int,
    Field(
        ge=0,
        le=25,
        description="Wait up to this many whole seconds, 0 to 25, for the answer to change before it is given.",
    ),
]

Fence = Annotated[
    int,
    Field(
        ge=1,
        le=LARGEST_FENCE,
        description="A fencing token: a whole number that grows with each new ownership of the key.",
    ),
]

# Said out, since some callers of tools take a schema without a type for an unfinished one.
ANY_BUT_NULL = {"anyOf": [{"type": kind} for kind in ("object", "array", "string", "number", "boolean")]}

Raw = Annotated[
    RawJson,
    GetPydanticSchema(lambda _source, _handler: core_schema.is_instance_schema(RawJson)),
    WithJsonSchema({"anyOf": [*ANY_BUT_NULL["anyOf"], {"type": "null"}]}),
    Rule("any JSON value (null is one)"),
]
"""Any JSON value, kept as its text; `null` is a value. Describe it where it is used: `= Field(description=…)`."""
