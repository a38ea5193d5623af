"""What the answers of several routes are made of: kinds of members with their descriptions, and the refusal.

Answers are TypedDicts: the type checker holds the code that writes them to these names, and `output_schema` prints
them for OpenAPI and the MCP tools.
"""

from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

Answers = dict[int, tuple[Any, ...]]
"""What a route may answer beside the refusals that all share: HTTP status to the TypedDicts of its bodies."""

Yes = Annotated[Literal[True], Field(description="true: done as asked.")]
No = Annotated[Literal[False], Field(description="false: refused, and nothing changed.")]
Instant = Annotated[
    str, Field(description="An instant in UTC, whole seconds, rounded down.", json_schema_extra={"format": "date-time"})
]
Timestamp = Annotated[int, Field(description="The same instant as Unix seconds, rounded down.")]
RetryAfter = Annotated[int, Field(ge=1, description="Whole seconds to wait before asking again, rounded up.")]
Repeated = Annotated[
    Literal[True], Field(description="Present when this repeats an answer that was given before; nothing changed now.")
]
Sentence = Annotated[str, Field(description="What is the matter, for people.")]
Fix = Annotated[str, Field(description="What to do next, in one sentence.")]


class RefusalAnswer(TypedDict):
    """A refusal as every route may give it."""

    ok: No
    status: NotRequired[Annotated[str, Field(description="A word for the situation, where the route names one.")]]
    code: Annotated[str, Field(description="A stable word for programs.")]
    error: Sentence
    fix: NotRequired[Fix]
    field: NotRequired[Annotated[str, Field(description="The member that is wrong, in `invalid_request`.")]]
