"""Those who wake together look once.

A move of a handoff with a thousand waiting callers wakes them all, and each has to look at the row again. A look that
was asked for but has not begun serves everyone who asks in the meantime: it begins after they were woken, so it sees
what woke them. One that has begun serves nobody new, and nothing is kept when it is over: this is no cache.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

from gevent.event import Event

from app.storage.engine import Engine, Reader

T = TypeVar("T")


class _Look(Generic[T]):
    def __init__(self) -> None:
        self.has_begun = False
        self.is_over = Event()
        self.found: T | None = None
        self.fault: Exception | None = None
        self.is_answered = False


class SharedLooks(Generic[T]):
    """Reads by name, each shared by those who ask for the same name before it begins."""

    def __init__(self, engine: Engine, query: Callable[[Reader, str], T]) -> None:
        self._engine = engine
        self._query = query
        self._waiting: dict[str, _Look[T]] = {}

    def look(self, name: str) -> T:
        """What the query finds for this name, read after this call was made. Raises Unavailable."""
        look = self._waiting.get(name)
        if look is None or look.has_begun:
            look = self._waiting[name] = _Look()
            self._lead(name, look)
        else:
            look.is_over.wait()
        if look.fault is not None:
            raise look.fault
        if not look.is_answered:  # whoever led it was stopped on the way
            return self.look(name)
        return look.found  # type: ignore[return-value]

    def _lead(self, name: str, look: _Look[T]) -> None:
        def query(reader: Reader) -> T:
            look.has_begun = True
            return self._query(reader, name)

        try:
            look.found = self._engine.read(query)
            look.is_answered = True
        except Exception as fault:  # noqa: BLE001 -- it belongs to everyone who waits for this look
            look.fault = fault
        finally:
            if self._waiting.get(name) is look:
                del self._waiting[name]
            look.is_over.set()
