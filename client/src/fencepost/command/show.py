"""What people and programs see: one JSON object with --json, else a small table; a live countdown on a terminal.

Text that comes from others (holders, notes, payloads) is shown with its control characters made visible: a terminal
obeys them.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Any, TextIO

from fencepost._clock import steady

_MARKED = {"\u202a", "\u202b", "\u202c", "\u202d", "\u202e", "\u2066", "\u2067", "\u2068", "\u2069", "\u2028", "\u2029"}


def visible(text: str) -> str:
    """The text with everything that is not printed made visible."""
    return "".join(c if c.isprintable() and c not in _MARKED else c.encode("unicode_escape").decode() for c in text)


def show(members: Mapping[str, Any], *, as_json: bool) -> None:
    """Print members: a JSON object on one line, or a line each."""
    if as_json:
        sys.stdout.write(json.dumps(members, ensure_ascii=False, default=_number) + "\n")
        return
    width = max((len(name) for name in members), default=0)
    for name, value in members.items():
        if value is not None:
            sys.stdout.write(f"{name.replace('_', ' '):<{width}}  {_cell(name, value)}\n")


def table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> None:
    """Print rows under their headings."""
    cells = [[_cell(name, row.get(name)) for name in columns] for row in rows]
    widths = [max(len(line[i]) for line in [list(columns), *cells]) for i in range(len(columns))]
    for line in [list(columns), *cells]:
        sys.stdout.write("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() + "\n")


def say(sentence: str) -> None:
    """One sentence for people, on standard error; where that cannot be written, the exit code alone has to do."""
    try:
        sys.stderr.write(f"fencepost: {visible(sentence)}\n")
        sys.stderr.flush()
    except OSError:
        write_no_more(sys.stderr)


def write_no_more(stream: TextIO) -> None:
    """What is still buffered has nowhere to go; the interpreter must not try again at its end."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream.fileno())
    os.close(null)


@contextmanager
def countdown(what: str, seconds: float, *, is_quiet: bool = False) -> Iterator[None]:
    """While the block runs, show on a terminal how long it may still take."""
    if is_quiet or seconds < 1 or not sys.stderr.isatty():
        yield
        return
    is_over = threading.Event()
    give_up_at = steady() + seconds

    def tick() -> None:
        while not is_over.wait(1.0):
            left = max(0, int(give_up_at - steady()))
            sys.stderr.write(f"\r\x1b[K{visible(what)}: {left // 60:02d}:{left % 60:02d}")
            sys.stderr.flush()

    ticker = threading.Thread(target=tick, daemon=True)
    ticker.start()
    try:
        yield
    finally:
        is_over.set()
        ticker.join()
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()


def pause(seconds: float) -> None:
    """Wait between two looks."""
    time.sleep(seconds)


def instant(seconds: int) -> str:
    """Unix seconds for people, in UTC."""
    return time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(seconds))


def _cell(name: str, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) and name.endswith(("_at", "_at_timestamp")):
        return instant(value)
    if isinstance(value, str):
        return visible(value)
    return visible(json.dumps(value, ensure_ascii=False, default=_number)) if not isinstance(value, int) else str(value)


def _number(value: Any) -> Any:
    if isinstance(value, Decimal):
        return str(value)
    raise TypeError(type(value).__name__)
