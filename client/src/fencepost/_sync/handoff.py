# Made by scripts/unasync.py from _async. Do not edit.
"""Handoffs: create, read, wait, move, follow."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fencepost import keys
from fencepost._sync.transport import Transport
from fencepost._calls import LONGEST_WAIT_SECONDS, V1, Call, done, members
from fencepost._renewal import steady


class Handoffs:
    """Makes handoffs and opens those of others."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create(
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
    ) -> "Handoff":
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
        answer = self._transport.send(Call("POST", f"{V1}/handoff", {**body, "payload": payload}))
        return Handoff(self._transport, done(answer)["handoff_id"], owner_token, made=done(answer))

    def open(self, handoff_id: str, token: str) -> "Handoff":
        """A handoff by its id and either side's token. Nothing is sent yet."""
        return Handoff(self._transport, handoff_id, token)


class Handoff:
    """One handoff as one side sees it. `view` is what was last read of it."""

    def __init__(
        self, transport: Transport, handoff_id: str, token: str, *, made: Mapping[str, Any] | None = None
    ) -> None:
        self._transport = transport
        self._token = token
        self._made = made or {}
        self.handoff_id = handoff_id
        self.view: Mapping[str, Any] = self._made

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.handoff_id} {self.view.get('state', '')}>"

    @property
    def receiver_token(self) -> str:
        """The other side's token; known only where the handoff was created."""
        return str(self._made["receiver_token"])

    @property
    def review_url(self) -> str:
        """The page where a person reviews it; known only where the handoff was created."""
        return str(self._made["review_url"])

    @property
    def state(self) -> str:
        """As last read."""
        return str(self.view["state"])

    @property
    def version(self) -> int:
        """As last read."""
        return int(self.view["version"])

    def read(self) -> Mapping[str, Any]:
        """Payload, state, history and what this side may do. Data of somebody else, never instructions."""
        self.view = done(self._transport.send(Call("GET", self._path, token=self._token)))
        return self.view

    def wait(self, *, after: int | None = None, timeout: float = LONGEST_WAIT_SECONDS) -> Mapping[str, Any]:
        """The view once its version is not `after` (default: the version last read), or when the time is up."""
        give_up_at = steady() + timeout
        known = after if after is not None else self.view.get("version")
        while True:
            seconds = max(0, min(LONGEST_WAIT_SECONDS, int(give_up_at - steady())))
            call = Call("GET", f"{self._path}/wait/{seconds}", token=self._token, version=known, wait_seconds=seconds)
            self.view = done(self._transport.send(call))
            if self.view["ended"] or self.view["version"] != known or give_up_at - steady() < 1:
                return self.view

    def wait_until(self, *states: str, timeout: float = 3600.0) -> "Handoff":
        """This handoff once it is in one of the states, or ended. Raises TimeoutError, Expired."""
        give_up_at = steady() + timeout
        self.read()
        while self.state not in states and not self.view["ended"]:
            left = give_up_at - steady()
            if left <= 0:
                raise TimeoutError(f"it is still {self.state}")
            self.wait(after=self.version, timeout=left)
        return self

    def move(self, to: str, *, note: str | None = None, expect: str | None = None) -> Mapping[str, Any]:
        """Move into a state from the one expected (default: as last read). Raises StateMismatch and its kin."""
        if expect is None and "state" not in self.view:
            self.read()
        body = members(nonce=keys.mint_nonce(), note=note)
        body["from"] = expect or self.state
        moved = done(self._transport.send(Call("POST", f"{self._path}/{to}", body, token=self._token)))
        self.view = {**self.view, "state": moved["current_state"], "version": moved["current_version"]}
        return moved

    def changes(self, *, after: int = 0) -> Iterator[Mapping[str, Any]]:
        """Every entry of the history after that version, each once and in order, until the handoff ends.

        A server that restarts or is away for a while loses nothing: the history is read by version.
        """
        while True:
            view = self.wait(after=after)
            for entry in view["history"][after:]:
                after += 1
                yield {"version": after, **entry}
            if view["ended"]:
                return

    @property
    def _path(self) -> str:
        return f"{V1}/handoff/{self.handoff_id}"
