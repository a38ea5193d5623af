"""What a caller cannot go on from. Every refusal of the server has a class of its own, found by its stable code.

No message and no repr names a key, a token or a payload: without a namespace a lease's key is itself a secret.
"""

from collections.abc import Mapping
from typing import Any, ClassVar


class FencepostError(Exception):
    """Anything this package raises on its own account."""


class Unreachable(FencepostError):
    """The server gave no usable answer within the time limit, though the call was sent again and again.

    Whether it was carried out is unknown; sending the same call once more is safe, for it carries its own token.
    """


class LeaseLost(FencepostError):
    """The lease is not certainly held any more: stop the guarded work.

    `reason` is "lost" when the server said so, "expired" when no renewal was heard of in time, "broken" when an
    operator took it, "released" or "completed" after the holder's own act, "forked" in a child of the holder.
    """

    def __init__(self, reason: str = "lost") -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return f"the lease is not held any more: {self.reason}"


class NotGranted(FencepostError):
    """The lease could not be had in the time given; `outcome` says who or what stood in the way."""

    def __init__(self, outcome: object) -> None:
        super().__init__(outcome)
        self.outcome = outcome

    def __str__(self) -> str:
        return f"the lease was not granted: {type(self.outcome).__name__.lower()}"


class InProgressElsewhere(FencepostError):
    """Another caller is still at this action, and it did not end in the time given."""


class PayloadMismatch(FencepostError):
    """The action key was claimed for another payload: one of the two callers uses the key wrongly."""


class StreamStopped(FencepostError):
    """The server ended a stream for good (close codes 4000 to 4099); asking again would end the same way."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(code, reason)
        self.close_code = code

    def __str__(self) -> str:
        return f"the server ended the stream: {self.args[1] or 'no reason given'} ({self.close_code})"


class Refused(FencepostError):
    """The server refused the call as it was sent. `code` is stable, `details` is the whole answer."""

    code: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if cls.code:
            _CLASSES[cls.code] = cls

    def __init__(self, status: int, details: Mapping[str, Any]) -> None:
        super().__init__(status, details)
        self.status = status
        self.details = details

    def __str__(self) -> str:
        sentence = f"{self.details.get('error', 'refused')} ({self.details.get('code', self.status)})"
        return f"{sentence}. {self.details['fix']}" if self.details.get("fix") else sentence

    def __repr__(self) -> str:
        return f"{type(self).__name__}(status={self.status}, code={self.details.get('code')!r})"


_CLASSES: dict[str, type[Refused]] = {}


def refused(status: int, answer: Mapping[str, Any]) -> Refused:
    """The exception of an answer that is no success and that no caller branches on."""
    return _CLASSES.get(str(answer.get("code")), Refused)(status, answer)


def has_class(code: str) -> bool:
    """Whether a code of the server has its own class here."""
    return code in _CLASSES
