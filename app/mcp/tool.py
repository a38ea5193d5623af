"""A tool: what it takes, what it does, what it may answer. One row of a table, made of definitions that exist anyway.

The arguments are checked by the wire model of the REST route and the answer is the route's body, so the two cannot
drift apart. Answers that an agent must branch on (held, conflict, lost, a refused move) are results like any other:
a model told "error" tries again, which is exactly what it must not do. Only what REST refuses as a bad or untimely
request is an error of the tool, with the same JSON.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from app.mcp.refusals import EVERYWHERE
from app.services.ports import Caller
from app.wire import errors
from app.wire.answers import Answers
from app.wire.credit import BALANCE, CHARGED
from app.wire.json import RawJson
from app.wire.members import Members, parse
from app.wire.reply import Refused, Reply
from app.wire.schema import Schema, input_schema, output_schema

CREDIT = "fencepost/credit"
"""In a result's `_meta`: what the call cost and what is left, which REST says in headers."""
_BRANCHES = frozenset({403, 409})
M = TypeVar("M", bound=Members)


@dataclass(frozen=True, slots=True)
class Asker:
    """Who calls: the connection, the address that is counted (None is not), the request's `_meta`.

    `origin` works out where the call comes from, counted or not.
    """

    caller: Caller
    address: str | None
    meta: Mapping[str, object]
    origin: Callable[[], str]


class Entry(Protocol):
    """What a server can list and call."""

    @property
    def name(self) -> str: ...

    def listing(self) -> Schema: ...

    def call(self, arguments: bytes, asker: Asker) -> Reply | Mapping[str, object]: ...


@dataclass(frozen=True, slots=True)
class Hints:
    """What a client may assume: it changes nothing; saying it twice does what saying it once does."""

    reads_only: bool
    is_idempotent: bool


MINTS = Hints(reads_only=True, is_idempotent=False)
LOOKS = Hints(reads_only=True, is_idempotent=True)
BEGINS = Hints(reads_only=False, is_idempotent=False)
SETTLES = Hints(reads_only=False, is_idempotent=True)


@dataclass(frozen=True, slots=True)
class Tool(Generic[M]):
    """One use case as a tool.

    `act` is given the checked arguments and answers as the REST route does. `answers` and `refusals` are the
    TypedDicts of what may come back; `cap` is the largest body of the route, for the arguments alike.
    """

    name: str
    title: str
    description: str
    members: type[M]
    act: Callable[[M, Asker], Reply]
    answers: Answers
    hints: Hints
    cap: int
    refusals: tuple[Any, ...] = ()

    def call(self, arguments: bytes, asker: Asker) -> Reply:
        """Check and act. Raises Refused, and what the service raises."""
        if len(arguments) > self.cap:
            raise Refused(errors.body_too_large(self.cap))
        return self.act(parse(self.members, arguments), asker)

    def listing(self) -> Schema:
        """What a client is shown of it."""
        return {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": input_schema(self.members, null=False),
            "outputSchema": self.output(),
            "annotations": {
                "title": self.title,
                "readOnlyHint": self.hints.reads_only,
                "destructiveHint": False,
                "idempotentHint": self.hints.is_idempotent,
                "openWorldHint": False,
            },
        }

    def output(self, *, closed: bool = False) -> Schema:
        """The schema of everything that it answers, refusals included. `closed` is for tests."""
        told = [answer for some in self.answers.values() for answer in some]
        return output_schema(*dict.fromkeys([*told, *self.refusals, *EVERYWHERE]), closed=closed)


def result_of(reply: Reply) -> dict[str, object]:
    """The tool's result: the REST body as text and as structure."""
    text = reply.encode().decode("utf-8")
    members: dict[str, object] = {
        "content": [{"type": "text", "text": text}],
        "structuredContent": RawJson(text),
    }
    if reply.status >= 400 and reply.status not in _BRANCHES:
        members["isError"] = True
    if CHARGED in reply.headers:
        members["_meta"] = {
            CREDIT: {"charged_usd": reply.headers[CHARGED], "balance_usd": reply.headers[BALANCE]},
        }
    return members
