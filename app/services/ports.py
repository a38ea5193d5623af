"""What the use cases need of the world around them: waiting, and the caller's connection.

`app/push` offers these; the surfaces bring the caller.
"""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Literal, Protocol, Self

from app.storage.engine import Unavailable

__all__ = ["Caller", "Deadlines", "HungUp", "Lines", "Place", "Seats", "Signals", "Ticket", "Unavailable"]


class HungUp(Exception):
    """The caller closed its connection while it waited; nobody is there to answer."""


class Caller(Protocol):
    """The connection that a use case was called over."""

    def is_open(self) -> bool:
        """Whether the other side is still there, as far as this machine knows."""
        ...

    def on_hang_up(self, wake: Callable[[], None]) -> AbstractContextManager[object]:
        """Call `wake` if the other side closes the connection while the context is open."""
        ...


class Place(Protocol):
    """A place in a line; a context manager."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def wake(self) -> None: ...

    def is_first(self) -> bool: ...

    def wait(self, timeout_seconds: float) -> Literal["look", "time", "gone", "stopping"]: ...


class Lines(Protocol):
    """First come, first granted."""

    def place(self, topic: str, identity: bytes, is_open: Callable[[], bool]) -> Place: ...

    def length(self, topic: str) -> int: ...

    def wake_all(self, topic: str) -> None: ...


class Ticket(Protocol):
    """A place among the listeners of a topic; a context manager."""

    @property
    def has_seen_commit(self) -> bool:
        """Whether this process committed to the topic while it listened."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def ring(self) -> None: ...

    def wait(self, timeout_seconds: float) -> bool: ...


class Signals(Protocol):
    """Whoever listens to a topic is woken by a commit that touched it."""

    @property
    def stopping(self) -> bool: ...

    def listen(self, topic: str, /) -> Ticket: ...

    def ring(self, topics: Iterable[str], /) -> None: ...


class Deadlines(Protocol):
    """Signals at an instant of the deciding clock."""

    def at(self, topic: str, instant: int) -> None: ...


class Seats(Protocol):
    """A bounded number of callers may be parked."""

    def seat(self) -> AbstractContextManager[None]: ...
