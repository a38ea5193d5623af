"""What a SQLite error says about the database, as opposed to the statement.

FULL and BUSY pass by themselves and leave nothing behind. After an input/output error or damage nothing that the
process remembers of the file can be trusted (a failed fsync may leave pages marked clean that never reached the
disk), so that the only way on is a restart from what is on the disk.
"""

import sqlite3
from enum import Enum


class Trouble(Enum):
    """Whose fault an error is, and what may be done about it."""

    NONE = "the statement's own"
    PASSING = "full or busy: nothing was written, try again"
    FATAL = "the file cannot be trusted any more"


_PASSING = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_NOMEM}
_OWN = {
    sqlite3.SQLITE_ERROR,
    sqlite3.SQLITE_CONSTRAINT,
    sqlite3.SQLITE_MISMATCH,
    sqlite3.SQLITE_MISUSE,
    sqlite3.SQLITE_RANGE,
    sqlite3.SQLITE_TOOBIG,
    sqlite3.SQLITE_INTERRUPT,
    sqlite3.SQLITE_ABORT,
}


def judge(fault: BaseException) -> Trouble:
    """Look at the primary result code; an error that has none is a mistake of the caller."""
    code = getattr(fault, "sqlite_errorcode", None)
    if not isinstance(fault, sqlite3.Error) or code is None:
        return Trouble.NONE
    primary = code & 0xFF
    if primary in _OWN:
        return Trouble.NONE
    return Trouble.PASSING if primary in _PASSING else Trouble.FATAL
