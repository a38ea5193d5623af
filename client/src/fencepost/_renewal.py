"""Renewing in a thread, for as long as a block runs.

A thread of its own, for async callers too: a loop that is blocked by its own work must not lose its lease (prefect
#21925). It survives every error but a real "lost", comes at a third of the TTL with jitter, and ends with the block.
A forked child has no such thread: it renews nothing. All renewals of one client share a pool of connections that
nothing else uses, so that callers parked in long waits cannot starve them.

What an error means is decided by `_certainty`, by the clock: the renewer only goes on trying while there is time.
"""

import logging
import os
import random
import ssl
import threading
from collections.abc import Callable, Mapping
from typing import Any

from fencepost._calls import Answer, Call, ttl_of
from fencepost._certainty import Certainty
from fencepost._clock import steady
from fencepost._retry import FIRST_BOUND_SECONDS
from fencepost._sync.transport import Transport
from fencepost.errors import FencepostError
from fencepost.outcomes import Lost

_log = logging.getLogger("fencepost")
_SHARE_OF_TTL = 3
_JITTER = 0.1
_LATE_SHARE = 2 / 3
_STOP_SECONDS = 1.0

Reader = Callable[[Answer], Mapping[str, Any] | Lost]


class Renewals:
    """Starts renewals over one pool of connections, opened at the first of them."""

    def __init__(self, url: str, context: ssl.SSLContext | None) -> None:
        self._url = url
        self._context = context
        self._lock = threading.Lock()
        self._transport: Transport | None = None

    def start(
        self, call: Call, read: Reader, member: str | None, ttl_seconds: float, certainty: Certainty
    ) -> "Renewal":
        """Begin to renew; the first renewal comes after about a third of the TTL. `member` names the TTL granted
        in the answer; without one it is the TTL that was asked for."""
        with self._lock:
            if self._transport is None:
                self._transport = Transport(self._url, timeout_seconds=60, retry_seconds=60, context=self._context)
        renewal = Renewal(self._transport, call, read, member, ttl_seconds, certainty)
        renewal.start()
        return renewal

    def close(self) -> None:
        """Close the connections; what is still renewed then ends with its time."""
        with self._lock:
            transport = self._transport
        if transport is not None:
            transport.close()


class Renewal:
    """A thread that renews until told to stop, or until the ownership is over."""

    def __init__(
        self,
        transport: Transport,
        call: Call,
        read: Reader,
        member: str | None,
        ttl_seconds: float,
        certainty: Certainty,
    ) -> None:
        self._transport = transport
        self._call = call
        self._read = read
        self._member = member
        self._ttl = ttl_seconds
        self._certainty = certainty
        self._stop = threading.Event()
        self._is_muted = False
        self._process = os.getpid()
        self._thread = threading.Thread(target=self._run, name="fencepost-renewal", daemon=True)
        self.failures = 0
        """How many renewals brought no answer that counted."""

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def mute(self, is_muted: bool) -> None:
        """While the holder's own completion or release is under way, a "lost" may be its doing: do not tell."""
        self._is_muted = is_muted

    def stop(self) -> None:
        """Have it end soon, without waiting for it."""
        self._stop.set()

    def end(self) -> None:
        """Stop, and wait a moment for a renewal under way; what it brings does not matter any more."""
        self._stop.set()
        if os.getpid() == self._process and self._thread is not threading.current_thread():
            self._thread.join(_STOP_SECONDS)

    def _run(self) -> None:
        renewed_at, bound = steady(), FIRST_BOUND_SECONDS
        pause = self._interval()
        while not self._stop.wait(max(0.0, min(pause, self._certainty.left()))):
            if self._certainty.is_over:
                return
            sent_at = steady()
            if sent_at - renewed_at > self._ttl * _LATE_SHARE:
                _log.warning("a renewal comes late: %.1f s after the last, TTL %g s", sent_at - renewed_at, self._ttl)
            if self._renew(sent_at):
                renewed_at, bound, pause = sent_at, FIRST_BOUND_SECONDS, self._interval()
            else:
                self.failures += 1
                pause = random.uniform(bound / 2, bound)
                bound = min(2 * bound, self._ttl / _SHARE_OF_TTL)

    def _renew(self, sent_at: float) -> bool:
        """One attempt; whether it was granted."""
        try:
            limit = min(self._certainty.left(), self._ttl / _SHARE_OF_TTL)
            answer = self._transport.attempt(self._call, limit)
            if answer.status >= 500:
                return False
            outcome = self._read(answer)
            ttl = self._ttl
            if self._member is not None and not isinstance(outcome, Lost):
                ttl = ttl_of(outcome, self._member)
        except FencepostError as fault:
            _log.info("a renewal failed and will be tried again: %s", type(fault).__name__)
            return False
        except Exception:  # noqa: BLE001 - whatever it is, it must not end the thread
            _log.exception("a renewal failed and will be tried again")
            return False
        if isinstance(outcome, Lost):
            if not (self._is_muted or self._stop.is_set()):
                self._certainty.lose(outcome.reason)
            return False
        self._ttl = ttl
        self._certainty.extend(sent_at, self._ttl)
        return True

    def _interval(self) -> float:
        return self._ttl / _SHARE_OF_TTL * random.uniform(1 - _JITTER, 1 + _JITTER)
