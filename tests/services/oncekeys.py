"""The once-key over a real SQLite file, real lines and a manual clock; callers that can hang up."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.clock import ManualClock
from app.core import claim as core
from app.push.deadlines import Deadlines
from app.push.hub import Hub
from app.push.line import Lines
from app.push.seats import Seats
from app.services.claim import Claims
from app.services.claim_try import ClaimAnswer, ClaimOutcome
from app.services.credit import Credits
from app.services.waiting import Waiting
from app.storage.sqlite import SqliteEngine
from tests.storage.shelf import PATIENT


class FakeCaller:
    """The other end of a connection: open until it hangs up."""

    def __init__(self) -> None:
        self._open = True
        self._wake: Callable[[], None] = lambda: None

    def is_open(self) -> bool:
        return self._open

    @contextmanager
    def on_hang_up(self, wake: Callable[[], None]) -> Iterator[None]:
        self._wake = wake
        yield

    def hang_up(self) -> None:
        self._open = False
        self._wake()


@dataclass
class Once:
    """One server's once-keys."""

    engine: SqliteEngine
    clock: ManualClock
    hub: Hub
    lines: Lines
    claims: Claims
    credits: Credits

    def claim(
        self,
        action_key: str = "charge-1042",
        *,
        namespace: str = "billing",
        token: str | None = None,
        payload: str | None = None,
        ttl: int = 100,
        lease: int | None = None,
        who: str | None = None,
        wait: int = 0,
        caller: FakeCaller | None = None,
        credit: str | None = None,
    ) -> ClaimAnswer:
        return self.claims.claim(
            namespace=namespace,
            action_key=action_key,
            namespace_token=token,
            payload_sha256=payload,
            ttl_seconds=ttl,
            lease_ttl_seconds=lease,
            claim_token=who,
            wait_seconds=wait,
            caller=caller or FakeCaller(),
            credit_token=credit,
        )

    def won(self, action_key: str = "charge-1042", **members: Any) -> core.ClaimRecord:
        outcome = self.claim(action_key, **members).outcome
        assert isinstance(outcome, core.Claimed), outcome
        return outcome.record

    def outcome(self, action_key: str = "charge-1042", **members: Any) -> ClaimOutcome:
        return self.claim(action_key, **members).outcome

    def complete(
        self,
        action_key: str = "charge-1042",
        *,
        namespace: str = "billing",
        token: str | None = None,
        who: str | None = None,
        result: str | None = None,
        ttl: int = 100,
    ) -> Any:
        return self.claims.complete(
            namespace=namespace,
            action_key=action_key,
            namespace_token=token,
            claim_token=who,
            result=result,
            ttl_seconds=ttl,
        )

    def release(
        self,
        action_key: str = "charge-1042",
        *,
        namespace: str = "billing",
        token: str | None = None,
        who: str | None = None,
    ) -> Any:
        return self.claims.release(namespace=namespace, action_key=action_key, namespace_token=token, claim_token=who)

    def renew(
        self,
        action_key: str = "charge-1042",
        *,
        namespace: str = "billing",
        token: str | None,
        who: str,
        lease: int = 10,
    ) -> Any:
        return self.claims.renew(
            namespace=namespace, action_key=action_key, namespace_token=token, claim_token=who, lease_ttl_seconds=lease
        )

    def status(self, action_key: str = "charge-1042", *, namespace: str = "billing", token: str | None = None) -> Any:
        return self.claims.status(namespace=namespace, action_key=action_key, namespace_token=token)


@contextmanager
def once_keys(
    folder: Path,
    *,
    clock: ManualClock | None = None,
    strong_names: bool = False,
    price: int | None = None,
    **settings: Any,
) -> Iterator[Once]:
    """A server's once-keys on `folder/fencepost.db`, closed at the end."""
    clock = clock or ManualClock()
    hub = Hub()
    engine = SqliteEngine(folder / "fencepost.db", clock=clock, on_commit=hub.ring, **(PATIENT | settings))
    lines = Lines(hub)
    deadlines = Deadlines(clock, hub, longest_nap_seconds=0.02)
    try:
        credits = Credits(engine, price=price or 0, server_key=b"a key of the tests")
        metered = None if price is None else credits
        waiting = Waiting(lines, deadlines, Seats(1000))
        claims = Claims(engine, waiting, strong_names=strong_names, credits=metered)
        yield Once(engine, clock, hub, lines, claims, credits)
    finally:
        deadlines.stop()
        engine.close()
