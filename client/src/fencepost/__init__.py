"""Fencepost's client: leases, handoffs and once-keys over plain HTTP.

`Client` and `AsyncClient` offer the same; `keys` makes stable keys and tokens; outcomes are values where a caller must
branch and exceptions where it cannot go on.
"""

from fencepost import errors, keys, receipts, refusals
from fencepost._async.client import AsyncClient
from fencepost._async.handoff import AsyncHandoff
from fencepost._async.lease import AsyncLease
from fencepost._json import RawJson
from fencepost._sync.client import Client
from fencepost._sync.handoff import Handoff
from fencepost._sync.lease import Lease
from fencepost.errors import (
    FencepostError,
    InProgressElsewhere,
    LeaseLost,
    NotGranted,
    PayloadMismatch,
    Refused,
    StreamStopped,
    Unreachable,
)
from fencepost.outcomes import (
    Change,
    Claimed,
    Completed,
    Conflict,
    Duplicate,
    Granted,
    Held,
    InProgress,
    Lost,
    PayloadConflict,
)

__version__ = "0.1.0"

__all__ = [
    "AsyncClient",
    "AsyncHandoff",
    "AsyncLease",
    "Change",
    "Claimed",
    "Client",
    "Completed",
    "Conflict",
    "Duplicate",
    "FencepostError",
    "Granted",
    "Handoff",
    "Held",
    "InProgress",
    "InProgressElsewhere",
    "Lease",
    "LeaseLost",
    "Lost",
    "NotGranted",
    "PayloadConflict",
    "PayloadMismatch",
    "RawJson",
    "Refused",
    "StreamStopped",
    "Unreachable",
    "errors",
    "keys",
    "receipts",
    "refusals",
]
