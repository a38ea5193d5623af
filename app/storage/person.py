"""People, their sessions, and the links that let the first of them in. Tokens and codes are digests here."""

from typing import cast

from sqlalchemy import bindparam, delete, func, insert, select

from app.core.person import Person, Right, Session
from app.storage.engine import Reader, Transaction
from app.storage.statement import Row, Statement, insert_if_absent, insert_unless_taken
from app.storage.tables import meta, person, session, sign_in_code

_COLUMNS = (person.c.name, person.c.role, person.c.password, person.c.added_at)

_ONE = Statement(select(*_COLUMNS).where(person.c.name == bindparam("name")))
_EVERY = Statement(select(*_COLUMNS).order_by(person.c.name))
_OPERATORS = Statement(select(func.count()).select_from(person).where(person.c.role == "operator"))
_ADD = Statement(lambda dialect: insert_unless_taken(dialect, person))
_REMOVE = Statement(delete(person).where(person.c.name == bindparam("known")))
_GATE = Statement(select(meta.c.number).where(meta.c.name == bindparam("name")))
_HOLD_GATE = Statement(lambda dialect: insert_if_absent(dialect, meta, {"number": 0}))

_OPEN = Statement(insert(session).values({column.name: bindparam(column.name) for column in session.columns}))
_SESSION = Statement(
    select(*_COLUMNS, session.c.expires_at)
    .join(session, session.c.name == person.c.name)
    .where(session.c.token_hash == bindparam("token_hash"))
)
_END = Statement(delete(session).where(session.c.token_hash == bindparam("known")))
_END_ALL = Statement(delete(session).where(session.c.name == bindparam("known")))
_LAPSED = Statement(
    select(session.c.token_hash)
    .where(session.c.expires_at <= bindparam("now"))
    .order_by(session.c.expires_at)
    .limit(bindparam("most"))
)

_CODE = Statement(select(sign_in_code.c.expires_at).where(sign_in_code.c.code_hash == bindparam("code_hash")))
_CODE_OF_START = Statement(select(func.count()).where(sign_in_code.c.start_hash == bindparam("start_hash")))
_KEEP_CODE = Statement(
    insert(sign_in_code).values({column.name: bindparam(column.name) for column in sign_in_code.columns})
)
_DROP_CODES = Statement(delete(sign_in_code))


def lock_gate(tx: Transaction) -> None:
    """Let nobody else decide who the first operator is before this transaction is over."""
    tx.lock(_GATE, _HOLD_GATE, name="person_gate")


def find(reader: Reader, name: str) -> Person | None:
    """Who has this name."""
    row = reader.one(_ONE, name=name)
    return None if row is None else _person(row)


def every(reader: Reader) -> list[Person]:
    """Everybody, by name."""
    return [_person(row) for row in reader.all(_EVERY)]


def operators(reader: Reader) -> int:
    """How many may act."""
    row = reader.one(_OPERATORS)
    return 0 if row is None else cast(int, row[0])


def add(tx: Transaction, added: Person) -> bool:
    """Store somebody. False, and nothing is stored, when the name is taken."""
    touched = tx.execute(
        _ADD, name=added.name, role=added.right, password=added.password.encode("ascii"), added_at=added.added_at
    )
    return touched > 0


def remove(tx: Transaction, name: str) -> bool:
    """Remove somebody and end their sessions. False when there is nobody of this name."""
    tx.write(_END_ALL, known=name)
    return tx.execute(_REMOVE, known=name) > 0


def open_session(tx: Transaction, token_hash: bytes, name: str, expires_at: int) -> None:
    """Remember a sign-in."""
    tx.write(_OPEN, token_hash=token_hash, name=name, expires_at=expires_at)


def find_session(reader: Reader, token_hash: bytes) -> Session | None:
    """Whose cookie it is, over or not."""
    row = reader.one(_SESSION, token_hash=token_hash)
    return None if row is None else Session(_person(row[:4]), cast(int, row[4]))


def end_session(tx: Transaction, token_hash: bytes) -> None:
    """Forget a sign-in."""
    tx.write(_END, known=token_hash)


def lapsed_sessions(reader: Reader, most: int) -> list[bytes]:
    """Sessions whose time is over, the oldest first."""
    return [cast(bytes, row[0]) for row in reader.all(_LAPSED, now=reader.now(), most=most)]


def drop_sessions(tx: Transaction, token_hashes: list[bytes]) -> int:
    """Forget these; how many."""
    return sum(tx.execute(_END, known=token_hash) for token_hash in token_hashes)


def code_end(reader: Reader, code_hash: bytes) -> int | None:
    """When a sign-in code ends; None for an unknown one."""
    row = reader.one(_CODE, code_hash=code_hash)
    return None if row is None else cast(int, row[0])


def has_code_of(reader: Reader, start_hash: bytes) -> bool:
    """Whether this start of a server has printed a link already."""
    row = reader.one(_CODE_OF_START, start_hash=start_hash)
    return row is not None and cast(int, row[0]) > 0


def keep_code(tx: Transaction, code_hash: bytes, start_hash: bytes, expires_at: int) -> None:
    """Remember a printed link."""
    tx.write(_KEEP_CODE, code_hash=code_hash, start_hash=start_hash, expires_at=expires_at)


def drop_codes(tx: Transaction) -> None:
    """No printed link works any more."""
    tx.write(_DROP_CODES)


def _person(row: Row) -> Person:
    name, right, password, added_at = row
    return Person(cast(str, name), cast(Right, right), cast(bytes, password).decode("ascii"), cast(int, added_at))
