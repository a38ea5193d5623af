"""A SQLAlchemy Core statement, compiled once for each dialect.

Compiling costs far more than running a short statement, so a hot path compiles nothing: the text is made at
the first use and kept for the life of the process. Parameters are always named.
"""

from collections.abc import Callable

from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Dialect
from sqlalchemy.sql.expression import ClauseElement

Value = int | bytes | str | None
Row = tuple[object, ...]

_DIALECTS: dict[str, Dialect] = {
    "sqlite": sqlite.dialect(paramstyle="named"),
    "postgresql": postgresql.psycopg.dialect(),  # type: ignore[no-untyped-call]
}


class Statement:
    """One statement. Give the expression, or a function of the dialect's name where the two engines differ."""

    def __init__(self, expression: ClauseElement | Callable[[str], ClauseElement]) -> None:
        self._expression = expression
        self._texts: dict[str, str] = {}

    def text(self, dialect: str) -> str:
        """The SQL text for `sqlite` (`:name`) or `postgresql` (`%(name)s`)."""
        text = self._texts.get(dialect)
        if text is None:
            expression = self._expression
            if not isinstance(expression, ClauseElement):
                expression = expression(dialect)
            text = str(expression.compile(dialect=_DIALECTS[dialect]))
            self._texts[dialect] = text
        return text
