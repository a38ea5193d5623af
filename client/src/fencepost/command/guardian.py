"""Ends a process group when its time is up, also when whoever started it was killed or stopped and cannot.

    python -I -S guardian.py GRACE_SECONDS [N]      run as a file of its own: it imports nothing of the package

Standard input says what to do, a line each: `group N`, `until T` (steady clock; the group must be gone by then),
`lost` (it must go now), `quit` (it is gone). The end of input without `quit` means that the wrapper died. Before it
ends the group it writes `ended` to standard output. TERM comes a grace before the time is up, KILL just before it.
"""

import contextlib
import os
import select
import signal
import sys
import time

_CLOCK = getattr(time, "CLOCK_BOOTTIME", getattr(time, "CLOCK_MONOTONIC", None))
_KILL_EARLY_SHARE = 0.1
_LONGEST_SLEEP_SECONDS = 5.0
_IGNORED = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGTSTP", "SIGPIPE", "SIGUSR1", "SIGUSR2")


def steady() -> float:
    """The clock of the package's own `_clock`."""
    return time.monotonic() if _CLOCK is None else time.clock_gettime(_CLOCK)


def is_alive(group: int) -> bool:
    """Whether anything of the group still runs."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def send(group: int, number: int) -> None:
    """Send a signal to all of a group that may be gone."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return


def end(group: int, kill_at: float) -> None:
    """TERM now (and CONT, for one that is stopped cannot obey), KILL at that time, and see that it is gone."""
    send(group, signal.SIGTERM)
    send(group, signal.SIGCONT)
    while is_alive(group) and steady() < kill_at:
        time.sleep(0.02)
    send(group, signal.SIGKILL)


class Watch:
    """What has been said so far."""

    def __init__(self, grace_seconds: float) -> None:
        self.grace = grace_seconds
        self.group: int | None = None
        self.until: float | None = None
        self.is_lost = False
        self.may_quit = False
        self._unread = b""

    def feed(self, chunk: bytes) -> None:
        """Lines of the wrapper; its end is a loss."""
        if not chunk:
            self.is_lost = True
        *lines, self._unread = (self._unread + chunk).split(b"\n")
        for line in lines:
            word, _, value = line.decode("ascii").partition(" ")
            if word == "group":
                self.group = int(value)
            elif word == "until":
                self.until = float(value)
            elif word == "lost":
                self.is_lost = True
            elif word == "quit":
                self.may_quit = True

    def left(self) -> float:
        """Seconds until the group must be told to go."""
        if self.is_lost:
            return 0.0
        return _LONGEST_SLEEP_SECONDS if self.until is None else self.until - self.grace - steady()

    def kill_at(self) -> float:
        """When it must be gone: a lost lease may be another's already, so there is no more than the grace."""
        by = steady() + self.grace
        margin = self.grace * _KILL_EARLY_SHARE
        return by if self.until is None or self.is_lost else min(by, self.until - margin)


def main() -> int:
    """Watch until told to quit, or end the group."""
    for name in _IGNORED:
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    watch = Watch(float(sys.argv[1]))
    watch.group = int(sys.argv[2]) if len(sys.argv) > 2 else None
    while watch.left() > 0:
        readable, _, _ = select.select([0], [], [], min(watch.left(), _LONGEST_SLEEP_SECONDS))
        if readable:
            watch.feed(os.read(0, 4096))
        if watch.may_quit:
            return 0
    if watch.group is not None:
        with contextlib.suppress(OSError):  # nobody may be there to be told, which is why we are here
            os.write(1, b"ended\n")
        end(watch.group, watch.kill_at())
    return 0


if __name__ == "__main__":
    sys.exit(main())
