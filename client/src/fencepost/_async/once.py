"""Once-keys: claim, do, record; later callers get what was recorded."""

import asyncio
import inspect
import logging
import random
from collections.abc import Callable, Mapping
from typing import Any

from fencepost import _json, keys
from fencepost._async.transport import AsyncTransport
from fencepost._calls import Call, claim_kept, claimed, done, next_wait, once, present
from fencepost._certainty import Certainty
from fencepost._clock import steady
from fencepost._guard import AsyncGuard
from fencepost._once import OnceTokens, must_be_callable, must_not_await
from fencepost._renewal import Renewals
from fencepost.errors import FencepostError, InProgressElsewhere, PayloadMismatch
from fencepost.outcomes import Claimed, ClaimOutcome, Duplicate, InProgress, PayloadConflict
from fencepost.refusals import ClaimLost, Forbidden, ResultTooLarge

_log = logging.getLogger("fencepost")
_GIVE_BACK_SECONDS = 2.0
_EARLY_SECONDS = 1.0


class AsyncOnce:
    """The once-key's calls, one for one, and `run`, which does it all.

    A namespace belongs to whoever claims in it first. `tokens` has the token of each: given, derived from the once
    secret so that every process that has the secret has the same tokens, or minted by the first claim. A minted one
    is lost with this object unless it is saved.
    """

    def __init__(self, transport: AsyncTransport, renewals: Renewals, tokens: OnceTokens) -> None:
        self._transport = transport
        self._renewals = renewals
        self.tokens = tokens

    async def claim(
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
        outcome, _ = await self.ask(
            namespace,
            action_key,
            wait=wait,
            claim_token=claim_token or keys.mint_claim_token(),
            payload_sha256=None if payload is None else keys.digest(payload),
            ttl=ttl,
            lease_ttl=lease_ttl,
        )
        return outcome

    async def ask(
        self, namespace: str, action_key: str, *, wait: float, claim_token: str, **given: Any
    ) -> tuple[ClaimOutcome, float]:
        """As claim, with the time of the steady clock before which nothing can have been claimed."""
        give_up_at = steady() + wait
        while True:
            sent_at = steady()
            left = give_up_at - sent_at
            waiting = next_wait(left)
            call = once(
                "",
                waiting,
                **self.members_of(namespace, action_key, self.tokens.for_claim(namespace)),
                claim_token=claim_token,
                wait_seconds=waiting or None,
                **given,
            )
            answer = await self._transport.send(call, within_seconds=max(self._transport.retry_seconds, left))
            try:
                outcome = claimed(answer, claim_token)
            except Forbidden:
                self.tokens.forget_minted(namespace)
                raise
            self.tokens.keep(namespace)
            left = give_up_at - steady()
            if not isinstance(outcome, InProgress) or left <= 0:
                return outcome, sent_at
            if steady() - sent_at < waiting - _EARLY_SECONDS or left < _EARLY_SECONDS:
                await asyncio.sleep(min(left, random.uniform(0.1, 1.0)))

    async def complete(
        self, namespace: str, action_key: str, result: Any, *, claim_token: str | None = None, ttl: int | None = None
    ) -> Any:
        """Record the result of a claimed action; the result that stands, which an earlier one may be.

        Raises ClaimLost, NoClaim, ResultTooLarge.
        """
        given = {"claim_token": claim_token, "ttl": ttl, "result": present(result)}
        return (await self.finish(namespace, action_key, **given))["result"]

    async def release(
        self,
        namespace: str,
        action_key: str,
        *,
        claim_token: str | None = None,
        within_seconds: float | None = None,
    ) -> None:
        """Give a claim back undone, so that the next caller may do it."""
        call = once("/release", **self.members_of(namespace, action_key), claim_token=claim_token)
        done(await self._transport.send(call, within_seconds=within_seconds))

    async def renew(self, namespace: str, action_key: str, *, claim_token: str, lease_ttl: int) -> None:
        """Have the claim's lease end `lease_ttl` seconds from now. Raises ClaimLost, NotLeased."""
        of = self.members_of(namespace, action_key)
        done(await self._transport.send(once("/renew", **of, claim_token=claim_token, lease_ttl=lease_ttl)))

    async def status(self, namespace: str, action_key: str) -> Mapping[str, Any]:
        """The claim's state and times, never its result."""
        return done(await self._transport.send(once("/status", **self.members_of(namespace, action_key))))

    async def receipt_keys(self) -> Mapping[str, Any]:
        """The keys that this server signs receipts with, for fencepost.receipts.verify."""
        return done(await self._transport.send(Call("GET", "/.well-known/fencepost-keys.json")))

    async def rotate_token(self, namespace: str) -> str:
        """A new namespace token; the old one stops at once."""
        call = once("/rotate-token", namespace=namespace, namespace_token=self.tokens.of(namespace))
        token = str(done(await self._transport.send(call))["namespace_token"])
        self.tokens[namespace] = token
        return token

    async def run(
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

        An action that was done but whose result cannot be recorded (too big, no JSON) is recorded without one before
        the error is raised: it must not be done again.
        Raises PayloadMismatch, InProgressElsewhere, Forbidden; ClaimLost when another caller took over meanwhile.
        """
        must_be_callable(action, is_async=_IS_ASYNC)
        token = keys.mint_claim_token()
        outcome, sent_at = await self.ask(
            namespace,
            action_key,
            wait=wait,
            claim_token=token,
            payload_sha256=None if payload is None else keys.digest(payload),
            ttl=ttl,
            lease_ttl=lease_ttl,
        )
        if isinstance(outcome, Duplicate):
            return outcome.result
        if isinstance(outcome, PayloadConflict):
            raise PayloadMismatch("this action key was claimed for another payload")
        if isinstance(outcome, InProgress):
            raise InProgressElsewhere("this action is in progress elsewhere")
        work = _Work(self, namespace, action_key, outcome)
        if lease_ttl is None:
            result = await work.do(action, payload)
        else:
            certainty = Certainty(sent_at, lease_ttl, sent_at + _life_seconds(outcome, ttl))
            result = await work.do_leased(action, payload, lease_ttl, certainty, self._renewals)
        return await work.record(result)

    async def finish(self, namespace: str, action_key: str, **given: Any) -> Mapping[str, Any]:
        """As complete, with the whole answer."""
        return done(await self._transport.send(once("/complete", **self.members_of(namespace, action_key), **given)))

    def members_of(self, namespace: str, action_key: str, token: str | None = None) -> dict[str, Any]:
        """The members that say which action is meant."""
        owner = token or self.tokens.of(namespace)
        return {"namespace": namespace, "action_key": action_key, "namespace_token": owner}


def _life_seconds(claim: Claimed, ttl: int | None) -> float:
    """How long the whole claim lives at least, whose end no renewal of its lease moves.

    Who took it over has what the first ttl left; both instants are told in whole seconds, hence the one less.
    """
    if ttl is not None and not claim.recovered:
        return ttl
    return claim.expires_at - claim.claimed_at - 1


class _Work:
    """One claimed action: done, then recorded."""

    def __init__(self, onces: AsyncOnce, namespace: str, action_key: str, claim: Claimed) -> None:
        self._onces = onces
        self._namespace = namespace
        self._action_key = action_key
        self._claim = claim

    async def do(self, action: Callable[..., Any], payload: Any) -> Any:
        """Its result. When it raises, the claim is given back."""
        try:
            return await self._act(action, payload)
        except BaseException:
            await self._give_back()
            raise

    async def do_leased(
        self, action: Callable[..., Any], payload: Any, lease_ttl: int, certainty: Certainty, renewals: Renewals
    ) -> Any:
        """As do, while the claim's lease is renewed. Raises ClaimLost when it was interrupted for its loss."""
        of = self._onces.members_of(self._namespace, self._action_key)
        call = once("/renew", **of, claim_token=self._claim.claim_token, lease_ttl=lease_ttl)
        renewal = renewals.start(call, claim_kept, None, lease_ttl, certainty)
        guard = AsyncGuard(certainty)
        try:
            result = await self._act(action, payload)
        except BaseException as fault:
            renewal.mute(True)
            if guard.end(type(fault)):
                raise self._lost() from None
            if not certainty.is_over:
                await self._give_back()
            raise
        else:
            guard.end(None)
            return result
        finally:
            certainty.end("released")
            await guard.end_renewal(renewal)

    async def record(self, result: Any) -> Any:
        """Record the result; what stands. Raises ClaimLost when something else stands already."""
        try:
            ours = _json.plain(result)
            answer = await self._complete(result=present(result))
        except (ResultTooLarge, TypeError, ValueError):
            await self._complete()
            raise
        if answer["status"] == "already_completed" and not (answer["has_result"] and answer["result"] == ours):
            raise self._lost(answer)
        return answer["result"]

    async def _act(self, action: Callable[..., Any], payload: Any) -> Any:
        result = action() if payload is None else action(payload)
        if inspect.isawaitable(result):
            must_not_await(result, is_async=_IS_ASYNC)
            result = await result
        return result

    async def _complete(self, **given: Any) -> Mapping[str, Any]:
        token = self._claim.claim_token
        return await self._onces.finish(self._namespace, self._action_key, claim_token=token, **given)

    async def _give_back(self) -> None:
        try:
            await self._onces.release(
                self._namespace,
                self._action_key,
                claim_token=self._claim.claim_token,
                within_seconds=_GIVE_BACK_SECONDS,
            )
        except FencepostError as fault:
            _log.warning("a claim could not be given back (%s)", type(fault).__name__)

    def _lost(self, answer: Mapping[str, Any] | None = None) -> ClaimLost:
        told = {"code": ClaimLost.code, "error": "Another caller has taken this action over while it ran here"}
        return ClaimLost(409, {**(answer or {}), **told})


_IS_ASYNC = inspect.iscoroutinefunction(AsyncOnce.run)
