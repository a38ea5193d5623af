"""Slow hashes of passwords, off the event loop.

argon2id takes tens of milliseconds and tens of megabytes on purpose. It runs on one native thread of its own, so that
a flood of sign-ins delays nothing but sign-ins, and few of them wait: whoever comes when the line is full is told to
come back. A name that nobody has is checked against a hash of nothing, so that it takes as long as a wrong password.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Protocol, TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from gevent.threadpool import ThreadPool

from app import tokens

_LONGEST_LINE = 16
T = TypeVar("T")
_hasher = PasswordHasher(time_cost=2, memory_cost=19_456, parallelism=1)


class LineFull(Exception):
    """More sign-ins wait than are worth waiting for."""

    retry_after_seconds = 2


class Passwords(Protocol):
    """How passwords become hashes, and are compared with them."""

    def hashed(self, password: str) -> str: ...

    def fits(self, password: str, encoded: str | None) -> bool: ...


class HereAndNow:
    """On the caller's own thread: for the command line and for tests."""

    def hashed(self, password: str) -> str:
        """The encoded hash of a password, with a salt of its own."""
        return _hasher.hash(password, salt=tokens.random_bytes(16))

    def fits(self, password: str, encoded: str | None) -> bool:
        """Whether this is the password; with None it takes as long and is False."""
        try:
            _hasher.verify(encoded or _of_nobody(), password)
        except (VerificationError, InvalidHashError):
            return False
        return encoded is not None


class OnAThread:
    """On a native thread that does nothing else. Raises LineFull."""

    def __init__(self) -> None:
        self._here = HereAndNow()
        self._pool: ThreadPool | None = None
        self._waiting = 0

    def hashed(self, password: str) -> str:
        """As HereAndNow."""
        return self._apart(lambda: self._here.hashed(password))

    def fits(self, password: str, encoded: str | None) -> bool:
        """As HereAndNow."""
        return self._apart(lambda: self._here.fits(password, encoded))

    def close(self) -> None:
        """End the thread."""
        if self._pool is not None:
            self._pool.kill()

    def _apart(self, work: Callable[[], T]) -> T:
        if self._waiting >= _LONGEST_LINE:
            raise LineFull
        if self._pool is None:
            self._pool = ThreadPool(1)
        self._waiting += 1
        try:
            result: T = self._pool.apply(work)
            return result
        finally:
            self._waiting -= 1


@lru_cache(maxsize=1)
def _of_nobody() -> str:
    return _hasher.hash("nobody", salt=b"sixteen bytes ok")
