# Made by scripts/unasync.py from _async. Do not edit.
"""Leases: acquire as a value, or a block that holds one."""

import logging
import os
import random
import threading
import time
import weakref
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from fencepost import keys
from fencepost._calls import acquired, done, kept, lease, next_wait, present
from fencepost._certainty import Certainty
from fencepost._clock import steady
from fencepost._guard import Guard
from fencepost._renewal import Renewals
from fencepost._sync.transport import Transport
from fencepost.errors import FencepostError, LeaseLost, NotGranted, Refused
from fencepost.outcomes import AcquireOutcome, Granted, Held, Lost

_log = logging.getLogger("fencepost")
_RELEASE_SECONDS = 2.0
_EARLY_SECONDS = 1.0
_TOKENS_TRIED = 3
"""A grant whose answers were all lost may be over when one comes through; then we begin anew with another token."""


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

        The same owner token goes with every attempt, so that a lost answer never locks the caller out. Nothing is
        renewed: whoever acquires this way renews, releases or completes by the owner token.
        """
        given = {"namespace": namespace, "fingerprint": fingerprint, "holder": holder}
        for _ in range(_TOKENS_TRIED):
            token = owner_token or keys.mint_owner_token()
            outcome, _ = self.ask(key, wait=wait, ttl=ttl, owner_token=token, **given)
            if owner_token or not isinstance(outcome, Lost):
                break
        return outcome

    def ask(self, key: str, *, wait: float, ttl: int, **given: Any) -> tuple[AcquireOutcome, float]:
        """As acquire, with the time of the steady clock before which nothing can have been granted."""
        give_up_at = steady() + wait
        while True:
            sent_at = steady()
            left = give_up_at - sent_at
            waiting = next_wait(left)
            call = lease("acquire", waiting, key=key, ttl_seconds=ttl, wait_seconds=waiting or None, **given)
            limit = max(self._transport.retry_seconds, left)
            outcome = acquired(self._transport.send(call, within_seconds=limit))
            left = give_up_at - steady()
            if not isinstance(outcome, Held) or left <= 0:
                return outcome, sent_at
            if steady() - sent_at < waiting - _EARLY_SECONDS or left < _EARLY_SECONDS:
                # The server stops, or less is left than a server can be asked to wait: come back by ourselves.
                time.sleep(min(left, random.uniform(0.1, 1.0)))

    def renew(self, key: str, owner_token: str, *, namespace: str | None = None, ttl: int = 60) -> bool:
        """Whether the lease goes on, for `ttl` seconds from now."""
        call = lease("renew", key=key, namespace=namespace, owner_token=owner_token, ttl_seconds=ttl)
        return not isinstance(kept(self._transport.send(call)), Lost)

    def release(
        self, key: str, owner_token: str, *, namespace: str | None = None, within_seconds: float | None = None
    ) -> bool:
        """Whether it was ours to release (or had been released by us already)."""
        call = lease("release", key=key, namespace=namespace, owner_token=owner_token)
        return not isinstance(kept(self._transport.send(call, within_seconds=within_seconds)), Lost)

    def complete(self, key: str, owner_token: str, result: Any, *, namespace: str | None = None) -> Any:
        """Record the result; what is kept of it (secret members redacted). Raises LeaseLost, AlreadyCompleted."""
        call = lease("complete", key=key, namespace=namespace, owner_token=owner_token, result=present(result))
        answer = kept(self._transport.send(call))
        if isinstance(answer, Lost):
            raise LeaseLost(answer.reason)
        return answer["result"]

    def status(self, key: str, *, namespace: str | None = None) -> Mapping[str, Any]:
        """What anyone with the key may know."""
        return done(self._transport.send(lease("status", key=key, namespace=namespace)))

    def verify(self, key: str, fencing_token: int, *, namespace: str | None = None) -> bool:
        """Whether this fence is that of the live ownership: asked by what is written to, not by the holder."""
        call = lease("verify", key=key, namespace=namespace, fencing_token=fencing_token)
        return bool(done(self._transport.send(call))["current"])


class Lease:
    """A block that holds a key: entering waits for it, a thread renews it, leaving releases it.

    `fencing_token` goes to whatever is written to. `check()` raises LeaseLost once the lease is not certain any more;
    `lost` is an event for those who would rather wait. A plain object: any thread may use it. It is entered once.
    """

    def __init__(
        self,
        leases: Leases,
        renewals: Renewals,
        key: str,
        *,
        namespace: str | None,
        ttl: int,
        wait: float,
        fingerprint: str | None,
        holder: str | None,
        raise_if_lost: bool,
    ) -> None:
        self._leases = leases
        self._renewals = renewals
        self._namespace = namespace
        self._wait = wait
        self._given = {"fingerprint": fingerprint, "holder": holder}
        self._ttl = ttl
        self._raise_if_lost = raise_if_lost
        self._owner_token = keys.mint_owner_token()
        self._process = os.getpid()
        self._is_entered = False
        self._granted: Granted | None = None
        self.key = key

    def __repr__(self) -> str:
        fence = self._granted.fencing_token if self._granted else None
        return f"<{type(self).__name__} fence={fence}>"

    def __enter__(self) -> "Lease":
        if self._is_entered:
            raise RuntimeError("this lease was entered already; ask the client for another one")
        self._is_entered, self._process = True, os.getpid()
        try:
            self._granted, self._certainty = self._acquire()
        except (NotGranted, Refused, LeaseLost):
            raise
        except BaseException:
            self._give_back()  # it may have been granted although we did not hear of it
            raise
        self._guard = Guard(self._certainty)
        call = lease(
            "renew", key=self.key, namespace=self._namespace, owner_token=self._owner_token, ttl_seconds=self._ttl
        )
        self._renewal = self._renewals.start(call, kept, "ttl_seconds", self._granted.ttl_seconds, self._certainty)
        weakref.finalize(self, self._renewal.stop)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process != os.getpid():
            return  # a forked child holds nothing and has nothing to give back
        interrupted = self._guard.end(kind)
        self._renewal.mute(True)
        if not self._certainty.is_over:
            self._renewal.stop()
            self._certainty.end("released")
            self._give_back()
        self._guard.end_renewal(self._renewal)
        if self._certainty.lost.is_set():
            self._tell(kind, fault, interrupted)

    def _tell(self, kind: type[BaseException] | None, fault: BaseException | None, interrupted: bool) -> None:
        """The lease was lost: raise that, or let the body's own exception pass with a note of it."""
        try:
            self._certainty.check()
        except LeaseLost as lost:
            if isinstance(fault, LeaseLost):
                return
            if interrupted or (kind is None and self._raise_if_lost):
                raise lost from None
            if fault is None:
                _log.warning("a lease was lost while its block ran (%s)", lost.reason)
            elif hasattr(fault, "add_note"):
                fault.add_note(f"meanwhile {lost}")

    @property
    def fencing_token(self) -> int:
        """The number that the protected system compares: a higher one wins."""
        return self._must_be_entered().fencing_token

    @property
    def attempt(self) -> int:
        """How many ownerships this lifecycle of the key has seen, this one included."""
        return self._must_be_entered().attempt

    @property
    def lost(self) -> threading.Event:
        """Set once the lease is lost."""
        return self._certainty.lost

    @property
    def seconds_certain(self) -> float:
        """How long the lease is still certain without another renewal; 0 or less once it is over."""
        return self._certainty.left()

    @property
    def failed_renewals(self) -> int:
        """How many renewals have failed so far."""
        return self._renewal.failures

    def check(self) -> None:
        """Raise LeaseLost unless the lease is certain at this instant."""
        self._must_be_entered()
        self._certainty.check()

    def complete(self, result: Any) -> Any:
        """Record the result for every later caller, and end the ownership. What is kept of it.

        Raises LeaseLost, and ResultTooLarge or TypeError while the lease stays held.
        """
        self.check()
        self._renewal.mute(True)
        try:
            kept_result = self._leases.complete(self.key, self._owner_token, result, namespace=self._namespace)
        except LeaseLost as lost:
            self._certainty.lose(lost.reason)
            raise
        except BaseException:
            self._renewal.mute(False)
            raise
        self._renewal.stop()
        self._certainty.end("completed")
        return kept_result

    def release(self) -> None:
        """Give the key up before the block ends. Raises LeaseLost when it was lost before."""
        self.check()
        self._renewal.stop()
        self._certainty.end("released")
        self._leases.release(self.key, self._owner_token, namespace=self._namespace)

    def _must_be_entered(self) -> Granted:
        if self._granted is None:
            raise RuntimeError("the lease's block was not entered")
        return self._granted

    def _acquire(self) -> tuple[Granted, Certainty]:
        """Raises NotGranted, LeaseLost."""
        for _ in range(_TOKENS_TRIED):
            given = {**self._given, "namespace": self._namespace, "owner_token": self._owner_token}
            outcome, sent_at = self._leases.ask(self.key, wait=self._wait, ttl=self._ttl, **given)
            if not isinstance(outcome, Lost):
                break
            self._owner_token = keys.mint_owner_token()
        if not isinstance(outcome, Granted):
            raise NotGranted(outcome)
        certainty = Certainty(sent_at, outcome.ttl_seconds)
        if outcome.repeated or certainty.left() < outcome.ttl_seconds / 2:
            # Granted long after it was asked for (a wait, or lost answers): be certain before anything is done.
            sent_at = steady()
            if not self._leases.renew(self.key, self._owner_token, namespace=self._namespace, ttl=self._ttl):
                raise LeaseLost("expired")
            certainty = Certainty(sent_at, min(self._ttl, outcome.ttl_seconds))
        if certainty.left() <= 0:
            self._give_back()
            raise LeaseLost("expired")
        return outcome, certainty

    def _give_back(self) -> None:
        """Release; a server that cannot be reached lets the TTL do it."""
        try:
            self._leases.release(
                self.key, self._owner_token, namespace=self._namespace, within_seconds=_RELEASE_SECONDS
            )
        except FencepostError as fault:
            _log.warning("a lease could not be released (%s); it ends by itself", type(fault).__name__)
