"""Reads of a receiver's answer what matters: its status, and `Retry-After` when it is no success.

At most `MOST_READ` bytes are taken from the connection, whatever the answer says of its own length. A success is known
by its first line and waits for nothing more. Interim answers (1xx) are passed over.
"""

import re
from collections.abc import Callable
from email.utils import parsedate_to_datetime

from app.core.outbox import Answered

MOST_READ = 1_024

_STATUS = re.compile(rb"HTTP/1\.[01] ([1-5][0-9]{2})(?: [^\r\n]*)?\r?\n")
_END = re.compile(rb"\r?\n\r?\n")
_RETRY_AFTER = re.compile(rb"\nretry-after:[ \t]*([^\r\n]*?)[ \t]*\r?\n", re.IGNORECASE)


def read_answer(receive: Callable[[int], bytes], *, now: float) -> Answered | None:
    """The answer that `receive` yields piece by piece; None when it is no HTTP. `now`: Unix seconds, for dates."""
    head = b""
    room = MOST_READ
    while room:
        piece = receive(room)
        room -= len(piece)
        head = _past_interim(head + piece)
        status = _STATUS.match(head)
        is_whole = not piece or not room or _END.search(head) is not None
        if status is not None and (is_whole or status[1].startswith(b"2")):
            return _answered(int(status[1]), head, now)
        if not piece:
            return None
    return None


def _past_interim(head: bytes) -> bytes:
    while (status := _STATUS.match(head)) and status[1].startswith(b"1") and status[1] != b"101":
        end = _END.search(head)
        if end is None:
            break
        head = head[end.end() :]
    return head


def _answered(status: int, head: bytes, now: float) -> Answered | None:
    if status < 200:
        return None
    end = _END.search(head)
    found = _RETRY_AFTER.search(head[: end.end()] if end else head)
    return Answered(status, None if found is None else _seconds(found[1].decode("latin-1"), now))


def _seconds(text: str, now: float) -> int | None:
    """Both forms of Retry-After: whole seconds, or a date."""
    if text.isascii() and text.isdigit():
        return int(text[:9])
    try:
        return max(0, round(parsedate_to_datetime(text).timestamp() - now))
    except (ValueError, OverflowError):
        return None
