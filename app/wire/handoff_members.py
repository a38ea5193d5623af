"""What the four handoff routes take.

The machine is checked by core when the members are, so that a declaration which is no machine is refused like any
other member. The parts of a path have a form too, and are refused the same way.
"""

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, PrivateAttr, WithJsonSchema, model_validator

from app.core.machine import DEFAULT_STATES, Machine, MalformedMachine, Who, declare, is_state_name
from app.tokens import is_identifier
from app.wire import errors
from app.wire.codes import Code
from app.wire.json import RawJson
from app.wire.kinds import (
    ANY_BUT_NULL,
    LARGEST_VERSION,
    HandoffOwnerToken,
    HandoffReceiverToken,
    Nonce,
    Note,
    Raw,
    Title,
    WaitSeconds,
)
from app.wire.members import Members, Rule, fault
from app.wire.reply import Refused, refusal

LARGEST_PAYLOAD = 16_384
"""Bytes of a payload as sent."""

_NAME_RULE = "a-z first, then up to 31 of a-z, 0-9 and _"
_whole_number = re.compile(r"0|[1-9][0-9]*", re.ASCII).fullmatch


def _payload_that_fits(payload: RawJson) -> RawJson:
    if payload.text == "null":
        raise fault("payload must be any JSON value but null")
    size = payload.size
    if size > LARGEST_PAYLOAD:
        raise fault(
            f"The payload is {size} bytes and may be {LARGEST_PAYLOAD}; nothing was created",
            code=Code.PAYLOAD_TOO_LARGE,
            members={"size_bytes": size, "limit_bytes": LARGEST_PAYLOAD},
        )
    return payload


def _state_name(name: str) -> str:
    if not is_state_name(name):
        raise fault(f"from must be the name of a state: {_NAME_RULE}", field="from")
    return name


def _target_name(name: str) -> str:
    if not is_state_name(name):
        raise fault(f"to must be the name of a state: {_NAME_RULE}", field="to")
    return name


HandoffId = Annotated[str, Field(description="Which handoff: 32 lower-case hex digits, as its creation gave them.")]
HandoffToken = Annotated[str, Field(description="Your token of it: the owner's (howner_) or the receiver's (hrecv_).")]
Expected = Annotated[
    str,
    Rule(f"the name of a state: {_NAME_RULE}"),
    AfterValidator(_state_name),
    Field(alias="from", description="The state that it is in as far as you know; it moves from no other."),
]


class CreateHandoff(Members):
    """`POST /handoff`."""

    payload: Annotated[
        Raw, Rule("any JSON value but null"), AfterValidator(_payload_that_fits), WithJsonSchema(ANY_BUT_NULL)
    ] = Field(
        description=f"What is handed over: any JSON value but null, at most {LARGEST_PAYLOAD} bytes as sent. Kept and "
        "answered byte for byte."
    )
    note: Note | None = None
    states: (
        Annotated[
            list[str],
            Rule("a list of 2 to 12 state names"),
            Field(
                description=f"2 to 12 distinct names in order, each {_NAME_RULE}; the first is the start. "
                f"Default: {', '.join(DEFAULT_STATES)}.",
                json_schema_extra={"minItems": 2, "maxItems": 12},
            ),
        ]
        | None
    ) = None
    final: (
        Annotated[
            list[str],
            Rule("a list of declared states"),
            Field(description="The states that end the handoff. Default: the last declared."),
        ]
        | None
    ) = None
    transitions: (
        Annotated[
            dict[str, list[str]],
            Rule("an object of lists of states"),
            Field(
                description="State to the list of later states it may move to. A state that is left out may move to "
                "every later one."
            ),
        ]
        | None
    ) = None
    permissions: (
        Annotated[
            dict[str, Who],
            Rule('an object of "owner", "receiver" or "any" by state'),
            Field(description="State to who may move into it: owner, receiver or any (the default)."),
        ]
        | None
    ) = None
    notify_url: (
        Annotated[
            str,
            Field(
                min_length=1,
                max_length=2048,
                description="Where a small signed message is posted after each move: http(s), a public host.",
            ),
        ]
        | None
    ) = None
    ttl_seconds: Annotated[
        int, Field(ge=60, le=86_400, description="Its whole life in seconds, 60 to 86400. Nothing extends it.")
    ] = 86_400
    title: Title | None = None
    audience: Annotated[
        Literal["agent", "person"],
        Field(description="Whom it is for; a person's handoff appears in the operator's review inbox."),
    ] = "agent"
    nonce: Nonce | None = None
    owner_token: HandoffOwnerToken | None = None
    receiver_token: HandoffReceiverToken | None = None
    _machine: Machine = PrivateAttr()

    @property
    def machine(self) -> Machine:
        """The declared machine."""
        return self._machine

    @model_validator(mode="after")
    def _members_fit_together(self) -> Self:
        machine = declare(self.states, self.final, self.transitions, self.permissions)
        if isinstance(machine, MalformedMachine):
            raise fault(machine.error, field=machine.field)
        self._machine = machine
        three = {"nonce": self.nonce, "owner_token": self.owner_token, "receiver_token": self.receiver_token}
        absent = [name for name, value in three.items() if value is None]
        if 0 < len(absent) < len(three):
            raise fault(
                "nonce, owner_token and receiver_token are given together or not at all",
                field=absent[0],
                fix="Send all three to make the creation safe to repeat, or none of them.",
            )
        return self


class MoveHandoff(Members):
    """`POST /handoff/{id}/{state}`."""

    expected: Expected
    nonce: Nonce | None = None
    note: Note | None = None


class ReadHandoff(Members):
    """Read it, and wait for news of it: what REST has in the path, the headers and the method, as members."""

    handoff_id: HandoffId
    token: HandoffToken
    wait_seconds: WaitSeconds | None = None
    since_version: Annotated[
        int | None,
        Field(
            ge=1,
            le=LARGEST_VERSION,
            description="The `version` that you know: the wait ends at once if it is another one by now, so no move "
            "is missed. Without it the wait is for the next move.",
        ),
    ] = None


class AdvanceHandoff(Members):
    """A move, with the parts of the path as members."""

    handoff_id: HandoffId
    token: HandoffToken
    to: Annotated[
        str,
        Rule(f"the name of a state: {_NAME_RULE}"),
        AfterValidator(_target_name),
        Field(description="The state to move it into."),
    ]
    expected: Expected
    nonce: Nonce | None = None
    note: Note | None = None


def known_form(handoff_id: str) -> str:
    """The name of a handoff if it has the form of one. Raises Refused with the 404 of an unknown one."""
    if not is_identifier(handoff_id):
        raise Refused(errors.not_found())
    return handoff_id


def target_state(name: str) -> str:
    """The state in the path of a move. Raises Refused with 400 where it is no name at all."""
    if not is_state_name(name):
        raise Refused(refusal(Code.INVALID_REQUEST, error=f"The state in the path must be {_NAME_RULE}", field="state"))
    return name


def wait_seconds(text: str) -> int:
    """The seconds in the path of a wait; more than anyone may wait is fine. Raises Refused with 400."""
    if not _whole_number(text):
        raise Refused(
            refusal(
                Code.INVALID_REQUEST,
                error="The seconds in the path must be a whole number from 0 to 25, without a sign or leading zeros",
                field="seconds",
            )
        )
    return int(text) if len(text) <= 2 else 99
