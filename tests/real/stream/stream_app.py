"""The real stream over handoffs and leases in memory, for tests of the socket itself: gunicorn's target.

The process is told what to do over plain routes. `TEST_PACE` (JSON) changes the times of a socket.
"""

import gc
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import gevent
import gevent.monkey

gevent.monkey.patch_all()

from flask import Blueprint, Response, jsonify, request  # noqa: E402

from app.clock import SteadyClock, monotonic  # noqa: E402
from app.core.handoff import Entry, HandoffRecord, Moved, Mover, Offer, Wish, create, move  # noqa: E402
from app.core.machine import Machine, declare  # noqa: E402
from app.push.board import Board  # noqa: E402
from app.push.deadlines import Deadlines  # noqa: E402
from app.push.hub import Hub  # noqa: E402
from app.push.seats import Seats  # noqa: E402
from app.push.sources import Feed, FeedName, HandoffSeen, LeaseSeen, RightsEnded  # noqa: E402
from app.services.lease import key_hash  # noqa: E402
from app.services.ports import Unavailable  # noqa: E402
from app.web.conversation import Conversation, Desk, Pace  # noqa: E402
from app.web.edge import AddressPolicy, Edge, install  # noqa: E402
from app.web.frames import text_frame  # noqa: E402
from app.web.lean import LeanFlask  # noqa: E402
from app.web.log import Pen, RequestLog  # noqa: E402
from app.web.sock import Library, ReaderGreenlet, add_socket, show_guarded_socket  # noqa: E402
from app.web.socket import GuardedSocket  # noqa: E402
from app.web.stream import blueprint  # noqa: E402
from app.web.subscription import Subscription  # noqa: E402
from app.wire.origins import Origins  # noqa: E402

OF_A_SOCKET = (ReaderGreenlet, GuardedSocket, Conversation, Subscription)
"""A socket's greenlets hold these; a greenlet itself is not seen by the collector while it runs."""


class Memory:
    """Handoffs (tokens `o…`/`r…` + id) and leases in dicts; looks take a moment, as a database does."""

    def __init__(self) -> None:
        self.records: dict[str, HandoffRecord] = {}
        self.leases: dict[str, LeaseSeen] = {}
        self.looks = 0

    def open(self, *, handoff_id: str, token: str) -> tuple[Mover, HandoffSeen] | None:
        gevent.sleep(0.0005)
        record = self.records.get(handoff_id)
        by: Mover | None = {"o": "owner", "r": "receiver"}.get(token[:1])  # type: ignore[assignment]
        if record is None or by is None or token[1:] != handoff_id:
            return None
        return by, HandoffSeen(record, clock.now())

    def look(self, handoff_ids: Sequence[str]) -> Mapping[str, HandoffSeen]:
        self.looks += 1
        gevent.sleep(0.0005)
        return {id: HandoffSeen(self.records[id], clock.now()) for id in handoff_ids if id in self.records}

    def look_at_leases(self, digests: Sequence[str]) -> Mapping[str, LeaseSeen]:
        gevent.sleep(0.0005)
        free = LeaseSeen("free", None, None, None, clock.now())
        return {digest: self.leases.get(digest, free) for digest in digests}


class Counter(Feed):
    """An operator's feed that counts its looks."""

    topic = "feed:handoffs"

    def __init__(self) -> None:
        self._count = 0

    def look(self) -> Mapping[str, object] | None:
        self._count += 1
        if self._count == 3:
            raise Unavailable("a moment", committed="no")
        if self._count > 4:
            raise RightsEnded
        return {"count": self._count}


def open_feed(name: FeedName, cookies: Mapping[str, str]) -> Feed | None:
    return Counter() if cookies.get("session") == "operator" else None


clock = SteadyClock()
hub = Hub()
deadlines = Deadlines(clock, hub)
memory = Memory()
seats = Seats(int(os.environ.get("TEST_SEATS", "20000")))
pace = Pace(**json.loads(os.environ.get("TEST_PACE", "{}")))
desk = Desk(
    hub=hub,
    clock=clock,
    handoffs=memory,
    handoff_board=Board("handoff:", hub, deadlines, memory.look),
    lease_board=Board("lease:", hub, deadlines, memory.look_at_leases),
    open_feed=open_feed,
    pace=pace,
)


class Application(LeanFlask):
    """What the server process asks of an application."""

    def fatal_reason(self) -> str | None:
        """Nothing ever."""
        return None

    def stop(self) -> None:
        """On SIGTERM."""
        hub.stop()

    def close(self) -> None:
        """At the end."""
        deadlines.stop()


application = Application("stream_app")
edge = Edge(None, AddressPolicy("off", 0), body_deadline_seconds=5)  # type: ignore[arg-type]
install(application, RequestLog("text", "warning", Pen().write))
application.register_blueprint(
    blueprint(application, edge, seats, Origins(["https://fence.example", "http://extra.example:8080"]), desk)
)


@application.post("/test/handoff")
def make() -> Any:
    """Create some: {"count", "payload_size", "ttl_seconds", "states"}; answers their ids."""
    asked = request.get_json()
    machine = declare(asked.get("states"))
    assert isinstance(machine, Machine)
    ids = []
    for _ in range(asked.get("count", 1)):
        handoff_id = os.urandom(16).hex()
        payload = json.dumps("x" * asked.get("payload_size", 3)).encode()
        offer = Offer(handoff_id, b"o" * 32, b"r" * 32, machine, payload, ttl_seconds=asked.get("ttl_seconds", 600))
        memory.records[handoff_id] = create(offer, clock.now())
        ids.append(handoff_id)
    return jsonify(ids)


@application.post("/test/move")
def moves() -> Any:
    """Move each of `ids` one state on, with a note; answers the monotonic instant of each commit."""
    asked = request.get_json()
    at = []
    for handoff_id in asked["ids"]:
        record = memory.records[handoff_id]
        to = record.machine.transitions[record.state][0]
        moved = move(record, Wish("owner", record.state, to, note=asked.get("note")), clock.now())
        assert isinstance(moved, Moved), moved
        memory.records[handoff_id] = moved.record
        at.append(monotonic())
        hub.ring([f"handoff:{handoff_id}", "feed:handoffs"])
    return jsonify(at)


@application.post("/test/forget")
def forget() -> Any:
    """As the sweep does."""
    for handoff_id in request.get_json()["ids"]:
        del memory.records[handoff_id]
        hub.ring([f"handoff:{handoff_id}"])
    return jsonify(True)


@application.post("/test/shrink")
def shrink() -> Any:
    """As a restored backup does: take the last entry away."""
    record = memory.records[request.get_json()["id"]]
    history: tuple[Entry, ...] = record.history[:-1]
    memory.records[record.handoff_id] = HandoffRecord(record.offer, record.created_at, record.expires_at, history)
    return jsonify(True)


@application.post("/test/lease")
def lease() -> Any:
    """Set a lease: {"namespace", "key", "status", "fence", "seconds", "cause"}."""
    asked = request.get_json()
    digest = key_hash(asked["key"], asked["namespace"]).hex()
    ends_at = None if asked.get("seconds") is None else clock.now() + round(asked["seconds"] * 1e6)
    memory.leases[digest] = LeaseSeen(asked["status"], asked["fence"], ends_at, asked["cause"], clock.now())
    hub.ring([f"lease:{digest}"])
    return jsonify(digest)


@application.get("/test/counts")
def counts() -> Any:
    """What must come back to where it was."""
    gc.collect()
    resident = int(Path("/proc/self/statm").read_text().split()[1]) * 4096
    return jsonify(
        descriptors=len(os.listdir("/proc/self/fd")),
        objects=sum(isinstance(thing, OF_A_SOCKET) for thing in gc.get_objects()),
        topics=len(hub.listened()),
        watched=len(desk.handoff_board) + len(desk.lease_board),
        seats=seats.taken,
        looks=memory.looks,
        resident=resident,
    )


@application.get("/test/tick")
def tick() -> Response:
    return Response("ok")


def blast(library: Library) -> None:
    """Send numbered frames, most of 16 KiB, as fast as the peer takes them, until it hangs up."""
    number = 0
    sizes = (16384, 10, 16384, 200, 16384, 70000)
    try:
        while library.connected:
            size = sizes[number % len(sizes)]
            library.sock.write(text_frame(json.dumps({"n": number, "fill": chr(97 + number % 26) * size}).encode()))
            number += 1
            if number % 8 == 0:
                gevent.sleep(0)
    except ConnectionError:
        return


def unguarded(view: Any, arguments: Any) -> Response:
    show_guarded_socket()
    return view(**arguments)


test_routes = Blueprint("test", __name__)
add_socket(test_routes, "/test/blast", unguarded, blast)
application.register_blueprint(test_routes)
