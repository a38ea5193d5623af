"""Who did what in the dashboard. A line is written in the transaction of the deed, so there is one exactly when
the deed is durable; nothing here changes or removes a line."""

from dataclasses import dataclass

from app import tokens
from app.storage import audit as rows
from app.storage.audit import FIRST_PAGE, Line
from app.storage.engine import Engine, Transaction

__all__ = ["FIRST_PAGE", "Audit", "Line", "Page", "note"]


@dataclass(frozen=True, slots=True)
class Page:
    """Some lines, the newest first, and the place to go on from; None at the end."""

    lines: list[Line]
    older: tuple[int, str] | None


def note(tx: Transaction, *, actor: str, action: str, subject: str = "", detail: str = "") -> None:
    """Add a line about what this transaction does. `action` is a stable word such as `handoff.move`."""
    rows.append(tx, Line(tx.now(), tokens.mint_identifier(), actor, action, subject, detail))


class Audit:
    """Reads the lines."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def page(self, *, before: tuple[int, str] = FIRST_PAGE, most: int = 100) -> Page:
        """Up to so many lines before this place. Raises Unavailable."""
        found = self._engine.read(lambda reader: rows.page(reader, before=before, most=most + 1))
        lines = found[:most]
        return Page(lines, (lines[-1].at, lines[-1].audit_id) if len(found) > most else None)
