"""What tests of a real server need, and nothing else: a movable clock and failpoints.

Both are files that are read again when used, so that a test outside the process can walk a running server
through a day or stop it between two steps. Outside test mode neither file is ever looked at and every failpoint
is one attribute check.
"""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

POINTS = (
    "after-lock",
    "after-decide",
    "before-debit",
    "before-commit",
    "after-commit",
    "after-listen",
    "sweep-after-select",
)


class Dropped(BaseException):
    """The failpoint `drop-answer`: close the connection instead of answering."""


class FailpointError(Exception):
    """The failpoint `error`."""


class Failpoints:
    """Named places where a test may pause, kill, drop the answer or raise.

    The file holds `name action` lines; actions are `pause MS`, `kill`, `drop-answer` and `error`.
    """

    def __init__(self, file: Path | None = None, sleep: Callable[[float], None] = time.sleep) -> None:
        self._file = file
        self._sleep = sleep

    def at(self, name: str) -> None:
        """Act as the file says for this point, if it says anything."""
        if self._file is None:
            return
        for action in self._actions(name):
            self._act(name, action)

    def _actions(self, name: str) -> list[list[str]]:
        assert self._file is not None
        try:
            lines = self._file.read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return []
        words = [line.split() for line in lines if line.strip() and not line.startswith("#")]
        return [line[1:] for line in words if line[0] == name]

    def _act(self, name: str, action: list[str]) -> None:
        match action:
            case ["pause", milliseconds]:
                self._sleep(float(milliseconds) / 1000)
            case ["kill"]:
                os.kill(os.getpid(), signal.SIGKILL)
            case ["drop-answer"]:
                raise Dropped(name)
            case ["error"]:
                raise FailpointError(name)
            case _:
                raise FailpointError(f"{name}: unknown action {' '.join(action)!r}")


def offset_from(file: Path | None) -> Callable[[], int]:
    """A reader of the clock file: seconds, negative or fractional, as microseconds. No file is no offset."""

    def read() -> int:
        if file is None:
            return 0
        try:
            return round(float(file.read_text(encoding="ascii").strip() or "0") * 1_000_000)
        except FileNotFoundError:
            return 0

    return read
