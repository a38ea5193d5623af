"""The conversation over one socket: who is followed, what is told, when it ends.

One greenlet, the handler's own, writes; everything else only sets its bell: a signal for something followed, a
message, the reader's end, the server's stop. It then looks at what there is (level-triggered) and tells what the
client lacks. Nothing is queued for a slow client: what is told is made when there is room for it, from the latest
look. All times here are monotonic.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

import gevent

from app import __version__
from app.clock import Clock, monotonic
from app.push.board import Board
from app.push.hub import Hub
from app.push.sources import Handoffs, HandoffSeen, LeaseSeen, OpenFeed, RightsEnded, no_feeds
from app.tokens import random_fraction
from app.web.frames import FRAMES_PER_SECOND, LARGEST_MESSAGE, TOO_MANY_FRAMES, Closing, ping_frame, text_frame
from app.web.patrol import Patrol
from app.web.sock import Library
from app.web.socket import PATIENCE_SECONDS
from app.web.subscription import Refusal, Subscription, subscribe
from app.wire import stream_frames as frames
from app.wire.codes import Code
from app.wire.stream import (
    Beat,
    FollowFeed,
    FollowHandoff,
    FollowLease,
    Invalid,
    Leave,
    Malformed,
    StreamCode,
    read_wish,
)

_log = logging.getLogger("fencepost.web")

SOCKETS = "stream:sockets"
"""The topic that every socket listens to, so that a stopping hub rings it."""
MOST_SUBSCRIPTIONS = 256
_MOST_REFUSED = 100
_BATCH_BYTES = 16 * 1024
_SPREAD_MS = 2000

MALFORMED = Closing(4001, "a frame must be one JSON object in text")
NOTHING_VALID = Closing(4008, "no valid sub in time")
RIGHTS_ENDED = Closing(4013, "the session ended")
TOO_MANY = Closing(4029, "too many refused subscriptions")
SHUTTING_DOWN = Closing(4200, "shutting down")
SILENT = Closing(4201, "no byte from the client")
OVER = Closing(1000, "the handoff is over")
OLD = Closing(4202, "reconnect")
FAILED = Closing(1011, "the server failed")


@dataclass(frozen=True, slots=True)
class Pace:
    """The times of a socket, in seconds."""

    first_subscription: float = 5.0
    heartbeat: float = frames.HEARTBEAT_SECONDS
    silence: float = 45.0
    age: float = 3600.0
    patience: float = PATIENCE_SECONDS
    linger: float = 1.0
    linger_at_stop: float = 0.3


@dataclass(frozen=True, slots=True)
class Desk:
    """What all sockets of a process share."""

    hub: Hub
    clock: Clock
    handoffs: Handoffs
    handoff_board: Board[HandoffSeen]
    lease_board: Board[LeaseSeen]
    open_feed: OpenFeed = no_feeds
    pace: Pace = field(default_factory=Pace)
    patrol: Patrol = field(default_factory=Patrol)


NO_COOKIES: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Rights:
    """What the upgrade brought: a default token, cookies, and the one handoff that this route is for."""

    bearer: str | None = None
    cookies: Mapping[str, str] = field(default_factory=lambda: NO_COOKIES)
    only_handoff: str | None = None


class Conversation:
    """One socket."""

    __slots__ = (
        "_batch",
        "_bell",
        "_born_at",
        "_desk",
        "_dirty",
        "_has_subscribed",
        "_heartbeat_at",
        "_library",
        "_old_at",
        "_refused",
        "_socket",
        "_subscriptions",
        "rights",
    )

    def __init__(self, desk: Desk, library: Library, rights: Rights) -> None:
        self._desk = desk
        self._library = library
        self._socket = library.sock
        self._bell = library.event
        self.rights = rights
        self._subscriptions: dict[str, Subscription] = {}
        self._dirty: dict[Subscription, None] = {}
        self._batch: list[bytes] = []
        self._has_subscribed = False
        self._refused = 0
        self._born_at = monotonic()
        self._heartbeat_at = self._born_at + _about(desk.pace.heartbeat)
        self._old_at = self._born_at + _about(desk.pace.age)

    # ------------------------------------------------------------------------------------- the whole

    def run(self) -> None:
        """Converse until one side ends it. Returns when the socket may be closed."""
        self._socket.wake = self._bell.set
        self._desk.hub.join(SOCKETS, self._bell.set)
        try:
            closing = self._converse()
        except OSError:
            closing = None  # the peer is gone or stuck; `verdict` says which
        except RightsEnded:
            closing = RIGHTS_ENDED
        except Exception:  # noqa: BLE001 - the last resort: told in the log, and to the client by its code
            _log.exception("a stream failed")
            closing = FAILED
        finally:
            self._desk.hub.leave(SOCKETS, self._bell.set)
            for subscription in tuple(self._subscriptions.values()):
                subscription.leave()
            self._subscriptions.clear()
            self._dirty.clear()
        self._end(closing or self._socket.verdict)
        self._socket.wake = None

    def _converse(self) -> Closing | None:
        self._say(self._hello())
        if self.rights.only_handoff is not None:
            self._subscribe(FollowHandoff(self.rights.only_handoff, self.rights.only_handoff, None, None, False))
        while self._library.connected:
            self._flush()
            self._sleep()
            closing = self._take_messages() or self._reason_to_close()
            if closing is not None:
                return closing
            self._beat()
            self._tell()
            if self.rights.only_handoff is not None and not self._subscriptions:
                self._flush()
                return OVER
        self._take_messages()
        return None

    def _end(self, closing: Closing | None) -> None:
        pace = self._desk.pace
        is_stopping = self._desk.hub.stopping
        self._announce(closing)
        if closing is not None:
            self._socket.say_goodbye(closing)
        self._socket.settle(pace.linger_at_stop if is_stopping else pace.linger)

    def _announce(self, closing: Closing | None) -> None:
        """Send what is ready, and a frame before the close where there is more to say than a code."""
        if closing in (SHUTTING_DOWN, OLD):
            reason = "shutdown" if closing is SHUTTING_DOWN else "age"
            self._say(frames.goaway(reason, round(random_fraction() * _SPREAD_MS)))
        elif closing is TOO_MANY_FRAMES:
            self._say(frames.err(None, Code.RATE_LIMITED, closing.reason, retry_after_ms=1000))
        self._socket.abandon()
        try:
            self._flush()
        except OSError:
            return  # a peer that takes nothing learns it from the end of the connection

    # --------------------------------------------------------------------------------------- waiting

    def _sleep(self) -> None:
        if self._dirty:
            gevent.sleep(0)
            return
        pace = self._desk.pace
        until = min(self._heartbeat_at, self._old_at, self._socket.last_byte_at + pace.silence)
        if not self._has_subscribed:
            until = min(until, self._born_at + pace.first_subscription)
        if self._library.input_buffer or self._socket.verdict is not None or self._desk.hub.stopping:
            return
        self._bell.wait(max(0.0, until - monotonic()))
        self._bell.clear()

    def _reason_to_close(self) -> Closing | None:
        pace, now = self._desk.pace, monotonic()
        if self._socket.verdict is not None:
            return self._socket.verdict
        if self._desk.hub.stopping:
            return SHUTTING_DOWN
        if now >= self._socket.last_byte_at + pace.silence:
            return SILENT
        if not self._has_subscribed and now >= self._born_at + pace.first_subscription:
            return NOTHING_VALID
        if now >= self._old_at:
            return OLD
        return None

    # --------------------------------------------------------------------------------------- hearing

    def _take_messages(self) -> Closing | None:
        unread = self._library.input_buffer
        while unread:
            message = unread.pop(0)
            self._socket.took(1)
            try:
                closing = self._hear(message)
            except Malformed:
                return MALFORMED
            if closing is not None:
                return closing
        return None

    def _hear(self, message: str | bytes) -> Closing | None:
        if isinstance(message, bytes):
            raise Malformed
        match read_wish(message):
            case Invalid(id, code, error):
                self._say(frames.err(id, code, error))
            case Leave(id):
                self._unsubscribe(id)
            case Beat():
                return None
            case wish:
                self._subscribe(wish)
        return TOO_MANY if self._refused > _MOST_REFUSED else None

    def _subscribe(self, wish: FollowHandoff | FollowLease | FollowFeed) -> None:
        if wish.id in self._subscriptions:
            self._say(frames.err(wish.id, StreamCode.DUPLICATE_ID, "this id is in use; the first one stays"))
            return
        if len(self._subscriptions) >= MOST_SUBSCRIPTIONS:
            error = f"a socket has at most {MOST_SUBSCRIPTIONS} subscriptions"
            self._say(frames.err(wish.id, StreamCode.TOO_MANY_SUBSCRIPTIONS, error))
            return
        made = subscribe(self._desk, self.rights, wish, self._mark_dirty)
        if isinstance(made, Refusal):
            self._refused += 1
            self._say(frames.err(wish.id, made.code, made.error, made.retry_after_ms))
            return
        self._subscriptions[wish.id] = made
        self._has_subscribed = True

    def _unsubscribe(self, id: str) -> None:
        subscription = self._subscriptions.pop(id, None)
        if subscription is None:
            self._say(frames.err(id, StreamCode.UNKNOWN_ID, "there is no subscription with this id"))
            return
        subscription.leave()
        self._dirty.pop(subscription, None)

    # --------------------------------------------------------------------------------------- telling

    def _mark_dirty(self, subscription: Subscription) -> None:
        self._dirty[subscription] = None
        self._bell.set()

    def _tell(self) -> None:
        while self._dirty and sum(map(len, self._batch)) < _BATCH_BYTES:
            subscription = next(iter(self._dirty))
            del self._dirty[subscription]
            if self._subscriptions.get(subscription.id) is not subscription:
                continue  # left while it was being rung
            self._batch += subscription.tell()
            if subscription.is_over:
                subscription.leave()
                self._subscriptions.pop(subscription.id, None)

    def _beat(self) -> None:
        if monotonic() >= self._heartbeat_at:
            self._heartbeat_at = monotonic() + _about(self._desk.pace.heartbeat)
            for subscription in self._subscriptions.values():
                if subscription.beats:
                    self._mark_dirty(subscription)
            self._batch.append(ping_frame())
            self._say(frames.heartbeat(now=self._desk.clock.now(), subscriptions=len(self._subscriptions)))

    def _say(self, text: bytes) -> None:
        self._batch.append(text_frame(text))

    def _flush(self) -> None:
        if self._batch:
            batch, self._batch = self._batch, []
            self._socket.write(batch[0] if len(batch) == 1 else b"".join(batch))
            self._desk.patrol.visit(self._socket)

    def _hello(self) -> bytes:
        pace = self._desk.pace
        limits = {
            "subscriptions": MOST_SUBSCRIPTIONS,
            "frame_bytes": LARGEST_MESSAGE,
            "frames_per_second": FRAMES_PER_SECOND,
            "first_subscription_seconds": round(pace.first_subscription),
            "silence_seconds": round(pace.silence),
            "age_seconds": round(pace.age),
        }
        return frames.hello(version=__version__, now=self._desk.clock.now(), limits=limits)


def _about(seconds: float) -> float:
    return seconds * (0.9 + 0.2 * random_fraction())
