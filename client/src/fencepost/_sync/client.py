# Made by scripts/unasync.py from _async. Do not edit.
"""The client: one server, everything it offers."""

import functools
import os
from collections.abc import Callable
from types import TracebackType
from typing import Any

from fencepost import keys
from fencepost._sync.handoff import Handoffs
from fencepost._sync.lease import Lease, Leases
from fencepost._sync.once import Once
from fencepost._sync.transport import Transport

_DEFAULT_URL = "http://127.0.0.1:8000"


class Client:
    """A client of the server at `url` (default: FENCEPOST_URL, else http://127.0.0.1:8000).

    Every call is repeat-safe and is sent again while the server is away, for `retry_seconds` at most. One attempt may
    take `timeout_seconds` beside the time that it is asked to wait. `namespace_tokens` maps once-key namespaces to
    their tokens. Close it, or use it as a context manager.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        timeout_seconds: float = 10.0,
        retry_seconds: float = 30.0,
        namespace_tokens: dict[str, str] | None = None,
    ) -> None:
        self.url = url or os.environ.get("FENCEPOST_URL") or _DEFAULT_URL
        self._transport = Transport(self.url, timeout_seconds=timeout_seconds, retry_seconds=retry_seconds)
        self.leases = Leases(self._transport)
        self.onces = Once(self._transport, self.url, namespace_tokens or {})
        self.handoffs = Handoffs(self._transport)

    def __enter__(self) -> "Client":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._transport.close()

    def lease(
        self,
        key: str,
        *,
        namespace: str | None = None,
        ttl: int = 60,
        wait: float = 0.0,
        fingerprint: str | None = None,
        holder: str | None = None,
    ) -> Lease:
        """A block that holds the key while it runs; see Lease. Raises NotGranted on entry."""
        return Lease(
            self.leases,
            self.url,
            key,
            namespace=namespace,
            ttl=ttl,
            wait=wait,
            fingerprint=fingerprint,
            holder=holder,
        )

    def once(
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
        """Do the action exactly once; see Once.run."""
        return self.onces.run(
            namespace, action_key, action, payload=payload, ttl=ttl, lease_ttl=lease_ttl, wait=wait
        )

    def exactly_once(
        self,
        *,
        namespace: str,
        key: Callable[..., str] | None = None,
        ttl: int | None = None,
        lease_ttl: int | None = None,
        wait: float = 60.0,
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Decorate a function so that each set of arguments is acted on once. `key` makes the action key of them.

        Without `key` it is made of the function's name and its arguments (see keys.for_call).
        """

        def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
            @functools.wraps(function)
            def call(*arguments: Any, **named: Any) -> Any:
                action_key = (
                    key(*arguments, **named)
                    if key is not None
                    else keys.for_call(function.__qualname__, [list(arguments), named])
                )
                return self.once(
                    namespace,
                    action_key,
                    functools.partial(function, *arguments, **named),
                    ttl=ttl,
                    lease_ttl=lease_ttl,
                    wait=wait,
                )

            return call

        return decorate
