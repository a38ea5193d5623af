"""A look each second at everything that somebody here waits for or follows, in one query for each kind.

It is what makes hints between processes hints: a row that differs from what was last seen rings its topic, so a lost
hint costs about a second and never an event. What was never seen before rings once, for it may have changed between
its listener's look and this one.
"""

import logging

import gevent

from app.push.hub import Hub
from app.storage.engine import Engine, Unavailable
from app.storage.statement import Row
from app.storage.watch import Kind, marks

_log = logging.getLogger("fencepost.bus")

_KINDS: tuple[Kind, ...] = ("lease", "handoff", "claim")
_MOST_AT_ONCE = 1_000


class Recheck:
    """The looks of one process. `every_seconds` is the longest that a lost hint delays anybody."""

    def __init__(self, engine: Engine, hub: Hub, *, every_seconds: float = 1.0) -> None:
        self._engine = engine
        self._hub = hub
        self._every = every_seconds
        self._seen: dict[str, Row | None] = {}
        self._greenlet: gevent.Greenlet[[], None] | None = None

    def start(self) -> None:
        """Begin."""
        self._greenlet = gevent.spawn(self._run)

    def stop(self) -> None:
        """End."""
        if self._greenlet is not None:
            self._greenlet.kill()

    def look(self) -> list[str]:
        """Look once; the topics that were rung. Raises Unavailable."""
        listened = self._hub.listened()
        still = set(listened)
        self._seen = {topic: mark for topic, mark in self._seen.items() if topic in still}
        moved = [topic for topic in listened if topic.startswith("feed:")]
        for kind in _KINDS:
            topics = [topic for topic in listened if topic.startswith(kind + ":")]
            for start in range(0, len(topics), _MOST_AT_ONCE):
                moved += self._moved(kind, topics[start : start + _MOST_AT_ONCE])
        self._hub.ring(moved)
        return moved

    def _moved(self, kind: Kind, topics: list[str]) -> list[str]:
        keys = {topic: topic.split(":", 1)[1] for topic in topics}
        found = self._engine.read(lambda reader: marks(reader, kind, list(keys.values())))
        moved = []
        for topic, key in keys.items():
            mark = found.get(key)
            if topic not in self._seen or self._seen[topic] != mark:
                self._seen[topic] = mark
                moved.append(topic)
        return moved

    def _run(self) -> None:
        while not self._hub.stopping:
            gevent.sleep(self._every)
            try:
                self.look()
            except Unavailable as away:
                _log.warning("looking for changes by other processes waits: %s", away.reason)
            except Exception:  # noqa: BLE001 - told in full, and the next turn tries again
                _log.exception("looking for changes by other processes failed and will be tried again")
