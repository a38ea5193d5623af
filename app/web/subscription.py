"""One thing that one socket follows: it knows what it told last and makes the frames that its client lacks."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, assert_never

import gevent

from app.clock import monotonic
from app.core.handoff import Mover
from app.core.instants import seconds_down
from app.push.board import Board, Watch
from app.push.follow import Change, End, HandoffFollower, LeaseFollower, Live, Snapshot, Step
from app.push.hub import Hub
from app.push.sources import Feed, Handoffs, HandoffSeen, LeaseSeen, OpenFeed
from app.services.lease import key_hash
from app.services.ports import Unavailable
from app.web.frames import text_frame
from app.wire import stream_frames as frames
from app.wire.codes import Code
from app.wire.stream import FollowFeed, FollowHandoff, FollowLease, StreamCode

HANDOFF_ID = re.compile(r"[0-9a-f]{32}", re.ASCII)
_SHARED_FRAMES = 32
_FEED_PAUSE_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a subscription was not made."""

    code: str
    error: str | None = None
    retry_after_ms: int | None = None


class Rights(Protocol):
    """What the connection itself may do."""

    @property
    def bearer(self) -> str | None: ...

    @property
    def cookies(self) -> Mapping[str, str]: ...

    @property
    def only_handoff(self) -> str | None: ...


class Desk(Protocol):
    """Where what is followed can be seen."""

    @property
    def hub(self) -> Hub: ...

    @property
    def handoffs(self) -> Handoffs: ...

    @property
    def handoff_board(self) -> Board[HandoffSeen]: ...

    @property
    def lease_board(self) -> Board[LeaseSeen]: ...

    @property
    def open_feed(self) -> OpenFeed: ...


class Subscription(ABC):
    """`tell` after each ring; `leave` at the end, any number of times. `beats`: look at each heartbeat too."""

    beats = False

    __slots__ = ("_mark_dirty", "id", "is_over")

    def __init__(self, id: str, mark_dirty: "Callable[[Subscription], None]") -> None:
        self.id = id
        self.is_over = False
        self._mark_dirty = mark_dirty

    def ring(self) -> None:
        """There may be something to tell."""
        self._mark_dirty(self)

    @abstractmethod
    def tell(self) -> list[bytes]:
        """Whole WebSocket frames with what the client lacks, perhaps none."""

    @abstractmethod
    def leave(self) -> None:
        """Listen no longer."""


class HandoffSubscription(Subscription):
    """A handoff, followed by version."""

    __slots__ = ("_board", "_by", "_follower", "_seen", "_wants_payload", "_watch")

    def __init__(
        self,
        wish: FollowHandoff,
        by: Mover,
        board: Board[HandoffSeen],
        watch: Watch[HandoffSeen],
        mark_dirty: Callable[[Subscription], None],
    ) -> None:
        super().__init__(wish.id, mark_dirty)
        self._by: Mover = by
        self._board = board
        self._watch = watch
        self._seen: HandoffSeen | None = None
        self._wants_payload = wish.wants_payload
        self._follower = HandoffFollower(wish.after)

    def tell(self) -> list[bytes]:
        """Every history entry that the client lacks, `live` once, `end` last."""
        steps = self._follower.steps(self._watch.seen)
        self._seen = self._watch.seen or self._seen
        told = [self._frame(step, self._seen) for step in steps if self._seen is not None]
        self.is_over = self._follower.is_over
        return told

    def leave(self) -> None:
        """Follow no longer."""
        self._board.leave(self._watch, self.ring)

    def _frame(self, step: Step, seen: HandoffSeen) -> bytes:
        left = seen.left()
        shared = self._watch.encoded
        key = (self.id, self._by, self._wants_payload, step, seconds_down(left))
        frame = shared.get(key)
        if frame is None:
            frame = text_frame(self._encode(step, seen, left))
            if len(shared) < _SHARED_FRAMES and not isinstance(step, Snapshot):
                shared[key] = frame
        return frame

    def _encode(self, step: Step, seen: HandoffSeen, left: int) -> bytes:
        match step:
            case Snapshot(is_reset):
                return frames.snap(
                    self.id, seen.record, self._by, left, is_reset=is_reset, wants_payload=self._wants_payload
                )
            case Change(version):
                return frames.chg(self.id, seen.record, version, left)
            case Live():
                return frames.live(self.id, seen.record)
            case End(reason):
                return frames.end(self.id, seen.record, reason)
        assert_never(step)


class LeaseSubscription(Subscription):
    """A lease, followed by how it stands."""

    __slots__ = ("_board", "_follower", "_watch")

    def __init__(
        self, id: str, board: Board[LeaseSeen], watch: Watch[LeaseSeen], mark_dirty: Callable[[Subscription], None]
    ) -> None:
        super().__init__(id, mark_dirty)
        self._board = board
        self._watch = watch
        self._follower = LeaseFollower()

    def tell(self) -> list[bytes]:
        """How it stands, if that is not what was told last."""
        seen = self._watch.seen
        if seen is None:
            return []
        is_new, cause = self._follower.tell(seen)
        if not is_new:
            return []
        return [text_frame(frames.lease(self.id, status=seen.status, fence=seen.fence, left=seen.left(), cause=cause))]

    def leave(self) -> None:
        """Follow no longer."""
        self._board.leave(self._watch, self.ring)


class FeedSubscription(Subscription):
    """A feed of the operator's, told at most four times a second.

    It looks at each heartbeat too, since the end of a session rings nobody.
    """

    beats = True

    __slots__ = ("_feed", "_hub", "_name", "_quiet_until", "_timer")

    def __init__(self, wish: FollowFeed, feed: Feed, hub: Hub, mark_dirty: Callable[[Subscription], None]) -> None:
        super().__init__(wish.id, mark_dirty)
        self._name = wish.feed
        self._feed = feed
        self._hub = hub
        self._quiet_until = 0.0
        self._timer: gevent.Greenlet[[], None] | None = None
        hub.join(feed.topic, self.ring)

    def tell(self) -> list[bytes]:
        """What is new. Raises RightsEnded."""
        quiet = self._quiet_until - monotonic()
        if quiet > 0:
            self._ring_in(quiet)
            return []
        self._quiet_until = monotonic() + _FEED_PAUSE_SECONDS
        try:
            members = self._feed.look()
        except Unavailable as away:
            self._ring_in(away.retry_after_seconds)
            return []
        return [] if members is None else [text_frame(frames.feed(self.id, self._name, members))]

    def leave(self) -> None:
        """Follow no longer."""
        self._hub.leave(self._feed.topic, self.ring)
        if self._timer:
            self._timer.kill(block=False)

    def _ring_in(self, seconds: float) -> None:
        if not self._timer:
            self._timer = gevent.spawn_later(seconds, self.ring)


def subscribe(
    desk: Desk,
    rights: Rights,
    wish: FollowHandoff | FollowLease | FollowFeed,
    mark_dirty: Callable[[Subscription], None],
) -> Subscription | Refusal:
    """Make what is wished for, listening already and marked to be told; or say why not."""
    if rights.only_handoff is not None and getattr(wish, "handoff_id", None) != rights.only_handoff:
        return Refusal(StreamCode.OTHER_HANDOFF, "this address follows one handoff; /services/v1/stream follows any")
    try:
        match wish:
            case FollowHandoff():
                return _follow_handoff(desk, rights, wish, mark_dirty)
            case FollowLease():
                return _follow_lease(desk, wish, mark_dirty)
            case FollowFeed():
                return _follow_feed(desk, rights, wish, mark_dirty)
    except Unavailable as away:
        return Refusal(Code.UNAVAILABLE, retry_after_ms=away.retry_after_seconds * 1000)
    assert_never(wish)


def _follow_handoff(
    desk: Desk, rights: Rights, wish: FollowHandoff, mark_dirty: Callable[[Subscription], None]
) -> Subscription | Refusal:
    token = wish.token if wish.token is not None else rights.bearer
    if token is None:
        return Refusal(Code.TOKEN_REQUIRED, "put the handoff's token into the sub, or into Authorization at the start")
    if not HANDOFF_ID.fullmatch(wish.handoff_id):
        return Refusal(Code.NOT_FOUND)
    board = desk.handoff_board
    with board.listening(wish.handoff_id) as watch:  # listen first, then look
        opened = desk.handoffs.open(handoff_id=wish.handoff_id, token=token)
        if opened is None:
            return Refusal(Code.NOT_FOUND)
        by, seen = opened
        subscription = HandoffSubscription(wish, by, board, watch, mark_dirty)
        watch.rings.add(subscription.ring)
        board.show(watch, seen)
        mark_dirty(subscription)
    return subscription


def _follow_lease(desk: Desk, wish: FollowLease, mark_dirty: Callable[[Subscription], None]) -> Subscription:
    board = desk.lease_board
    digest = key_hash(wish.key, wish.namespace).hex()
    with board.listening(digest) as watch:
        subscription = LeaseSubscription(wish.id, board, watch, mark_dirty)
        watch.rings.add(subscription.ring)
        board.look(watch, subscription.ring)
    return subscription


def _follow_feed(
    desk: Desk, rights: Rights, wish: FollowFeed, mark_dirty: Callable[[Subscription], None]
) -> Subscription | Refusal:
    feed = desk.open_feed(wish.feed, rights.cookies)
    if feed is None:
        return Refusal(StreamCode.OPERATOR_REQUIRED, "this feed is for a signed-in operator")
    subscription = FeedSubscription(wish, feed, desk.hub, mark_dirty)
    mark_dirty(subscription)
    return subscription
