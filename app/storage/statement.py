"""A SQLAlchemy Core statement, compiled once for each dialect.

Compiling costs far more than running a short statement, so a hot path compiles nothing: the text is made at
the first use and kept for the life of the process. Callers always name parameters. SQLite gets them by position
all the same: its Python driver lets go of the interpreter once for each name it looks up, and under load each
time the event loop takes it. Literals inside the expression travel along.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from sqlalchemy import Table, bindparam
from sqlalchemy.dialects import sqlite
from sqlalchemy.engine import Dialect
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.expression import ClauseElement

if TYPE_CHECKING:
    from sqlalchemy.dialects import postgresql

Value = int | bytes | str | None | list[bytes] | list[str]
"""What a parameter may be; a list only on PostgreSQL, for `= ANY`."""
Row = tuple[object, ...]


@cache
def _dialect(name: str) -> Dialect:
    """SQLAlchemy's dialect, PostgreSQL's imported where it is used: without it a start is noticeably quicker."""
    if name == "sqlite":
        return sqlite.dialect(paramstyle="qmark")
    from sqlalchemy.dialects.postgresql import psycopg

    return psycopg.dialect()  # type: ignore[no-untyped-call]


class Compiled:
    """The text for one dialect, the names in the order of its marks, and the values the expression brings itself."""

    __slots__ = ("literals", "names", "text")

    def __init__(self, expression: ClauseElement, dialect: Dialect) -> None:
        compiled = expression.compile(dialect=dialect)
        assert isinstance(compiled, SQLCompiler)
        if "__[POSTCOMPILE_" in compiled.string:
            raise ValueError("a list in in_() has no fixed text: give in_() one bindparam or literal_column per member")
        self.text = compiled.string
        values = compiled.construct_params(_check=False)
        required = {name for name, bind in compiled.binds.items() if bind.required}
        self.literals = {name: value for name, value in values.items() if name not in required}
        self.names: tuple[str, ...] = tuple(compiled.positiontup or ())

    def named(self, parameters: Mapping[str, Value]) -> Mapping[str, Value]:
        """The parameters together with the literals, for a driver that binds by name."""
        return {**self.literals, **parameters} if self.literals else parameters

    def positional(self, parameters: Mapping[str, Value]) -> list[Value]:
        """The values in the order of the marks. A parameter that was not given is a KeyError."""
        if self.literals:
            parameters = {**self.literals, **parameters}
        return [parameters[name] for name in self.names]


class Statement:
    """One statement. Give the expression, or a function of the dialect's name where the two engines differ."""

    __slots__ = ("_compiled", "_expression")

    def __init__(self, expression: ClauseElement | Callable[[str], ClauseElement]) -> None:
        self._expression = expression
        self._compiled: dict[str, Compiled] = {}

    def compiled(self, dialect: str) -> Compiled:
        """What to send to `sqlite` (marks `?`) or `postgresql` (marks `%(name)s`)."""
        compiled = self._compiled.get(dialect)
        if compiled is None:
            expression = self._expression
            if not isinstance(expression, ClauseElement):
                expression = expression(dialect)
            compiled = Compiled(expression, _dialect(dialect))
            self._compiled[dialect] = compiled
        return compiled

    def text(self, dialect: str) -> str:
        """The SQL text for that dialect."""
        return self.compiled(dialect).text


def insert_if_absent(dialect: str, table: Table, constants: Mapping[str, Value]) -> ClauseElement:
    """An insert that does nothing where the primary key exists: key columns by name, the rest from `constants`."""
    construct = _insert(dialect, table)
    keys: dict[str, Any] = {column.name: bindparam(column.name) for column in table.primary_key}
    return construct.values({**constants, **keys}).on_conflict_do_nothing()


def insert_unless_taken(dialect: str, table: Table) -> ClauseElement:
    """Insert a whole row, every column a parameter of its own name; nothing where a unique value is taken."""
    construct = _insert(dialect, table)
    return construct.values({column.name: bindparam(column.name) for column in table.columns}).on_conflict_do_nothing()


def upsert(dialect: str, table: Table) -> ClauseElement:
    """Write a whole row, every column a parameter of its own name, over the one with the same primary key."""
    construct = _insert(dialect, table).values({column.name: bindparam(column.name) for column in table.columns})
    written = {column.name: construct.excluded[column.name] for column in table.columns if not column.primary_key}
    return construct.on_conflict_do_update(index_elements=list(table.primary_key), set_=written)


def _insert(dialect: str, table: Table) -> "sqlite.Insert | postgresql.Insert":
    if dialect == "sqlite":
        return sqlite.insert(table)
    from sqlalchemy.dialects import postgresql as dialects_own

    return dialects_own.insert(table)
