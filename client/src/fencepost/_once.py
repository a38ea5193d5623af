"""What once-keys need beside the network: the tokens of namespaces, and which actions can be run."""

import hashlib
import hmac
import inspect
import threading
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any

from fencepost import keys

_SHORTEST_SECRET = 16


class OnceTokens(MutableMapping[str, str]):
    """The token of each namespace: given, derived from a secret, or minted. Safe from any thread."""

    def __init__(self, given: Mapping[str, str] | None = None, secret: str | None = None) -> None:
        if secret is not None and len(secret) < _SHORTEST_SECRET:
            raise ValueError(f"the once secret has fewer than {_SHORTEST_SECRET} characters")
        self._known = dict(given or {})
        self._minted: dict[str, str] = {}
        self._secret = secret
        self._lock = threading.Lock()

    def of(self, namespace: str) -> str | None:
        """The namespace's token, if there is one."""
        with self._lock:
            return self._known.get(namespace) or self._derived(namespace)

    def for_claim(self, namespace: str) -> str:
        """The token to claim with: callers that come first at the same moment bring the same one."""
        with self._lock:
            token = self._known.get(namespace) or self._derived(namespace)
            return token or self._minted.setdefault(namespace, keys.mint_once_namespace_token())

    def keep(self, namespace: str) -> None:
        """A claim with the token was answered: it is the namespace's."""
        with self._lock:
            if namespace in self._minted:
                self._known.setdefault(namespace, self._minted.pop(namespace))

    def forget_minted(self, namespace: str) -> None:
        """The namespace belongs to somebody else."""
        with self._lock:
            self._minted.pop(namespace, None)

    def _derived(self, namespace: str) -> str | None:
        if self._secret is None:
            return None
        digest = hmac.new(self._secret.encode(), b"fencepost once\0" + namespace.encode(), hashlib.sha256).digest()
        return "nst_" + urlsafe_b64encode(digest).rstrip(b"=").decode("ascii")

    def __getitem__(self, namespace: str) -> str:
        return self._known[namespace]

    def __setitem__(self, namespace: str, token: str) -> None:
        with self._lock:
            self._known[namespace] = token

    def __delitem__(self, namespace: str) -> None:
        with self._lock:
            del self._known[namespace]

    def __iter__(self) -> Iterator[str]:
        return iter(dict(self._known))

    def __len__(self) -> int:
        return len(self._known)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {sorted(self._known)}>"


def must_be_callable(action: Callable[..., Any], *, is_async: bool) -> None:
    """Raise TypeError, before anything is claimed, for an action that this client cannot run."""
    if not callable(action):
        raise TypeError("the action must be callable")
    if not is_async and inspect.iscoroutinefunction(inspect.unwrap(action)):
        raise TypeError("the action is a coroutine function: use fencepost.AsyncClient")


def must_not_await(result: Any, *, is_async: bool) -> None:
    """Raise TypeError when a sync client was given something to await; it was not begun."""
    if not is_async:
        if inspect.iscoroutine(result):
            result.close()
        raise TypeError("the action returned something to await: use fencepost.AsyncClient")
