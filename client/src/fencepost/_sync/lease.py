# Made by scripts/unasync.py from _async. Do not edit.
"""Leases: acquire as a value, or a block that holds one."""

import logging
import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from fencepost import keys
from fencepost._sync.transport import Transport
from fencepost._calls import LONGEST_WAIT_SECONDS, acquired, done, kept, lease
from fencepost._guard import Guard
from fencepost._renewal import Certainty, Renewal, steady
from fencepost.errors import FencepostError, LeaseLost, NotGranted
from fencepost.outcomes import AcquireOutcome, Granted, Held, Lost

_log = logging.getLogger("fencepost")
_RELEASE_SECONDS = 2.0


class Leases:
    """The lease's calls, one for one."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def acquire(
        self,
        key: str,
        *,
        namespace: str | None = None,
        ttl: int = 60,
        wait: float = 0.0,
        fingerprint: str | None = None,
        holder: str | None = None,
        owner_token: str | None = None,
    ) -> AcquireOutcome:
        """Ask for the key and wait up to `wait` seconds for it: Granted, Completed, Held, Conflict or Lost.

        The same owner token goes with every attempt, so that a lost answer never locks the caller out.
        """
        token = owner_token or keys.mint_owner_token()
        give_up_at = steady() + wait
        while True:
            left = give_up_at - steady()
            waiting = max(0, min(LONGEST_WAIT_SECONDS, int(left) if left >= 1 else 0))
            call = lease(
                "acquire",
                waiting,
                **_acquire_members(key, namespace, ttl, fingerprint, holder, token, waiting),
            )
            outcome = acquired(self._transport.send(call))
            if not isinstance(outcome, Held) or give_up_at - steady() < 1:
                return outcome

    def renew(self, key: str, owner_token: str, *, namespace: str | None = None, ttl: int = 60) -> bool:
        """Whether the lease goes on, for `ttl` seconds from now."""
        call = lease("renew", key=key, namespace=namespace, owner_token=owner_token, ttl_seconds=ttl)
        return not isinstance(kept(self._transport.send(call)), Lost)

    def release(self, key: str, owner_token: str, *, namespace: str | None = None) -> bool:
        """Whether it was ours to release (or had been released by us already)."""
        call = lease("release", key=key, namespace=namespace, owner_token=owner_token)
        return not isinstance(kept(self._transport.send(call)), Lost)

    def complete(self, key: str, owner_token: str, result: Any, *, namespace: str | None = None) -> Any:
        """Record the result; what is kept of it (secret members redacted). Raises LeaseLost, AlreadyCompleted."""
        call = lease("complete", key=key, namespace=namespace, owner_token=owner_token)
        body = {**(call.body or {}), "result": result}
        answer = kept(self._transport.send(type(call)(call.method, call.path, body)))
        if isinstance(answer, Lost):
            raise LeaseLost(key, answer.reason)
        return answer["result"]

    def status(self, key: str, *, namespace: str | None = None) -> Mapping[str, Any]:
        """What anyone with the key may know."""
        return done(self._transport.send(lease("status", key=key, namespace=namespace)))

    def verify(self, key: str, fencing_token: int, *, namespace: str | None = None) -> bool:
        """Whether this fence is that of the live ownership."""
        call = lease("verify", key=key, namespace=namespace, fencing_token=fencing_token)
        return bool(done(self._transport.send(call))["current"])


class Lease:
    """A block that holds a key: entering waits for it, a thread renews it, leaving releases it.

    `fencing_token` goes to whatever is written to. `check()` raises LeaseLost once the lease is not certain any more;
    `lost` is an event for those who would rather wait. A plain object: any thread may use it.
    """

    def __init__(
        self,
        leases: Leases,
        url: str,
        key: str,
        *,
        namespace: str | None,
        ttl: int,
        wait: float,
        fingerprint: str | None,
        holder: str | None,
    ) -> None:
        self._leases = leases
        self._url = url
        self._namespace = namespace
        self._ask = {"ttl": ttl, "wait": wait, "fingerprint": fingerprint, "holder": holder}
        self._ttl = ttl
        self._owner_token = keys.mint_owner_token()
        self._is_given_up = False
        self._granted: Granted | None = None
        self.key = key

    def __repr__(self) -> str:
        fence = self._granted.fencing_token if self._granted else None
        return f"<{type(self).__name__} fence={fence}>"

    def __enter__(self) -> "Lease":
        sent_at = steady()
        outcome = self._leases.acquire(
            self.key,
            namespace=self._namespace,
            owner_token=self._owner_token,
            **self._ask,  # type: ignore[arg-type]
        )
        if not isinstance(outcome, Granted):
            raise NotGranted(self.key, outcome)
        self._granted = outcome
        self._certainty = Certainty(self.key, sent_at, outcome.ttl_seconds)
        if self._certainty.left() < outcome.ttl_seconds / 2:
            self._make_certain()
        self._guard = Guard(self._certainty)
        call = lease(
            "renew",
            key=self.key,
            namespace=self._namespace,
            owner_token=self._owner_token,
            ttl_seconds=self._ttl,
        )
        self._renewal = Renewal(self._url, call, self._ttl, self._certainty)
        self._renewal.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._renewal.stop()
        interrupted = self._guard.end()
        if self._is_given_up:
            return
        try:
            self._certainty.check()
        except LeaseLost as lost:
            if kind is None or interrupted:
                raise lost from None
            if fault is not None and hasattr(fault, "add_note"):
                fault.add_note(f"meanwhile {lost}")
            return
        self._give_back()

    @property
    def fencing_token(self) -> int:
        """The number that the protected system compares: a higher one wins."""
        assert self._granted is not None, "enter the block first"
        return self._granted.fencing_token

    @property
    def attempt(self) -> int:
        """How many ownerships this lifecycle of the key has seen, this one included."""
        assert self._granted is not None, "enter the block first"
        return self._granted.attempt

    @property
    def lost(self) -> threading.Event:
        """Set once the lease is lost."""
        return self._certainty.lost

    def check(self) -> None:
        """Raise LeaseLost unless the lease is certain at this instant."""
        self._certainty.check()

    def complete(self, result: Any) -> Any:
        """Record the result for every later caller, and end the ownership. What is kept of it."""
        self.check()
        kept_result = self._leases.complete(self.key, self._owner_token, result, namespace=self._namespace)
        self._is_given_up = True
        self._renewal.stop()
        return kept_result

    def release(self) -> None:
        """Give the key up before the block ends."""
        self._renewal.stop()
        self._is_given_up = True
        self._leases.release(self.key, self._owner_token, namespace=self._namespace)

    def _make_certain(self) -> None:
        """The grant came long after it was asked for (a wait, or lost answers): renew before anything is done."""
        sent_at = steady()
        if self._leases.renew(self.key, self._owner_token, namespace=self._namespace, ttl=self._ttl):
            self._certainty = Certainty(self.key, sent_at, self._ttl)
        if self._certainty.left() <= 0:
            self._give_back()
            raise LeaseLost(self.key, "expired")

    def _give_back(self) -> None:
        """Release; a server that cannot be reached lets the TTL do it."""
        self._is_given_up = True
        try:
            self._leases.release(self.key, self._owner_token, namespace=self._namespace)
        except FencepostError as fault:
            _log.warning("a lease could not be released (%s); it ends by itself", type(fault).__name__)


def _acquire_members(
    key: str,
    namespace: str | None,
    ttl: int,
    fingerprint: str | None,
    holder: str | None,
    token: str,
    waiting: int,
) -> dict[str, Any]:
    return {
        "key": key,
        "namespace": namespace,
        "ttl_seconds": ttl,
        "fingerprint": fingerprint,
        "holder": holder,
        "owner_token": token,
        "wait_seconds": waiting or None,
    }
