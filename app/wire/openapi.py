"""The OpenAPI 3.1 document, made from the definitions that check input and type answers, so that it cannot fall behind.

A row of OPERATIONS is a route: a test asks that every route of the application has one and every one has a route.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from app.core.credit import PaymentRequired, UnknownCredit
from app.wire import claim, claim_answers, credit, handoff_answers, handoff_members, lease, lease_answers
from app.wire.answers import Answers, RefusalAnswer
from app.wire.members import Members, NoMembers
from app.wire.prices import FREE, Prices, told, usd
from app.wire.schema import Schema, input_schema, output_schema

V1 = "/services/v1"
EXAMPLES = "reference/examples.json"
"""Below templates/: for each operation a body and answers that a server gave, written by `make reference`."""
_JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Operation:
    """One route: where it is, what it takes, what it may answer beside the refusals that all share."""

    method: Literal["get", "post"]
    path: str
    name: str
    summary: str
    answers: Answers
    members: type[Members] | None = None
    bearer: bool = False
    cap: int = 0
    extra: tuple[int, ...] = ()
    """Statuses of refusals that are this route's own and have the common shape."""


def _lease(path: str, summary: str, members: type[Members], answers: Answers, *extra: int) -> Operation:
    name = "lease_" + (path.strip("/") or "short")
    return Operation("post", f"{V1}/lease{path}", name, summary, answers, members, cap=65_536, extra=extra)


def _once(path: str, summary: str, members: type[Members], answers: Answers, *extra: int) -> list[Operation]:
    name = "once_key_" + (path.strip("/").replace("-", "_") or "claim")
    at_root = Operation("post", f"/once-key{path}", name, summary, answers, members, cap=32_768, extra=extra)
    under_v1 = Operation(
        "post", f"{V1}/once-key{path}", f"{name}_v1", summary, answers, members, cap=32_768, extra=extra
    )
    return [at_root, under_v1]


_HANDOFF = f"{V1}/handoff"
_ONE_HANDOFF = _HANDOFF + "/{handoff_id}"

OPERATIONS: tuple[Operation, ...] = (
    _lease("/namespace", "Mint a namespace; nothing is stored", NoMembers, lease_answers.NAMESPACE),
    _lease("", "Acquire a key (short address)", lease.AcquireLease, lease_answers.ACQUIRE),
    _lease(
        "/acquire", "Acquire a key, or learn who holds it or what came of it", lease.AcquireLease, lease_answers.ACQUIRE
    ),
    _lease("/renew", "Replace the end of a live lease", lease.RenewLease, lease_answers.RENEW),
    _lease("/release", "Give the key up", lease.ReleaseLease, lease_answers.RELEASE),
    _lease("/complete", "Record the result and end the lease", lease.CompleteLease, lease_answers.COMPLETE),
    _lease("/status", "What anyone with the key may know", lease.LeaseStatus, lease_answers.STATUS),
    _lease("/verify", "Where a fencing token stands", lease.VerifyLease, lease_answers.VERIFY),
    Operation(
        "post",
        _HANDOFF,
        "create_handoff",
        "Create a handoff",
        handoff_answers.CREATE,
        handoff_members.CreateHandoff,
        cap=24_576,
        extra=(503,),
    ),
    Operation(
        "get",
        _ONE_HANDOFF,
        "read_handoff",
        "Read a handoff; If-None-Match answers 304",
        handoff_answers.READ,
        bearer=True,
        extra=(401, 404),
    ),
    Operation(
        "get",
        _ONE_HANDOFF + "/wait/{seconds}",
        "wait_for_handoff",
        "Wait up to 25 s for a change; If-None-Match names the version that is known",
        handoff_answers.WAIT,
        bearer=True,
        extra=(401, 404),
    ),
    Operation(
        "post",
        _ONE_HANDOFF + "/{state}",
        "move_handoff",
        "Move a handoff into a state",
        handoff_answers.MOVE,
        handoff_members.MoveHandoff,
        bearer=True,
        cap=8_192,
        extra=(401, 404),
    ),
    *_once("", "Claim an action exactly once", claim.ClaimAction, claim_answers.CLAIM),
    *_once("/complete", "Record the result of a claim", claim.CompleteAction, claim_answers.COMPLETE),
    *_once("/release", "Give a claim back undone", claim.ReleaseAction, claim_answers.RELEASE),
    *_once("/renew", "Prolong a leased claim", claim.RenewAction, claim_answers.RENEW),
    *_once("/status", "The state of a claim, never its result", claim.ActionStatus, claim_answers.STATUS),
    *_once("/rotate-token", "A new token for a namespace", claim.RotateToken, claim_answers.ROTATE),
)

CREDIT_OPERATIONS: tuple[Operation, ...] = tuple(
    operation
    for prefix, name in (("", ""), (V1, "_v1"))
    for operation in (
        Operation(
            "post",
            f"{prefix}/credits/trial",
            f"credits_trial{name}",
            "The free credit of this address",
            credit.TRIAL,
            NoMembers,
            cap=4_096,
        ),
        Operation(
            "post",
            f"{prefix}/credits/balance",
            f"credits_balance{name}",
            "What a credit token holds; it may come in the header X-Credit-Token",
            credit.BALANCE_OF,
            credit.AskBalanceByHeader,
            cap=4_096,
            extra=(404,),
        ),
        Operation(
            "get",
            f"{prefix}/credits/balance",
            f"credits_balance_by_header{name}",
            "What the credit token in the header X-Credit-Token holds",
            credit.BALANCE_OF,
            extra=(404,),
        ),
    )
)
"""There only where a call has a price."""

_PARAMETERS: dict[str, Schema] = {
    "handoff_id": {"type": "string", "pattern": "^[0-9a-f]{32}$"},
    "seconds": {"type": "string", "pattern": "^(0|[1-9][0-9]*)$", "description": "More than 25 counts as 25."},
    "state": {"type": "string", "pattern": "^[a-z][a-z0-9_]{0,31}$"},
}
_SHARED = {400: "InvalidRequest", 429: "RateLimited", 503: "Unavailable"}
_WITH_BODY = {**_SHARED, 408: "TooSlow", 413: "TooLarge", 415: "WrongMedia"}


def answers_of(operation: str) -> str:
    """The operation whose examples this one shares: the same route at another address."""
    return "lease_acquire" if operation == "lease_short" else operation.removesuffix("_v1")


def document(*, public_url: str, version: str, examples: Mapping[str, Any], prices: Prices = FREE) -> dict[str, Any]:
    """The whole document, ready to be dumped. `examples` are those of the file EXAMPLES."""
    paths: dict[str, dict[str, Any]] = {}
    for operation in (*OPERATIONS, *(CREDIT_OPERATIONS if prices else ())):
        name = answers_of(operation.name)
        made = _operation(operation, examples["operations"][name])
        cost = told(prices, name)
        if cost is not None:
            made |= {"description": cost, "x-price-usd": usd(prices[name])}
            made["responses"] |= {status: _refusal(text, example) for status, text, example in _unpaid(prices[name])}
            made["responses"] = dict(sorted(made["responses"].items()))
        paths.setdefault(operation.path, {})[operation.method] = made
    whole: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": "Fencepost",
            "version": version,
            "summary": "Leases, handoffs and once-keys for fleets of agents",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": public_url}],
        "paths": paths,
        "components": {
            "schemas": {"Refusal": output_schema(RefusalAnswer)},
            "responses": {name: _refusal(text, examples["responses"][name]) for name, text in _REFUSALS.items()},
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }
    whole["components"]["schemas"] |= _lift(whole["paths"])
    return whole


def _unpaid(price: int) -> list[tuple[str, str, Mapping[str, object]]]:
    """What a call with a price may answer instead: status, meaning, example."""
    return [
        ("401", "The credit token is unknown; nothing was done.", credit.unpaid(UnknownCredit()).body),
        ("402", "Nothing to pay with, or too little; nothing was done.", credit.unpaid(PaymentRequired(price)).body),
    ]


_REFUSALS = {
    "InvalidRequest": "The body, a member or the query string is not as this route takes it; `field` names the member.",
    "TooSlow": "The body did not arrive in time; nothing was done.",
    "TooLarge": "The body, or a result or payload in it, is too large; nothing was done.",
    "WrongMedia": "The body is not application/json, or is compressed.",
    "RateLimited": "The daily allowance of this address is used up until midnight UTC.",
    "Unavailable": "The database is away or busy, or too many callers wait; the text says whether anything was done.",
    "Unauthorized": "No bearer token was sent.",
    "NotFound": "No such object, or not with this token.",
}


def _operation(operation: Operation, examples: Mapping[str, Any]) -> dict[str, Any]:
    shared = _WITH_BODY if operation.members is not None else _SHARED
    responses: dict[str, Any] = {
        str(status): {"$ref": f"#/components/responses/{name}"} for status, name in shared.items()
    }
    own = {401: "Unauthorized", 404: "NotFound", 503: "Unavailable"}
    responses |= {str(status): {"$ref": f"#/components/responses/{own[status]}"} for status in operation.extra}
    responses |= {
        str(status): _response(status, answers, examples["answers"].get(str(status), {}))
        for status, answers in operation.answers.items()
    }
    made: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "tags": [operation.name.split("_")[0] if "handoff" not in operation.name else "handoff"],
        "responses": dict(sorted(responses.items())),
    }
    names = [part[1:-1] for part in operation.path.split("/") if part.startswith("{")]
    if names:
        made["parameters"] = [
            {"name": name, "in": "path", "required": True, "schema": _PARAMETERS[name]} for name in names
        ]
    if operation.members is not None:
        made["requestBody"] = _body(operation.members, operation.cap, examples.get("request", {}))
    if operation.bearer:
        made["security"] = [{"bearer": []}]
    return made


def _body(members: type[Members], cap: int, example: Mapping[str, Any]) -> dict[str, Any]:
    schema = input_schema(members)
    if not schema.get("required"):
        schema["type"] = ["object", "null"]
    return {
        "required": bool(schema.get("required")),
        "description": f"At most {cap:,} bytes.",
        "content": {_JSON: {"schema": schema, "example": example}},
    }


def _response(status: int, answers: tuple[Any, ...], examples: Mapping[str, Any]) -> dict[str, Any]:
    schemas = [output_schema(answer) for answer in answers]
    if status == 400:
        schemas.append({"$ref": "#/components/schemas/Refusal"})
    meaning = " ".join((answer.__doc__ or "").split(":", 1)[-1].strip().splitlines()[0] for answer in answers)
    return {
        "description": meaning or "As asked.",
        "content": {
            _JSON: {
                "schema": schemas[0] if len(schemas) == 1 else {"anyOf": schemas},
                "examples": {outcome: {"value": value} for outcome, value in examples.items()},
            }
        },
    }


def _refusal(description: str, example: object) -> dict[str, Any]:
    schema = {"$ref": "#/components/schemas/Refusal"}
    return {"description": description, "content": {_JSON: {"schema": schema, "example": example}}}


def _lift(node: Any) -> dict[str, Any]:
    """Move the definitions that schemas carry along to the components, where references of a document lead."""
    lifted: dict[str, Any] = {}
    if isinstance(node, list):
        for item in node:
            lifted |= _lift(item)
    elif isinstance(node, dict):
        lifted |= node.pop("$defs", {})
        reference = node.get("$ref", "")
        if reference.startswith("#/$defs/"):
            node["$ref"] = "#/components/schemas/" + reference.removeprefix("#/$defs/")
        for inner in (*node.values(), *lifted.values()):
            lifted = {**_lift(inner), **lifted}
    return lifted


def outline(document: Mapping[str, Any]) -> list[tuple[str, str, Mapping[str, Any]]]:
    """Method, path and operation of each route, in order: for pages."""
    return [
        (method.upper(), path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
