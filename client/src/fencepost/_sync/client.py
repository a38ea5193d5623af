# Made by scripts/unasync.py from _async. Do not edit.
"""The client: one server, everything it offers."""

import functools
import inspect
import os
import ssl
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any

from fencepost import keys
from fencepost._once import OnceTokens, must_be_callable
from fencepost._renewal import Renewals
from fencepost._sync.handoff import Handoffs
from fencepost._sync.lease import Lease, Leases
from fencepost._sync.once import Once
from fencepost._sync.transport import Transport
from fencepost._wire import server_url

_DEFAULT_URL = "http://127.0.0.1:8000"


class Client:
    """A client of the server at `url` (default: FENCEPOST_URL, else http://127.0.0.1:8000).

    Every call is repeat-safe and is sent again while the server is away, for `retry_seconds` at most, longer where the
    caller is ready to wait longer. One attempt may take `timeout_seconds` beside the time that the server is asked to
    wait. `once_tokens` maps once-key namespaces to their tokens; `once_secret` (default: FENCEPOST_ONCE_SECRET) is a
    text of at least 16 characters from which the tokens of all others are derived, so that every process that has it
    may claim. `context` is for TLS. Close it, or use it as a context manager. Threads may share it.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        timeout_seconds: float = 10.0,
        retry_seconds: float = 30.0,
        once_tokens: Mapping[str, str] | None = None,
        once_secret: str | None = None,
        context: ssl.SSLContext | None = None,
    ) -> None:
        self.url = server_url(url or os.environ.get("FENCEPOST_URL") or _DEFAULT_URL)
        self._transport = Transport(
            self.url, timeout_seconds=timeout_seconds, retry_seconds=retry_seconds, context=context
        )
        self._renewals = Renewals(self.url, context)
        tokens = OnceTokens(once_tokens, once_secret or os.environ.get("FENCEPOST_ONCE_SECRET") or None)
        self.leases = Leases(self._transport)
        self.onces = Once(self._transport, self._renewals, tokens)
        self.handoffs = Handoffs(self._transport)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.url}>"

    def __enter__(self) -> "Client":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections. Leases that are still held end with their time."""
        self._renewals.close()
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
        raise_if_lost: bool = True,
    ) -> Lease:
        """A block that holds the key while it runs; see Lease.

        Entering raises NotGranted after `wait` seconds. Leaving raises LeaseLost if the lease was lost meanwhile and
        the body raised nothing itself; with `raise_if_lost=False` that is only a warning in the log.
        """
        return Lease(
            self.leases,
            self._renewals,
            key,
            namespace=namespace,
            ttl=ttl,
            wait=wait,
            fingerprint=fingerprint,
            holder=holder,
            raise_if_lost=raise_if_lost,
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
        return self.onces.run(namespace, action_key, action, payload=payload, ttl=ttl, lease_ttl=lease_ttl, wait=wait)

    def exactly_once(
        self,
        *,
        namespace: str,
        key: Callable[..., str] | None = None,
        payload: Callable[..., Any] | None = None,
        ttl: int | None = None,
        lease_ttl: int | None = None,
        wait: float = 60.0,
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Decorate a function so that each set of arguments is acted on once.

        `key` makes the action key of the arguments; without it, it is made of the function's name and the arguments
        (see keys.for_call). `payload` makes of them what the key is bound to: the same key with another payload
        raises PayloadMismatch.
        """

        def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
            must_be_callable(function, is_async=_IS_ASYNC)

            @functools.wraps(function)
            def call(*arguments: Any, **named: Any) -> Any:
                name = f"{function.__module__}.{function.__qualname__}"
                action_key = key(*arguments, **named) if key else keys.for_call(name, [list(arguments), named])
                bound = payload(*arguments, **named) if payload else None
                return self.onces.run(
                    namespace,
                    action_key,
                    lambda *_: function(*arguments, **named),
                    payload=bound,
                    ttl=ttl,
                    lease_ttl=lease_ttl,
                    wait=wait,
                )

            return call

        return decorate


_IS_ASYNC = inspect.iscoroutinefunction(Client.once)
