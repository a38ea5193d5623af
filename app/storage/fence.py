"""Fencing tokens: epoch * 2**40 + count.

The count outlives every row, so a token never comes twice. The epoch rises when a database may have forgotten its
last moments (a restored backup, a failover), so that even then a token never goes back. The largest token is
2**53 - 1, the last integer that every JSON reader holds exactly.
"""

COUNT_BITS = 40
LARGEST_COUNT = 2**COUNT_BITS - 1
LARGEST_EPOCH = 2**13 - 1


class FencesUsedUp(Exception):
    """All tokens of this epoch, or all epochs, are used; `raise-epoch` or a new database is needed."""


def fence(epoch: int, count: int) -> int:
    """The token with this epoch (0 to 2**13 - 1) and count (1 to 2**40 - 1)."""
    if not 0 <= epoch <= LARGEST_EPOCH or not 0 < count <= LARGEST_COUNT:
        raise FencesUsedUp(f"no fencing token has epoch {epoch} and count {count}")
    return epoch << COUNT_BITS | count
