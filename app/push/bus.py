"""Hints from process to process: "look again at these topics".

A commit is followed by a hint, outside its transaction. What is committed while a hint is being sent goes with the
next one, so a busy process sends few. A hint may be lost: push/recheck.py notices what it would have said.

So that one caller of a thousand on four processes tries, and not one of each: a topic that somebody here stands in line
for is told a moment later, when the head of that line has tried; and who hears that something is free waits for a short
time of its own before it looks.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

import gevent
from gevent.event import Event

from app.push.hub import Hub
from app.storage.notify import MOST_BYTES, ChannelAway
from app.tokens import mint_identifier, random_fraction

_log = logging.getLogger("fencepost.bus")

_HEAD_START_SECONDS = 0.02
_SPREAD_SECONDS = 0.01
_NAP_SECONDS = 5.0
_FIRST_PAUSE_SECONDS = 0.5
_LONGEST_PAUSE_SECONDS = 10.0
_ECHO_SECONDS = 3.0
_ECHO_TRIES = 3


class Channel(Protocol):
    """How messages travel. Each call raises ChannelAway where it cannot be done now."""

    def send(self, messages: list[str]) -> None: ...

    def listen(self) -> None: ...

    def hear(self, seconds: float) -> list[str]: ...

    def close(self) -> None: ...


class Bus:
    """The hints of one process. `is_awaited(topic)` says whether somebody here stands in line for it."""

    def __init__(self, hub: Hub, channel: Channel, is_awaited: Callable[[str], bool]) -> None:
        self._hub = hub
        self._channel = channel
        self._is_awaited = is_awaited
        self._name = mint_identifier()[:8]
        self._pending: dict[str, None] = {}
        self._something = Event()
        self._echo = Event()
        self._greenlets: list[gevent.Greenlet[[], None]] = []
        self.sent = self.heard = 0
        """Messages so far."""

    def start(self) -> None:
        """Begin to send and to listen."""
        self._greenlets = [gevent.spawn(self._send), gevent.spawn(self._listen), gevent.spawn(self._await_echo)]

    def stop(self) -> None:
        """End."""
        gevent.killall(self._greenlets)
        self._channel.close()

    def tell(self, topics: Iterable[str]) -> None:
        """Something was committed."""
        for topic in topics:
            if self._is_awaited(topic):
                gevent.spawn_later(_HEAD_START_SECONDS, self._add, topic)
            else:
                self._add(topic)

    def _add(self, topic: str) -> None:
        self._pending[topic] = None
        self._something.set()

    def _send(self) -> None:
        pause = _FIRST_PAUSE_SECONDS
        while True:
            self._something.wait()
            self._something.clear()
            topics, self._pending = self._pending, {}
            try:
                messages = list(_messages(self._name, topics))
                self._channel.send(messages)
                self.sent += len(messages)
                pause = _FIRST_PAUSE_SECONDS
            except ChannelAway as away:
                _log.warning("changes cannot be told to other processes (%s); they look for themselves", away)
                gevent.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    def _listen(self) -> None:
        pause = _FIRST_PAUSE_SECONDS
        while True:
            try:
                self._channel.listen()
                self._hub.ring(self._hub.listened())  # whatever was told in the meantime
                self._echo.clear()
                self._add("echo")
                pause = _FIRST_PAUSE_SECONDS
                while True:
                    for message in self._channel.hear(_NAP_SECONDS):
                        self._take(message)
            except ChannelAway as away:
                _log.warning("changes by other processes are not heard (%s); they are looked for", away)
                gevent.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    def _take(self, message: str) -> None:
        sender, *topics = message.split(" ")
        if sender == self._name:
            self._echo.set()
            return
        self.heard += 1
        for topic in topics:
            if self._is_awaited(topic):
                gevent.spawn_later(random_fraction() * _SPREAD_SECONDS, self._hub.ring, [topic])
            else:
                self._hub.ring([topic])

    def _await_echo(self) -> None:
        """A pooler may swallow what is told without a word: say so, once."""
        for _ in range(_ECHO_TRIES):
            gevent.sleep(_ECHO_SECONDS)
            if self._echo.is_set():
                return
            self._add("echo")
        _log.warning(
            "this process does not hear itself: changes by other processes are seen within about a second. Behind "
            "a pooler in transaction mode set FENCEPOST_BUS to redis://… or to the database's own address."
        )


def _messages(sender: str, topics: Iterable[str]) -> Iterator[str]:
    message = sender
    for topic in topics:
        if len(message) + 1 + len(topic) > MOST_BYTES:
            yield message
            message = sender
        message += " " + topic
    if message != sender:
        yield message
