"""Keeping a lease, and knowing for certain when it is not kept.

Certainty is counted on this machine's own steady clock from the moment *before* a request was sent: the server cannot
have started the TTL earlier (kubernetes/client-go #448, the DynamoDB lock client). With the network gone it therefore
ends by itself, no later than that moment + TTL, whatever anybody answers. A process that was paused finds the time
passed at its next check.

Renewal runs in a thread of its own, for async callers too: a loop that is blocked by its own work must not lose its
lease (prefect #21925). It survives every error but a real "lost", comes at a third of the TTL with jitter, and ends
with the block. A forked child has no such thread: it renews nothing.
"""

import logging
import os
import random
import threading
import time
from collections.abc import Callable

from fencepost._calls import Answer, Call, kept
from fencepost._retry import FIRST_BOUND_SECONDS
from fencepost._sync.transport import Transport
from fencepost.errors import FencepostError, LeaseLost
from fencepost.outcomes import Lost

_log = logging.getLogger("fencepost")
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_SHARE_OF_TTL = 3
_JITTER = 0.1
_LATE_SHARE = 2 / 3


def steady() -> float:
    """Seconds on a clock that nobody sets and that counts a suspended machine where the system has one."""
    return time.clock_gettime(_CLOCK)


class Certainty:
    """Until when an ownership is certain, and whether it is known to be over. Safe from any thread."""

    def __init__(self, key: str, sent_at: float, ttl_seconds: float) -> None:
        self._key = key
        self._lock = threading.Lock()
        self._until = sent_at + ttl_seconds
        self._reason: str | None = None
        self._watchers: list[Callable[[], None]] = []
        self.lost = threading.Event()

    def extend(self, sent_at: float, ttl_seconds: float) -> None:
        """A renewal that was sent then was granted; it replaces the end, and revives nothing."""
        with self._lock:
            if self._reason is None:
                self._until = sent_at + ttl_seconds

    def left(self) -> float:
        """Seconds of certainty left; 0 or less when it is over."""
        return 0.0 if self._reason is not None else self._until - steady()

    def lose(self, reason: str) -> None:
        """Declare it over; the first reason stands."""
        with self._lock:
            if self._reason is not None:
                return
            self._reason = reason
        self.lost.set()
        for watcher in self._watchers:
            watcher()

    def watch(self, watcher: Callable[[], None]) -> None:
        """Call this, on whatever thread, once it is over."""
        self._watchers.append(watcher)

    def check(self) -> None:
        """Raise LeaseLost unless the ownership is certain at this instant."""
        if self._reason is None and self.left() <= 0:
            self.lose("expired")
        if self._reason is not None:
            raise LeaseLost(self._key, self._reason)


class Renewal:
    """A thread that renews until told to stop, or until the ownership is lost."""

    def __init__(self, url: str, call: Call, ttl_seconds: float, certainty: Certainty) -> None:
        self._url = url
        self._call = call
        self._ttl = ttl_seconds
        self._certainty = certainty
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._process = os.getpid()

    def start(self) -> None:
        """Begin; the first renewal comes after about a third of the TTL."""
        self._thread = threading.Thread(target=self._run, name="fencepost-renewal", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End it. A renewal under way is awaited for a moment; what it brings no longer matters."""
        self._stop.set()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread() and os.getpid() == self._process:
            thread.join(min(1.0, self._ttl / _SHARE_OF_TTL))

    def _run(self) -> None:
        with Transport(self._url, timeout_seconds=self._ttl, retry_seconds=self._ttl) as transport:
            renewed_at, bound = steady(), FIRST_BOUND_SECONDS
            pause = self._interval()
            while not self._stop.wait(min(pause, max(0.0, self._certainty.left()))):
                if self._certainty.left() <= 0:
                    self._certainty.lose("expired")
                    return
                sent_at = steady()
                if sent_at - renewed_at > self._ttl * _LATE_SHARE:
                    _log.warning(
                        "a renewal comes late: %.1f s after the last, TTL %g s", sent_at - renewed_at, self._ttl
                    )
                if self._renew(transport, sent_at):
                    renewed_at, bound, pause = sent_at, FIRST_BOUND_SECONDS, self._interval()
                else:
                    pause = random.uniform(bound / 2, bound)
                    bound = min(2 * bound, self._interval())
                if self._certainty.lost.is_set():
                    return

    def _renew(self, transport: Transport, sent_at: float) -> bool:
        """One attempt; whether it was granted."""
        try:
            answer: Answer = transport.attempt(self._call, min(self._certainty.left(), self._ttl / _SHARE_OF_TTL))
            if answer.status >= 500:
                return False
            outcome = kept(answer)
        except FencepostError as fault:
            _log.debug("a renewal failed: %s", type(fault).__name__)
            return False
        except Exception:
            _log.exception("a renewal failed and will be tried again")
            return False
        if isinstance(outcome, Lost):
            if not self._stop.is_set():
                self._certainty.lose(outcome.reason)
            return False
        self._certainty.extend(sent_at, outcome.get("ttl_seconds", self._ttl))
        return True

    def _interval(self) -> float:
        return self._ttl / _SHARE_OF_TTL * random.uniform(1 - _JITTER, 1 + _JITTER)
