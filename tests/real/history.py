"""Histories of a key, and what must be true of them.

Each caller notes what it asked and was told, with the monotonic instants before it sent and after it heard. Fences
order the ownerships as the server did, so no search is needed: sort by fence and compare intervals.
"""

import threading
from dataclasses import dataclass, field
from itertools import pairwise


@dataclass(frozen=True)
class Grant:
    """An ownership that a caller was told of, and when it gave it up, if it was told so.

    `asked`/`told` bracket the grant. `ending` is the instant before the release or completion was sent; None when
    the caller never sent one, so that only the TTL can have ended it.
    """

    key: str
    fence: int
    owner: str
    asked: float
    told: float
    ttl: float
    ending: float | None = None


@dataclass
class History:
    """What all callers noted, from any thread."""

    grants: list[Grant] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, grant: Grant) -> None:
        """Add one ownership."""
        with self.lock:
            self.grants.append(grant)

    def faults(self) -> list[str]:
        """Every violation: a fence granted twice, a fence that fell, an ownership that began before one had ended."""
        found = []
        for key in sorted({grant.key for grant in self.grants}):
            found += _faults_of_key([grant for grant in self.grants if grant.key == key])
        return found


def _faults_of_key(grants: list[Grant]) -> list[str]:
    found = []
    ordered = sorted(grants, key=lambda grant: grant.fence)
    for earlier, later in pairwise(ordered):
        where = f"{earlier.key}: fences {earlier.fence} and {later.fence}"
        if earlier.fence == later.fence:
            found.append(f"{where}: granted twice")
        if later.told < earlier.asked:
            found.append(f"{where}: the higher one was told before the lower one was asked for")
        may_end = earlier.asked + earlier.ttl if earlier.ending is None else earlier.ending
        if later.told < min(may_end, earlier.asked + earlier.ttl):
            found.append(f"{where}: two holders at one instant")
    return found
