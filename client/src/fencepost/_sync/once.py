# Made by scripts/unasync.py from _async. Do not edit.
"""Once-keys: claim, do, record; later callers get what was recorded."""

import inspect
import logging
from collections.abc import Callable, Mapping
from typing import Any

from fencepost import keys
from fencepost._sync.transport import Transport
from fencepost._calls import LONGEST_WAIT_SECONDS, claimed, done, once
from fencepost._renewal import Certainty, Renewal, steady
from fencepost.errors import FencepostError, InProgressElsewhere, PayloadMismatch
from fencepost.outcomes import Claimed, ClaimOutcome, Duplicate, InProgress, PayloadConflict

_log = logging.getLogger("fencepost")


class Once:
    """The once-key's calls, one for one, and `run`, which does it all.

    A namespace belongs to whoever claims in it first: the token is brought by `namespace_tokens` or made by the first
    claim, and then kept in `namespace_tokens` of this object. Save it: without it the namespace is closed to you.
    """

    def __init__(self, transport: Transport, url: str, namespace_tokens: dict[str, str]) -> None:
        self._transport = transport
        self._url = url
        self.namespace_tokens = namespace_tokens

    def claim(
        self,
        namespace: str,
        action_key: str,
        *,
        payload: Any = None,
        ttl: int | None = None,
        lease_ttl: int | None = None,
        wait: float = 0.0,
        claim_token: str | None = None,
    ) -> ClaimOutcome:
        """Be the one to act: Claimed, Duplicate, InProgress or PayloadConflict. Raises Forbidden."""
        token = claim_token or keys.mint_claim_token()
        owner = self.namespace_tokens.get(namespace) or keys.mint_once_namespace_token()
        give_up_at = steady() + wait
        while True:
            left = give_up_at - steady()
            waiting = max(0, min(LONGEST_WAIT_SECONDS, int(left) if left >= 1 else 0))
            call = once(
                "",
                waiting,
                namespace=namespace,
                action_key=action_key,
                namespace_token=owner,
                payload_sha256=None if payload is None else keys.digest(payload),
                ttl=ttl,
                lease_ttl=lease_ttl,
                claim_token=token,
                wait_seconds=waiting or None,
            )
            outcome = claimed(self._transport.send(call), token)
            self.namespace_tokens[namespace] = owner
            if not isinstance(outcome, InProgress) or give_up_at - steady() < 1:
                return outcome

    def complete(
        self, namespace: str, action_key: str, result: Any, *, claim_token: str | None = None, ttl: int | None = None
    ) -> Any:
        """Record the result of a claimed action; the result that stands, which an earlier one may be."""
        call = once("/complete", **self._of(namespace, action_key), claim_token=claim_token, ttl=ttl)
        body = {**(call.body or {}), "result": result}
        return done(self._transport.send(type(call)(call.method, call.path, body)))["result"]

    def release(self, namespace: str, action_key: str, *, claim_token: str | None = None) -> None:
        """Give a claim back undone, so that the next caller may do it."""
        done(self._transport.send(once("/release", **self._of(namespace, action_key), claim_token=claim_token)))

    def status(self, namespace: str, action_key: str) -> Mapping[str, Any]:
        """The claim's state and times, never its result."""
        return done(self._transport.send(once("/status", **self._of(namespace, action_key))))

    def rotate_token(self, namespace: str) -> str:
        """A new namespace token; the old one stops at once."""
        call = once("/rotate-token", namespace=namespace, namespace_token=self.namespace_tokens.get(namespace))
        token = str(done(self._transport.send(call))["namespace_token"])
        self.namespace_tokens[namespace] = token
        return token

    def run(
        self,
        namespace: str,
        action_key: str,
        action: Callable[..., Any],
        *,
        payload: Any = None,
        ttl: int | None = None,
        lease_ttl: int | None = None,
        wait: float = 60.0,
    ) -> Any:
        """Do the action exactly once and return its result; later callers get the recorded one.

        `action` is called with the payload if there is one. When it raises, the claim is given back and the exception
        goes on. With `lease_ttl` the claim is renewed while the action runs, and a caller that died is taken over
        after that time: then an action may have been begun twice, never recorded twice. Without it, a caller that died
        blocks the action until the claim's `ttl` is over.
        Raises PayloadMismatch, InProgressElsewhere, Forbidden.
        """
        outcome = self.claim(namespace, action_key, payload=payload, ttl=ttl, lease_ttl=lease_ttl, wait=wait)
        if isinstance(outcome, Duplicate):
            return outcome.result
        if isinstance(outcome, PayloadConflict):
            raise PayloadMismatch(f"{action_key!r} was claimed for another payload")
        if isinstance(outcome, InProgress):
            raise InProgressElsewhere(f"{action_key!r} is in progress elsewhere")
        return self._do(namespace, action_key, action, payload, outcome, lease_ttl)

    def _do(
        self,
        namespace: str,
        action_key: str,
        action: Callable[..., Any],
        payload: Any,
        claim: Claimed,
        lease_ttl: int | None,
    ) -> Any:
        renewal = self._renewal(namespace, action_key, claim, lease_ttl) if lease_ttl else None
        try:
            result = action() if payload is None else action(payload)
            if inspect.isawaitable(result):
                result = result
        except BaseException:
            if renewal:
                renewal.stop()
            self._give_back(namespace, action_key, claim)
            raise
        if renewal:
            renewal.stop()
        return self.complete(namespace, action_key, result, claim_token=claim.claim_token)

    def _renewal(self, namespace: str, action_key: str, claim: Claimed, lease_ttl: int) -> Renewal:
        call = once("/renew", **self._of(namespace, action_key), claim_token=claim.claim_token, lease_ttl=lease_ttl)
        renewal = Renewal(self._url, call, lease_ttl, Certainty(action_key, steady(), lease_ttl))
        renewal.start()
        return renewal

    def _give_back(self, namespace: str, action_key: str, claim: Claimed) -> None:
        try:
            self.release(namespace, action_key, claim_token=claim.claim_token)
        except FencepostError as fault:
            _log.warning("a claim could not be given back (%s)", type(fault).__name__)

    def _of(self, namespace: str, action_key: str) -> dict[str, Any]:
        return {
            "namespace": namespace,
            "action_key": action_key,
            "namespace_token": self.namespace_tokens.get(namespace),
        }
