"""The use cases of the once-key. Secrets become digests here, before anything else sees them.

Each use case enters the namespace first and then looks at the claim, so that a caller without the namespace's token
learns nothing of what is in it, and so that locks are taken in one order.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from app import tokens
from app.core import claim as core
from app.core import namespace as owners
from app.core.credit import Charged, PaymentRequired
from app.core.namespace import NamespaceForbidden, NamespaceFounded, NamespaceOwned, NamespaceWeak
from app.services import audit
from app.services.action import action_of, claimant_hash, owner_hash, payload_hash, shown_hash, stronger, topic
from app.services.claim_try import ClaimAnswer, Tried, busy_until, is_free, is_taken
from app.services.credit import Credits, NotPaid, Toll
from app.services.ports import Caller
from app.services.waiting import Waiting, Wish
from app.storage import claim as storage
from app.storage import namespace as namespaces
from app.storage.claim import Action
from app.storage.engine import Engine, Reader, Transaction
from app.tokens import Kind

FEED = "feed:claims"

_Decided = TypeVar("_Decided")


@dataclass(frozen=True, slots=True)
class Rotated:
    """The namespace has this token now."""

    namespace_token: str


@dataclass(frozen=True, slots=True)
class _Visit:
    """A claim on its way in: the action, what is asked, the shown token's digest, the one a new owner would have.

    `toll` is what it pays, where claims have a price. One that `waits` pays for its last answer only.
    """

    name: str
    action: Action
    ask: core.ClaimAsk
    shown_hash: bytes | None
    founding_hash: bytes | None
    toll: Toll | None
    waits: bool


class Claims:
    """Claim, complete, release, renew, look, rotate a namespace's token, and break. `credits`: claims have a price."""

    def __init__(
        self, engine: Engine, waiting: Waiting, *, strong_names: bool = False, credits: Credits | None = None
    ) -> None:
        self._engine = engine
        self._waiting = waiting
        self._strong_names = strong_names
        self._credits = credits

    def claim(
        self,
        *,
        namespace: str,
        action_key: str,
        namespace_token: str | None,
        payload_sha256: str | None,
        ttl_seconds: int,
        lease_ttl_seconds: int | None,
        claim_token: str | None,
        wait_seconds: int,
        caller: Caller,
        credit_token: str | None = None,
    ) -> ClaimAnswer:
        """Be the one to act, or say why not; wait up to `wait_seconds` (0 to 25) while another is at it.

        A namespace that nobody owns becomes the caller's, with the token that it brought or a new one. Where claims
        have a price, each answer is charged to `credit_token` but for a weak name and a repeat: in the transaction of
        the claim if it is granted, and after a wait for what the wait came to.
        Raises HungUp when the caller left while it waited, Full when too many wait, Unavailable.
        """
        claimant = tokens.mint(Kind.CLAIMANT) if claim_token is None else claim_token
        toll = None if self._credits is None or credit_token is None else self._credits.toll(credit_token)
        if self._credits is not None and toll is None:
            return ClaimAnswer(PaymentRequired(self._credits.price), claimant)
        owner = tokens.mint(Kind.ONCE_NAMESPACE) if namespace_token is None else namespace_token
        visit = _Visit(
            name=namespace,
            action=action_of(namespace, action_key),
            ask=core.ClaimAsk(
                claimant_hash=claimant_hash(claimant),
                ttl_seconds=ttl_seconds,
                lease_ttl_seconds=lease_ttl_seconds,
                payload_hash=None if payload_sha256 is None else payload_hash(payload_sha256),
            ),
            shown_hash=shown_hash(namespace_token),
            founding_hash=owner_hash(owner) if tokens.is_well_formed(Kind.ONCE_NAMESPACE, owner) else None,
            toll=toll,
            waits=wait_seconds > 0,
        )
        try:
            tried = self._answered(visit, wait_seconds, caller)
        except NotPaid as refused:
            return ClaimAnswer(refused.outcome, claimant)
        return ClaimAnswer(
            tried.outcome,
            claimant,
            namespace_token=owner if tried.founded else None,
            suggested_name=stronger(namespace) if isinstance(tried.outcome, NamespaceWeak) else None,
            charged=tried.charged,
        )

    def complete(
        self,
        *,
        namespace: str,
        action_key: str,
        namespace_token: str | None,
        claim_token: str | None,
        result: str | None,
        ttl_seconds: int,
    ) -> (
        core.ClaimCompleted
        | core.AlreadyCompleted
        | core.NoClaim
        | core.ClaimLost
        | core.ResultTooLarge
        | NamespaceForbidden
    ):
        """Record a result (JSON text as sent, checked; None for nothing) and keep it for `ttl_seconds` from now."""
        claimant = None if claim_token is None else claimant_hash(claim_token)
        kept = None if result is None else result.encode("utf-8")
        return self._decide(
            action_of(namespace, action_key),
            shown_hash(namespace_token),
            lambda record, now: core.complete(record, claimant, kept, ttl_seconds, now),
        )

    def release(
        self, *, namespace: str, action_key: str, namespace_token: str | None, claim_token: str | None
    ) -> core.ClaimReleased | core.AlreadyCompleted | core.NoClaim | core.ClaimLost | NamespaceForbidden:
        """Give an unfinished claim up; the action is free at once."""
        claimant = None if claim_token is None else claimant_hash(claim_token)
        return self._decide(
            action_of(namespace, action_key),
            shown_hash(namespace_token),
            lambda record, now: core.release(record, claimant, now),
        )

    def renew(
        self,
        *,
        namespace: str,
        action_key: str,
        namespace_token: str | None,
        claim_token: str,
        lease_ttl_seconds: int,
    ) -> (
        core.ClaimRenewed | core.AlreadyCompleted | core.NoClaim | core.ClaimLost | core.NotLeased | NamespaceForbidden
    ):
        """Replace the end of the current claimant's live lease."""
        claimant = claimant_hash(claim_token)
        return self._decide(
            action_of(namespace, action_key),
            shown_hash(namespace_token),
            lambda record, now: core.renew(record, claimant, lease_ttl_seconds, now),
        )

    def status(
        self, *, namespace: str, action_key: str, namespace_token: str | None
    ) -> core.ClaimStatus | NamespaceForbidden:
        """Where the action stands. Changes nothing."""
        action = action_of(namespace, action_key)
        shown = shown_hash(namespace_token)

        def query(reader: Reader) -> core.ClaimStatus | NamespaceForbidden:
            namespace, claim = storage.look_up(reader, action)
            entered = owners.enter(namespace, shown)
            return entered if isinstance(entered, NamespaceForbidden) else core.status(claim, reader.now())

        return self._engine.read(query)

    def rotate_token(self, *, namespace: str, namespace_token: str | None) -> Rotated | NamespaceForbidden:
        """Give the namespace a new token; the old one stops with the commit."""
        namespace_hash = tokens.digest("once-namespace", namespace)
        shown = shown_hash(namespace_token)
        fresh = tokens.mint(Kind.ONCE_NAMESPACE)

        def operation(tx: Transaction) -> Rotated | NamespaceForbidden:
            entered = owners.enter(namespaces.lock(tx, namespace_hash), shown)
            tx.failpoint("after-lock")
            if isinstance(entered, NamespaceForbidden):
                return entered
            namespaces.set_token(tx, namespace_hash, owners.rotate(entered.record, owner_hash(fresh)))
            return Rotated(fresh)

        return self._engine.run(operation)

    def break_off(
        self, *, claim_hash: bytes, fence: int, actor: str = "", reason: str = ""
    ) -> core.ClaimReleased | core.ClaimNotBroken:
        """Release the unfinished claim with this fence: for an operator, who needs no token.

        The audit has a line of it exactly when it happened.
        """

        def operation(tx: Transaction) -> core.ClaimReleased | core.ClaimNotBroken:
            record = storage.lock(tx, claim_hash)
            outcome = core.break_off(record, fence, tx.now())
            action = storage.action(tx, claim_hash)
            if isinstance(outcome, core.ClaimReleased) and action is not None:
                _write(tx, action, outcome.record)
                detail = f"fence {fence}: {reason}"
                audit.note(tx, actor=actor, action="claim.release", subject=claim_hash.hex(), detail=detail)
            return outcome

        return self._engine.run(operation)

    def _answered(self, visit: _Visit, wait_seconds: int, caller: Caller) -> Tried:
        """What it came to, paid for. Raises NotPaid."""
        if visit.toll is not None and wait_seconds and not self._engine.read(visit.toll.can_pay):
            wait_seconds = 0  # it gets its refusal at once, or what it paid for before
        wish = Wish(
            topic=topic(visit.action.claim_hash),
            identity=visit.ask.claimant_hash,
            attempt=partial(self._attempt, visit),
            look=partial(self._look, visit),
            busy_until=busy_until,
            is_taken=is_taken,
            undo=lambda _: self._give_back(visit),
        )
        return self._paid(visit, self._waiting.fulfil(wish, wait_seconds, caller))

    def _attempt(self, visit: _Visit, urgent: bool) -> Tried:
        toll = visit.toll

        def operation(tx: Transaction) -> Tried:
            if toll is None:
                return self._try(tx, visit)
            account = toll.lock(tx)
            tried = self._try(tx, visit)
            if is_free(tried.outcome):
                return replace(tried, charged=Charged(account, 0))
            if visit.waits and busy_until(tried) is not None:
                return tried
            return replace(tried, charged=toll.pay(tx, account))

        return self._engine.run(operation, urgent=urgent)

    def _try(self, tx: Transaction, visit: _Visit) -> Tried:
        entered = self._enter_or_found(tx, visit)
        if not isinstance(entered, NamespaceOwned | NamespaceFounded):
            return Tried(entered)
        record = storage.lock_or_make(tx, visit.action.claim_hash)
        tx.failpoint("after-lock")
        outcome = core.claim(record, visit.ask, tx.next_fence, tx.now())
        tx.failpoint("after-decide")
        if isinstance(outcome, core.ClaimConflict):
            storage.save(tx, visit.action, outcome.record)
        elif isinstance(outcome, core.Claimed) and not outcome.repeated:
            _write(tx, visit.action, outcome.record)
        return Tried(outcome, founded=isinstance(entered, NamespaceFounded))

    def _paid(self, visit: _Visit, tried: Tried) -> Tried:
        """The answer with its charge: what was only looked at is paid for before it is told."""
        toll = visit.toll
        if toll is None or tried.charged is not None:
            return tried
        free = is_free(tried.outcome)

        def operation(tx: Transaction) -> Charged:
            account = toll.lock(tx)
            return Charged(account, 0) if free else toll.pay(tx, account)

        return replace(tried, charged=self._engine.run(operation))

    def _enter_or_found(
        self, tx: Transaction, visit: _Visit
    ) -> NamespaceOwned | NamespaceFounded | NamespaceForbidden | NamespaceWeak:
        namespace_hash = visit.action.namespace_hash
        record = namespaces.share(tx, namespace_hash)
        if record is None:
            if storage.is_any_live(tx, namespace_hash, tx.now()):
                return (
                    NamespaceForbidden()
                )  # its owner's row was lost, by hand or by damage: not for a stranger to find
            founded = owners.found(visit.name, visit.founding_hash, strong_names=self._strong_names, now=tx.now())
            if not isinstance(founded, NamespaceFounded) or namespaces.add(tx, namespace_hash, founded.record):
                return founded
            record = namespaces.share(tx, namespace_hash)
        return owners.enter(record, visit.shown_hash)

    def _look(self, visit: _Visit) -> Tried | None:
        def query(reader: Reader) -> Tried | None:
            record, claim = storage.look_up(reader, visit.action)
            if record is None:
                return None
            entered = owners.enter(record, visit.shown_hash)
            if isinstance(entered, NamespaceForbidden):
                return Tried(entered)
            tried = Tried(core.claim(claim, visit.ask, _no_fence, reader.now()))
            return None if is_taken(tried) else tried

        return self._engine.read(query)

    def _give_back(self, visit: _Visit) -> None:
        def operation(tx: Transaction) -> None:
            account = None if visit.toll is None else visit.toll.lock(tx)
            outcome = self._decide_within(
                tx,
                visit.action,
                visit.founding_hash,  # what was granted was granted under this one, brought or minted
                lambda record, now: core.give_back(record, visit.ask.claimant_hash, now),
            )
            if visit.toll is not None and account is not None and isinstance(outcome, core.ClaimReleased):
                visit.toll.give_back(tx, account)

        self._engine.run(operation)

    def _decide(
        self,
        action: Action,
        shown_hash: bytes | None,
        decision: Callable[[core.ClaimRecord | None, int], _Decided],
    ) -> _Decided | NamespaceForbidden:
        return self._engine.run(lambda tx: self._decide_within(tx, action, shown_hash, decision))

    def _decide_within(
        self,
        tx: Transaction,
        action: Action,
        shown_hash: bytes | None,
        decision: Callable[[core.ClaimRecord | None, int], _Decided],
    ) -> _Decided | NamespaceForbidden:
        namespace, record = storage.lock_as_owner(tx, action, shown_hash)
        entered = owners.enter(namespace, shown_hash)
        if isinstance(entered, NamespaceForbidden):
            return entered
        tx.failpoint("after-lock")
        outcome = decision(record, tx.now())
        tx.failpoint("after-decide")
        changed = getattr(outcome, "record", record)
        if changed is not None and changed is not record:
            _write(tx, action, changed)
        return outcome


def _write(tx: Transaction, action: Action, record: core.ClaimRecord) -> None:
    storage.save(tx, action, record)
    tx.ring(topic(action.claim_hash))
    tx.ring(FEED)


def _no_fence() -> int:
    return 0
