"""Following one handoff: what each frame and each close code means. No network here.

The cursor is the version: a change is told once, in order, whatever was sent twice, cut or skipped. A gap is closed by
subscribing anew from the last good version; once, for a server that skips again would be asked for ever.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fencepost.errors import StreamStopped, Unreachable, refused
from fencepost.outcomes import Change

_log = logging.getLogger("fencepost")
_LONGEST_PAUSE_SECONDS = 60.0
_STATUS = {"not_found": 404, "expired": 410}


@dataclass
class Cursor:
    """Up to which version everything has been told."""

    version: int

    def from_history(self, history: Sequence[Mapping[str, Any]], is_ended: bool) -> list[Change]:
        """The entries of a whole history that have not been told yet."""
        if len(history) < self.version:
            _log.warning("the handoff's history is shorter than it was: was the server restored from a backup?")
            self.version = len(history)
        try:
            changes = [
                Change(
                    version=version,
                    state=entry["state"],
                    previous=entry["from"],
                    by=entry["by"],
                    at=entry["at_timestamp"],
                    note=entry["note"],
                    ended=is_ended and version == len(history),
                )
                for version, entry in enumerate(history, start=1)
            ]
        except (KeyError, TypeError, AttributeError):
            raise Unreachable("the server does not answer as Fencepost does: no history") from None
        fresh = changes[self.version :]
        self.version = len(history)
        return fresh

    def from_frame(self, frame: Mapping[str, Any]) -> Change | None:
        """The change of a `chg` frame; None when it was told before. Raises Gap."""
        version = int(frame["version"])
        if version <= self.version:
            return None
        if version > self.version + 1:
            raise Gap
        self.version = version
        return Change(
            version=version,
            state=frame["state"],
            previous=frame["previous"],
            by=frame["by"],
            at=frame["at_timestamp"],
            note=frame["note"],
            ended=frame["ended"],
        )


class Following:
    """The conversation about one handoff on one socket: frames in, changes and answers out."""

    def __init__(self, handoff_id: str, cursor: Cursor) -> None:
        self._handoff_id = handoff_id
        self._subscription = handoff_id  # the stream of one handoff subscribes by itself, under this id
        self._cursor = cursor
        self.is_over = False

    def take(self, frame: Mapping[str, Any]) -> tuple[list[Change], list[dict[str, Any]]]:
        """What is to be told, and what is to be sent. Raises Cut, and the refusal that ends it for good.

        A frame that no Fencepost sends raises NoStream: polling will tell whether there is one.
        """
        try:
            return self._take(frame)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise NoStream from None

    def _take(self, frame: Mapping[str, Any]) -> tuple[list[Change], list[dict[str, Any]]]:
        kind = frame.get("t")
        if kind == "hb":
            return [], [{"t": "hb"}]
        if kind == "goaway":
            raise Cut(float(frame["reconnect_after_ms"]) / 1000)
        if frame.get("id") != self._subscription:
            return [], []
        match kind:
            case "snap":
                return self._cursor.from_history(frame["history"], frame["ended"]), []
            case "chg":
                return self._change(frame)
            case "end":
                self.is_over = True
            case "err":
                raise stopped(frame)
        return [], []

    def _change(self, frame: Mapping[str, Any]) -> tuple[list[Change], list[dict[str, Any]]]:
        try:
            change = self._cursor.from_frame(frame)
        except Gap:
            return [], self._subscribe_anew()
        return ([] if change is None else [change]), []

    def _subscribe_anew(self) -> list[dict[str, Any]]:
        """From the last good version, once a socket; after that only a new socket helps. Raises Cut."""
        old, self._subscription = self._subscription, "again"
        if old == self._subscription:
            raise Cut(5.0)
        sub = {"t": "sub", "id": "again", "handoff": self._handoff_id, "after": self._cursor.version}
        return [sub, {"t": "unsub", "id": old}]


class Gap(Exception):
    """A version was skipped."""


class Cut(Exception):
    """The connection is over, and the handoff is not: come back after `pause_seconds`, give or take."""

    def __init__(self, pause_seconds: float) -> None:
        super().__init__(pause_seconds)
        self.pause_seconds = max(0.0, min(pause_seconds, _LONGEST_PAUSE_SECONDS))


class NoStream(Exception):
    """There is no WebSocket to be had here; poll instead."""


def closed(code: int, reason: str) -> Cut:
    """What a close code asks for: stop (raises StreamStopped), back off, or come back at once."""
    if 4000 <= code < 4100:
        raise StreamStopped(code, reason)
    return Cut(0.0 if 4200 <= code < 4300 else 5.0 if 4100 <= code < 4200 else 1.0)


def stopped(frame: Mapping[str, Any]) -> Exception:
    """What an `err` frame about the subscription means."""
    code = str(frame.get("code"))
    if code in _STATUS:
        return refused(_STATUS[code], {"code": code, "error": frame.get("error", code)})
    return Cut(float(frame.get("retry_after_ms") or 5000) / 1000)
