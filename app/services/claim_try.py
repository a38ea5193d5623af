"""What a try of a claim came to, on its way from the transaction to the answer."""

from dataclasses import dataclass

from app.core import claim as core
from app.core.credit import Charged, Unpaid
from app.core.namespace import NamespaceForbidden, NamespaceWeak

ClaimOutcome = (
    core.Claimed
    | core.InProgress
    | core.ClaimHeld
    | core.Duplicate
    | core.ClaimConflict
    | NamespaceForbidden
    | NamespaceWeak
    | Unpaid
)


@dataclass(frozen=True, slots=True)
class ClaimAnswer:
    """An outcome, and the secrets to show with it.

    `claim_token` is the caller's proof of being the claimant when it is claimed. `namespace_token` is there when
    this claim made the caller the owner of the namespace. `suggested_name` is there for a weak one, `charged` where
    claims have a price and this one was answered.
    """

    outcome: ClaimOutcome
    claim_token: str
    namespace_token: str | None = None
    suggested_name: str | None = None
    charged: Charged | None = None


@dataclass(frozen=True, slots=True)
class Tried:
    """What one try of a claim came to, whether it founded the namespace, what was charged if that is settled."""

    outcome: ClaimOutcome
    founded: bool = False
    charged: Charged | None = None


def busy_until(tried: Tried) -> int | None:
    """When somebody else's ownership ends; None for any outcome that is not "somebody has it"."""
    match tried.outcome:
        case core.InProgress(record, _):
            return record.lease_expires_at
        case core.ClaimHeld(record, _):
            return record.expires_at
        case _:
            return None


def is_taken(tried: Tried) -> bool:
    """Whether the caller owns the claim by this try."""
    return isinstance(tried.outcome, core.Claimed) and not tried.outcome.repeated


def is_free(outcome: ClaimOutcome) -> bool:
    """Whether the answer costs nothing where claims have a price: nothing was done, or it was paid for before."""
    return isinstance(outcome, NamespaceWeak) or (isinstance(outcome, core.Claimed) and outcome.repeated)
