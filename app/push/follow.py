"""What a follower has to be told next: a pure function of what it was told and what there is.

Level-triggered: a follower remembers the last version that it told and nothing else. However many signals merged or
were lost, it tells each entry of the history that it lacks, in order, once. A history has at most 12 entries and
never shrinks, so this is exact for a handoff's whole life.
"""

from dataclasses import dataclass
from typing import Literal

from app.push.sources import HandoffSeen, LeaseCause, LeaseSeen


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Tell all of it. `is_reset`: the follower claimed to know more than there is."""

    is_reset: bool


@dataclass(frozen=True, slots=True)
class Change:
    """Tell the entry that made this version."""

    version: int


@dataclass(frozen=True, slots=True)
class Live:
    """Everything up to this version has been told."""

    version: int


@dataclass(frozen=True, slots=True)
class End:
    """Nothing will follow."""

    reason: Literal["ended", "expired"]


Step = Snapshot | Change | Live | End


class HandoffFollower:
    """One subscription to one handoff. `after` is the last version that its owner has, 0 for none, None: unknown."""

    __slots__ = ("_is_live", "_told", "is_over")

    def __init__(self, after: int | None) -> None:
        self._told = after
        self._is_live = False
        self.is_over = False

    def steps(self, seen: HandoffSeen | None) -> list[Step]:
        """What to tell now, in order. `seen` is None once the sweep has taken it."""
        if self.is_over:
            return []
        if seen is None:
            self.is_over = True
            return [End("expired")]
        steps = self._catch_up(seen)
        if not self._is_live:
            self._is_live = True
            steps.append(Live(seen.record.version))
        if seen.record.is_ended or seen.is_expired:
            self.is_over = True
            steps.append(End("ended" if seen.record.is_ended else "expired"))
        return steps

    def _catch_up(self, seen: HandoffSeen) -> list[Step]:
        version, told = seen.record.version, self._told
        self._told = version
        if told is None and seen.is_expired:
            return []  # the contents of what is over are nobody's any more
        if told is None or told > version:
            return [Snapshot(is_reset=told is not None)]
        return [Change(number) for number in range(told + 1, version + 1)]


class LeaseFollower:
    """One subscription to one lease. Changes between two looks merge into the last."""

    __slots__ = ("_mark",)

    def __init__(self) -> None:
        self._mark: tuple[object, ...] | None = None

    def tell(self, seen: LeaseSeen) -> tuple[bool, LeaseCause | None]:
        """Whether there is something to tell, and what caused it (None at first)."""
        is_first, is_new = self._mark is None, self._mark != seen.mark
        self._mark = seen.mark
        return is_new, None if is_first else seen.cause
