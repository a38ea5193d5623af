"""Audit and Settings: what people did, how the server was set up."""

import json
import re
from collections.abc import Iterator
from dataclasses import asdict
from urllib.parse import urlencode

from flask import Blueprint, Response

from app.dashboard import export
from app.dashboard.gate import Gate, Page, Visit
from app.services.audit import FIRST_PAGE, Audit
from app.settings import ROWS, Settings
from app.wire.reply import iso

_BEFORE = re.compile(r"(\d{1,18})\.([0-9a-f]{32})", re.ASCII)


class Records:
    """The pages."""

    def __init__(self, settings: Settings, audit: Audit) -> None:
        self._settings = settings
        self._audit = audit

    def audit(self, visit: Visit) -> Page:
        """Who did what, the newest first."""
        place = _BEFORE.fullmatch(visit.query.get("before", ""))
        before = FIRST_PAGE if place is None else (int(place.group(1)), place.group(2))
        page = self._audit.page(before=before)
        older = None if page.older is None else urlencode({"before": "{}.{}".format(*page.older)})
        words = {"title": "Audit", "lines": page.lines, "older": older, "is_first": place is None}
        return Page("audit.html", words)

    def audit_lines(self, visit: Visit) -> Response:
        """All of it as JSON lines."""
        return export.response(self._every_line(), "application/jsonl", "audit.jsonl")

    def settings(self, visit: Visit) -> Page:
        """Every setting, its value and where it came from; secrets only by their being set."""
        rows = [
            (
                row,
                "set" if row.secret and self._value(row.field) else _plain(self._value(row.field)),
                self._source(row.variable),
            )
            for row in ROWS
        ]
        return Page("settings.html", {"title": "Settings", "rows": rows})

    def _value(self, name: str) -> object:
        return getattr(self._settings, name)

    def _source(self, variable: str) -> str:
        return self._settings.sources[variable]

    def _every_line(self) -> Iterator[bytes]:
        before: tuple[int, str] | None = FIRST_PAGE
        yield b""  # an audit without lines is an empty file
        while before is not None:
            page = self._audit.page(before=before, most=export.ROWS_AT_ONCE)
            for line in page.lines:
                yield json.dumps({**asdict(line), "at": iso(line.at)}).encode("ascii") + b"\n"
            before = page.older


def _plain(value: object) -> str:
    if value is None or value == ():
        return "none"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, tuple):
        return (
            ":".join(map(str, value)) if len(value) == 2 and isinstance(value[1], int) else ", ".join(map(str, value))
        )
    return f"{value:g}" if isinstance(value, float) else str(value)


def add_routes(routes: Blueprint, gate: Gate, audit: Audit) -> None:
    """/audit and its export, /settings."""
    records = Records(gate.settings, audit)
    gate.page(routes, "/audit", records.audit)
    gate.page(routes, "/audit/export.jsonl", records.audit_lines)
    gate.page(routes, "/settings", records.settings)
