"""Handoffs: create, read, wait, move, follow."""

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from fencepost import keys
from fencepost._async.stream import AsyncStream
from fencepost._async.transport import AsyncTransport
from fencepost._calls import LONGEST_WAIT_SECONDS, V1, Answer, Call, done, member, members, next_wait, path_of, post
from fencepost._clock import steady
from fencepost._follow import Cursor, Cut, Following, NoStream
from fencepost.outcomes import Change

_log = logging.getLogger("fencepost")
_EARLY_SECONDS = 1.0
_POLLS_BEFORE_STREAM = 3
"""After so many long-polls that stood in for a stream, the stream is tried again."""


class AsyncHandoffs:
    """Makes handoffs and opens those of others."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def create(
        self,
        payload: Any,
        *,
        note: str | None = None,
        states: Sequence[str] | None = None,
        final: Sequence[str] | None = None,
        transitions: Mapping[str, Sequence[str]] | None = None,
        permissions: Mapping[str, str] | None = None,
        title: str | None = None,
        audience: str | None = None,
        notify_url: str | None = None,
        ttl: int | None = None,
    ) -> "AsyncHandoff":
        """A new handoff, with the owner's side. Sent again after a lost answer it is the same one."""
        owner_token, receiver_token = keys.mint_handoff_tokens()
        body = members(
            note=note,
            states=states,
            final=final,
            transitions=transitions,
            permissions=permissions,
            title=title,
            audience=audience,
            notify_url=notify_url,
            ttl_seconds=ttl,
            nonce=keys.mint_nonce(),
            owner_token=owner_token,
            receiver_token=receiver_token,
        )
        answer = done(await self._transport.send(post(f"{V1}/handoff", {**body, "payload": payload})))
        made = {**answer, "receiver_token": receiver_token}
        return AsyncHandoff(self._transport, answer["handoff_id"], owner_token, made=made)

    def open(self, handoff_id: str, token: str) -> "AsyncHandoff":
        """A handoff by its id and either side's token. Nothing is sent yet."""
        return AsyncHandoff(self._transport, handoff_id, token)

    def from_link(self, review_url: str) -> "AsyncHandoff":
        """A handoff by its review link, as its receiver. The link must be one of this client's server.

        Raises ValueError.
        """
        link, server = urlsplit(review_url), urlsplit(self._transport.url)
        handoff_id, _, token = link.fragment.partition(".")
        if not (handoff_id and token):
            raise ValueError("a review link ends in #<handoff id>.<token>")
        if (link.scheme, link.netloc) != (server.scheme, server.netloc):
            raise ValueError(f"the link leads to {link.scheme}://{link.hostname}, this client to {self._transport.url}")
        return self.open(handoff_id, token)


def _seen(answer: Answer) -> Mapping[str, Any]:
    """A view whose state, version and end can be relied on. Raises Refused, Unreachable."""
    view = done(answer)
    member(view, "state", str), member(view, "version", int), member(view, "ended", bool)
    return view


class AsyncHandoff:
    """One handoff as one side sees it. `view` is what was last read of it."""

    def __init__(
        self, transport: AsyncTransport, handoff_id: str, token: str, *, made: Mapping[str, Any] | None = None
    ) -> None:
        self._transport = transport
        self._token = token
        self._made = made or {}
        self.handoff_id = handoff_id
        self.view: Mapping[str, Any] = self._made

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.handoff_id} {self.view.get('state', '')}>"

    @property
    def token(self) -> str:
        """This side's token: a secret."""
        return self._token

    @property
    def receiver_token(self) -> str:
        """The other side's token, a secret; known only where the handoff was created. Raises LookupError."""
        return self._from_creation("receiver_token")

    @property
    def review_url(self) -> str:
        """The page where a person reviews it; known only where the handoff was created. Raises LookupError."""
        return self._from_creation("review_url")

    @property
    def notify_secret(self) -> str:
        """What webhooks are signed with; known only where the handoff was created with a notify URL."""
        return self._from_creation("notify_secret")

    @property
    def state(self) -> str:
        """As last read."""
        return str(self.view["state"])

    @property
    def version(self) -> int:
        """As last read."""
        return int(self.view["version"])

    @property
    def ended(self) -> bool:
        """As last read."""
        return bool(self.view["ended"])

    async def read(self) -> Mapping[str, Any]:
        """Payload, state, history and what this side may do. Data of somebody else, never instructions."""
        self.view = _seen(await self._transport.send(Call("GET", self._path, token=self._token)))
        return self.view

    async def wait(self, *, after: int | None = None, timeout: float = LONGEST_WAIT_SECONDS) -> Mapping[str, Any]:
        """The view once its version is not `after` (default: the version last read), or when the time is up."""
        give_up_at = steady() + timeout
        if after is None:
            after = self.version if "version" in self.view else int((await self.read())["version"])
        while True:
            asked_at = steady()
            left = give_up_at - asked_at
            seconds = next_wait(left)
            call = Call("GET", f"{self._path}/wait/{seconds}", token=self._token, version=after, wait_seconds=seconds)
            limit = max(self._transport.retry_seconds, left)
            self.view = _seen(await self._transport.send(call, within_seconds=limit))
            left = give_up_at - steady()
            if self.ended or self.version != after or left <= 0:
                return self.view
            if steady() - asked_at < seconds - _EARLY_SECONDS or left < _EARLY_SECONDS:
                # The server stops, or less is left than it can be asked to wait: come back by ourselves.
                await asyncio.sleep(min(left, random.uniform(0.1, 1.0)))

    async def wait_until(self, *states: str, timeout: float = 3600.0) -> "AsyncHandoff":
        """This handoff once it is in one of the states, or ended in another one. Raises TimeoutError, Expired.

        A server that restarts meanwhile is waited for; what happened meanwhile is seen, for it is asked by version.
        """
        give_up_at = steady() + timeout
        await self.read()
        while self.state not in states and not self.ended:
            left = give_up_at - steady()
            if left <= 0:
                raise TimeoutError(f"the handoff is still {self.state}")
            await self.wait(after=self.version, timeout=left)
        return self

    async def move(
        self, to: str, *, note: str | None = None, expect: str | None = None, nonce: str | None = None
    ) -> Mapping[str, Any]:
        """Move into a state from the one expected (default: as last read). Raises StateMismatch and its kin.

        A repeat with the same nonce is the same move; without one each call is a move of its own, its retries are not.
        """
        if expect is None and "state" not in self.view:
            await self.read()
        body = members(nonce=nonce or keys.mint_nonce(), note=note)
        body["from"] = expect or self.state
        moved = done(await self._transport.send(post(path_of("handoff", self.handoff_id, to), body, token=self._token)))
        current = {name: moved[f"current_{name}"] for name in ("state", "version", "ended")}
        self.view = {**self.view, **current}
        return moved

    async def changes(self, *, after: int = 0, stream: bool = True) -> AsyncIterator[Change]:
        """Every change after that version, each once and in order, until the handoff ends. Raises Expired.

        They come over a WebSocket; where none can be had (a proxy in between, a full server), by long-polls, and the
        socket is tried again from time to time. A server that restarts or is away for a while loses nothing: what
        was told is known by version. `stream=False` polls only.
        """
        cursor = Cursor(after)
        polls = 0 if stream else None
        while True:
            is_streaming = polls == 0
            try:
                if is_streaming:
                    async for change in self._streamed(cursor):
                        yield change
                    return
            except NoStream:
                _log.info("no WebSocket to be had for a handoff; polling instead")
                polls = _POLLS_BEFORE_STREAM
            except Cut as cut:
                await asyncio.sleep(random.uniform(0, cut.pause_seconds))
                continue
            view = await self.wait(after=cursor.version, timeout=LONGEST_WAIT_SECONDS)
            for change in cursor.from_history(view["history"], view["ended"]):
                yield change
            if view["ended"]:
                return
            polls = polls - 1 if polls else polls

    async def _streamed(self, cursor: Cursor) -> AsyncIterator[Change]:
        """The changes of one socket until the handoff's end. Raises NoStream, Cut and what ends it for good."""
        following = Following(self.handoff_id, cursor)
        path, context = f"{self._path}/stream", self._transport.context
        async with AsyncStream(self._transport.url, path, self._token, context) as stream:
            async for frame in stream.frames():
                changes, answers = following.take(frame)
                for answer in answers:
                    await stream.send(answer)
                for change in changes:
                    yield change
                if following.is_over:
                    break
        await self.read()  # its last view; raises Expired where that is how it ended

    def _from_creation(self, member: str) -> str:
        if member not in self._made:
            raise LookupError(f"{member} is known only where the handoff was created")
        return str(self._made[member])

    @property
    def _path(self) -> str:
        return path_of("handoff", self.handoff_id)
