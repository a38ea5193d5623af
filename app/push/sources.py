"""What the stream needs to see, and what it has seen.

The use cases offer these; the surfaces join the two. Whatever is seen carries the deciding instant of the look, so
that time left can be counted on from there on the monotonic clock and is never told too long.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from app.clock import MICROSECONDS, monotonic
from app.core.handoff import HandoffRecord, Mover

FeedName = Literal["handoffs", "leases", "claims"]
LeaseCause = Literal["granted", "renewed", "released", "lapsed", "completed", "broken"]


@dataclass(frozen=True, slots=True)
class HandoffSeen:
    """A handoff as it stood at `now` (microseconds, the deciding clock), looked at at `seen_at` (monotonic)."""

    record: HandoffRecord
    now: int
    seen_at: float = field(default_factory=monotonic)

    @property
    def ends_at(self) -> int | None:
        """When to look again though nobody writes: its expiry."""
        return None if self.is_expired else self.record.expires_at

    @property
    def mark(self) -> tuple[object, ...]:
        """Equal for two looks between which nothing happened."""
        return (self.record.version, self.is_expired)

    @property
    def is_expired(self) -> bool:
        """Whether it was over."""
        return self.record.is_expired(self.now)

    def left(self) -> int:
        """Microseconds of life left by now, at least 0."""
        gone = round((monotonic() - self.seen_at) * MICROSECONDS)
        return max(0, self.record.expires_at - self.now - gone)

    def is_older_than(self, other: "HandoffSeen") -> bool:
        """Whether the other look saw more; a history never shrinks."""
        return self.record.version < other.record.version


@dataclass(frozen=True, slots=True)
class LeaseSeen:
    """What a stranger with the key may know of a lease. `ends_at`: when it turns free though nobody writes."""

    status: Literal["free", "held", "completed"]
    fence: int | None
    ends_at: int | None
    cause: LeaseCause | None
    now: int
    seen_at: float = field(default_factory=monotonic)

    @property
    def mark(self) -> tuple[object, ...]:
        """Equal for two looks between which nothing happened."""
        return (self.status, self.fence, self.ends_at, self.cause)

    def left(self) -> int | None:
        """Microseconds until a held lease ends, at least 0."""
        if self.ends_at is None or self.status != "held":
            return None
        return max(0, self.ends_at - self.now - round((monotonic() - self.seen_at) * MICROSECONDS))

    def is_older_than(self, _: "LeaseSeen") -> bool:
        """Looks at a lease come one after the other: the later counts."""
        return False


class Handoffs(Protocol):
    """Handoffs, expired ones included until the sweep takes them."""

    def open(self, *, handoff_id: str, token: str) -> tuple[Mover, HandoffSeen] | None:
        """Whose token it is, and the handoff; None for an unknown one and a wrong token alike. Raises Unavailable."""
        ...

    def look(self, handoff_ids: Sequence[str]) -> Mapping[str, HandoffSeen]:
        """Those that exist, in one query. Raises Unavailable."""
        ...


class Leases(Protocol):
    """Leases by the hexadecimal digest of their key."""

    def look(self, digests: Sequence[str]) -> Mapping[str, LeaseSeen]:
        """One for each digest, in one query; a key never seen is free. Raises Unavailable."""
        ...


class RightsEnded(Exception):
    """The operator's session ended."""


class Feed(Protocol):
    """What an operator sees of one kind of thing."""

    topic: str
    """The signal that says when to look."""

    def look(self) -> Mapping[str, object] | None:
        """The members of a `feed` frame with what is new since the last look (at first: where it stands); None:
        nothing. Raises RightsEnded, Unavailable."""
        ...


OpenFeed = Callable[[FeedName, Mapping[str, str]], Feed | None]
"""`open(feed, cookies)`: None when the cookies are no operator's session."""


def no_feeds(_: FeedName, __: Mapping[str, str]) -> Feed | None:
    """Where there is no dashboard."""
    return None
