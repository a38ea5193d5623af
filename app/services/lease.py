"""The use cases of the lease. Secrets become digests here, before anything else sees them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeGuard, TypeVar

from app import tokens
from app.core import lease as core
from app.core.redaction import redact
from app.services import audit
from app.services.ports import Caller
from app.services.waiting import Waiting, Wish
from app.storage import lease as storage
from app.storage.engine import Engine, Reader, Transaction
from app.tokens import Kind

AcquireOutcome = core.Granted | core.Held | core.Conflict | core.Completed | core.Lost
FEED = "feed:leases"

_Decided = TypeVar("_Decided")


@dataclass(frozen=True, slots=True)
class Acquisition:
    """An outcome, and the owner token to show when it is a grant."""

    outcome: AcquireOutcome
    owner_token: str


def key_hash(key: str, namespace: str | None) -> bytes:
    """What is stored of a key: with and without a namespace, and in two namespaces, it is two keys."""
    return tokens.digest("lease-key", key) if namespace is None else tokens.digest("lease-key", namespace, key)


def topic(hashed: bytes) -> str:
    """The signal of one key."""
    return "lease:" + hashed.hex()


class Leases:
    """Acquire, renew, release, complete, look, verify and break."""

    def __init__(self, engine: Engine, waiting: Waiting) -> None:
        self._engine = engine
        self._waiting = waiting

    def mint_namespace(self) -> str:
        """A new namespace; nothing is stored."""
        return tokens.mint(Kind.NAMESPACE)

    def acquire(
        self,
        *,
        key: str,
        namespace: str | None,
        ttl_seconds: int,
        fingerprint: str | None,
        owner_token: str | None,
        wait_seconds: int,
        holder: str | None,
        caller: Caller,
    ) -> Acquisition:
        """Hold the key, or say why not; wait up to `wait_seconds` (0 to 25) while somebody else holds it.

        Raises HungUp when the caller left while it waited, Full when too many wait, Unavailable.
        """
        token = owner_token or tokens.mint(Kind.LEASE_OWNER)
        ask = core.Ask(
            owner_hash=_owner_hash(token),
            ttl_seconds=ttl_seconds,
            fingerprint_hash=None if fingerprint is None else tokens.digest("lease-fingerprint", fingerprint),
            holder=None if holder is None else holder.encode("utf-8"),
            brought=owner_token is not None,
        )
        hashed = key_hash(key, namespace)
        wish = Wish(
            topic=topic(hashed),
            identity=ask.owner_hash,
            attempt=partial(self._attempt, hashed, ask),
            look=partial(self._look, hashed, ask),
            busy_until=_busy_until,
            is_taken=_is_taken,
            undo=lambda _: self._release(hashed, ask.owner_hash),
        )
        return Acquisition(self._waiting.fulfil(wish, wait_seconds, caller), token)

    def renew(self, *, key: str, namespace: str | None, owner_token: str, ttl_seconds: int) -> core.Renewed | core.Lost:
        """Replace the end of a live lease."""
        owner = _owner_hash(owner_token)
        return self._decide(key_hash(key, namespace), lambda record, now: core.renew(record, owner, ttl_seconds, now))

    def release(self, *, key: str, namespace: str | None, owner_token: str) -> core.Released | core.Lost:
        """Free the key at once."""
        return self._release(key_hash(key, namespace), _owner_hash(owner_token))

    def complete(self, *, key: str, namespace: str | None, owner_token: str, result: str) -> core.Completed | core.Lost:
        """Record a result (JSON text as sent, checked) for every later caller of this lifecycle."""
        owner = _owner_hash(owner_token)
        kept = redact(result).encode("utf-8")
        return self._decide(key_hash(key, namespace), lambda record, now: core.complete(record, owner, kept, now))

    def status(self, *, key: str, namespace: str | None) -> core.Status:
        """What anyone with the key may know. Creates nothing."""
        hashed = key_hash(key, namespace)
        return self._engine.read(lambda reader: core.status(storage.find(reader, hashed), reader.now()))

    def statuses(self, hashes: Sequence[bytes]) -> tuple[dict[bytes, core.Status], int]:
        """The same for many keys by digest, in one look, and the instant of it: for those who follow them."""

        def query(reader: Reader) -> tuple[dict[bytes, core.Status], int]:
            records = {hashed: storage.find(reader, hashed) for hashed in hashes}
            now = reader.now()
            return {hashed: core.status(record, now) for hashed, record in records.items()}, now

        return self._engine.read(query)

    def verify(self, *, key: str, namespace: str | None, fence: int) -> core.Verified:
        """Whether this fence is that of the live ownership."""
        hashed = key_hash(key, namespace)
        return self._engine.read(lambda reader: core.verify(storage.find(reader, hashed), fence, reader.now()))

    def check(self, *, key: str, namespace: str | None, fence: int | None) -> tuple[core.Status, core.Verified | None]:
        """Both of these at one instant; nothing of a fence where none is given."""
        hashed = key_hash(key, namespace)

        def query(reader: Reader) -> tuple[core.Status, core.Verified | None]:
            record, now = storage.find(reader, hashed), reader.now()
            return core.status(record, now), None if fence is None else core.verify(record, fence, now)

        return self._engine.read(query)

    def break_off(
        self, *, hashed: bytes, fence: int, actor: str = "", reason: str = ""
    ) -> core.Broken | core.NotBroken:
        """Take the key from the holder with this fence: for an operator, who knows only the digest.

        The audit has a line of it exactly when it happened.
        """

        def noted(tx: Transaction) -> None:
            audit.note(tx, actor=actor, action="lease.break", subject=hashed.hex(), detail=f"fence {fence}: {reason}")

        return self._decide(hashed, lambda record, now: core.break_off(record, fence, now), noted)

    def in_line(self, hashed: bytes) -> int:
        """How many callers of this process wait for the key."""
        return self._waiting.in_line(topic(hashed))

    def _attempt(self, hashed: bytes, ask: core.Ask, urgent: bool) -> AcquireOutcome:
        def operation(tx: Transaction) -> AcquireOutcome:
            record = storage.lock_or_make(tx, hashed)
            tx.failpoint("after-lock")
            outcome = core.acquire(record, ask, tx.next_fence, tx.now())
            tx.failpoint("after-decide")
            if _is_taken(outcome):
                _write(tx, hashed, outcome.record)
            return outcome

        return self._engine.run(operation, urgent=urgent)

    def _look(self, hashed: bytes, ask: core.Ask) -> AcquireOutcome | None:
        def query(reader: Reader) -> AcquireOutcome:
            return core.acquire(storage.find(reader, hashed), ask, _no_fence, reader.now())

        outcome = self._engine.read(query)
        return None if _is_taken(outcome) else outcome

    def _release(self, hashed: bytes, owner: bytes) -> core.Released | core.Lost:
        return self._decide(hashed, lambda record, now: core.release(record, owner, now))

    def _decide(
        self,
        hashed: bytes,
        decision: Callable[[core.LeaseRecord | None, int], _Decided],
        when_changed: Callable[[Transaction], None] | None = None,
    ) -> _Decided:
        def operation(tx: Transaction) -> _Decided:
            record = storage.lock(tx, hashed)
            tx.failpoint("after-lock")
            outcome = decision(record, tx.now())
            tx.failpoint("after-decide")
            changed = getattr(outcome, "record", record)
            if changed is not None and changed is not record:
                _write(tx, hashed, changed)
                if when_changed is not None:
                    when_changed(tx)
            return outcome

        return self._engine.run(operation)


def _write(tx: Transaction, hashed: bytes, record: core.LeaseRecord) -> None:
    storage.save(tx, hashed, record)
    tx.ring(topic(hashed))
    tx.ring(FEED)


def _owner_hash(token: str) -> bytes:
    return tokens.digest("lease-owner", token)


def _no_fence() -> int:
    return 0


def _busy_until(outcome: AcquireOutcome) -> int | None:
    return outcome.record.lease_expires_at if isinstance(outcome, core.Held) else None


def _is_taken(outcome: AcquireOutcome) -> TypeGuard[core.Granted]:
    return isinstance(outcome, core.Granted) and not outcome.repeated
