"""Lists as files. They are sent while they are read, some hundred rows at a time, so that a long list needs no room.

A cell that a spreadsheet would take for a formula begins with an apostrophe: titles are hostile text there too.
"""

import csv
import io
import json
from collections.abc import Iterable, Iterator

from flask import Response

from app.services.overview import ListedHandoff
from app.wire.reply import iso

ROWS_AT_ONCE = 500
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
_COLUMNS = ("handoff_id", "title", "audience", "state", "standing", "version", "created_at", "changed_at", "expires_at")


def members(row: ListedHandoff, now: int) -> dict[str, object]:
    """A row by name."""
    standing = "ended" if row.is_ended else "expired" if now >= row.expires_at else "open"
    instants = (iso(row.created_at), iso(row.changed_at), iso(row.expires_at))
    found = (row.handoff_id, row.title, row.audience, row.state, standing, row.version, *instants)
    return dict(zip(_COLUMNS, found, strict=True))


def csv_lines(rows: Iterable[tuple[ListedHandoff, int]]) -> Iterator[bytes]:
    """A heading and a line for each row."""
    yield _line(_COLUMNS)
    for row, now in rows:
        yield _line(_cell(value) for value in members(row, now).values())


def json_lines(rows: Iterable[tuple[ListedHandoff, int]]) -> Iterator[bytes]:
    """One array, a row a line."""
    between = b"[\n"
    for row, now in rows:
        yield between + json.dumps(members(row, now)).encode("ascii")
        between = b",\n"
    yield b"[]\n" if between == b"[\n" else b"\n]\n"


def response(lines: Iterator[bytes], media: str, name: str) -> Response:
    """The file. Its first piece is made now, so that a store that is away is still told by a page."""
    first = next(lines)

    def content() -> Iterator[bytes]:
        yield first
        yield from lines

    made = Response(content(), mimetype=media)
    made.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    return made


def _cell(value: object) -> object:
    return "'" + value if isinstance(value, str) and value.startswith(_FORMULA) else value


def _line(cells: Iterable[object]) -> bytes:
    line = io.StringIO()
    csv.writer(line).writerow(["" if cell is None else cell for cell in cells])
    return line.getvalue().encode("utf-8")
