"""The use cases of people: sign in, sign out, the first link, and who may sign in at all."""

from collections.abc import Sequence

from app import tokens
from app.core import person as core
from app.core.instants import SECOND, seconds_up
from app.core.person import Person, Right, Session
from app.services.audit import note
from app.services.passwords import HereAndNow, Passwords
from app.services.slowdown import Slowdown
from app.storage import person as storage
from app.storage.engine import Engine, Reader, Transaction
from app.tokens import Kind

SignInOutcome = core.SignedIn | core.SignInRefused | core.SignInPaused
FirstOutcome = core.SignedIn | core.CodeRefused | core.PersonMalformed | core.NameTaken | core.SignInPaused
AddOutcome = Person | core.PersonMalformed | core.NameTaken

COMMAND_LINE = "command line"
"""The actor of what is done by `fencepost-server operator`."""


class People:
    """Those who may sign in, and their sessions."""

    def __init__(self, engine: Engine, passwords: Passwords | None = None, slowdown: Slowdown | None = None) -> None:
        self._engine = engine
        self._passwords: Passwords = passwords or HereAndNow()
        self._slowdown = slowdown or Slowdown()

    def sign_in(self, *, name: str, password: str, address: str) -> SignInOutcome:
        """Try a name and a password from an address. A wrong name takes as long as a wrong password.

        Raises Unavailable, LineFull.
        """
        keys = _keys(name, address)
        wait = self._slowdown.begin(*keys)
        if wait > 0:
            return core.SignInPaused(seconds_up(round(wait * SECOND)))
        known = self._engine.read(lambda reader: storage.find(reader, name)) if _is_speakable(name) else None
        if not self._passwords.fits(password, None if known is None else known.password) or known is None:
            return core.SignInRefused()
        token = tokens.mint(Kind.SESSION)

        def operation(tx: Transaction) -> SignInOutcome:
            person = storage.find(tx, name)
            if person is None or person.password != known.password:
                return core.SignInRefused()
            self._open(tx, token, person, "sign-in")
            return core.SignedIn(token, person)

        outcome = self._engine.run(operation)
        if isinstance(outcome, core.SignedIn):
            self._slowdown.succeeded(*keys)
        return outcome

    def sign_in_first(self, *, code: str, name: str, password: str, address: str) -> FirstOutcome:
        """Become the first operator with a printed code. Raises Unavailable, LineFull."""
        keys = _keys("sign-in code", address)
        wait = self._slowdown.begin(*keys)
        if wait > 0:
            return core.SignInPaused(seconds_up(round(wait * SECOND)))
        code_hash = tokens.digest("sign-in-code", code)
        if not self._engine.read(lambda reader: _is_code_good(storage.code_end(reader, code_hash), reader.now())):
            return core.CodeRefused()
        malformed = core.judge(name, password)
        if malformed is not None:
            self._slowdown.succeeded(*keys)
            return malformed
        encoded, token = self._passwords.hashed(password), tokens.mint(Kind.SESSION)

        def operation(tx: Transaction) -> FirstOutcome:
            storage.lock_gate(tx)
            now = tx.now()
            if storage.operators(tx) or not _is_code_good(storage.code_end(tx, code_hash), now):
                return core.CodeRefused()
            person = Person(name, "operator", encoded, now)
            if not storage.add(tx, person):
                return core.NameTaken()
            storage.drop_codes(tx)
            note(tx, actor=name, action="operator.add", subject=name, detail="by the first sign-in link")
            self._open(tx, token, person, "sign-in")
            return core.SignedIn(token, person)

        outcome = self._engine.run(operation)
        if isinstance(outcome, core.SignedIn):
            self._slowdown.succeeded(*keys)
        return outcome

    def first_code(self, start: str) -> str | None:
        """A code for the first sign-in, to be printed by this start of a server; None when there is an operator, or
        another worker of this start has printed one."""
        code = tokens.mint(Kind.SIGN_IN)
        start_hash = tokens.digest("sign-in-start", start)

        def operation(tx: Transaction) -> str | None:
            storage.lock_gate(tx)
            if storage.operators(tx) or storage.has_code_of(tx, start_hash):
                return None
            expires_at = tx.now() + core.CODE_SECONDS * SECOND
            storage.keep_code(tx, tokens.digest("sign-in-code", code), start_hash, expires_at)
            return code

        return self._engine.run(operation)

    def awaits_the_first(self) -> bool:
        """Whether there is no operator yet, so that a sign-in code is asked for."""
        return self._engine.read(lambda reader: storage.operators(reader) == 0)

    def session(self, token: str) -> Session | None:
        """Whose live session this token is (P1, P2)."""
        return self.session_now(token)[0]

    def session_now(self, token: str) -> tuple[Session | None, int]:
        """The same, and the instant of the look."""
        token_hash = tokens.digest("session", token)

        def query(reader: Reader) -> tuple[Session | None, int]:
            found, now = storage.find_session(reader, token_hash), reader.now()
            return (None if found is None or now >= found.expires_at else found), now

        return self._engine.read(query)

    def sign_out(self, token: str) -> None:
        """End this session, on the server."""
        token_hash = tokens.digest("session", token)

        def operation(tx: Transaction) -> None:
            found = storage.find_session(tx, token_hash)
            storage.end_session(tx, token_hash)
            if found is not None:
                note(tx, actor=found.person.name, action="sign-out")

        self._engine.run(operation)

    def add(self, *, name: str, password: str, right: Right) -> AddOutcome:
        """Let somebody sign in."""
        malformed = core.judge(name, password)
        if malformed is not None:
            return malformed
        encoded = self._passwords.hashed(password)

        def operation(tx: Transaction) -> AddOutcome:
            storage.lock_gate(tx)
            person = Person(name, right, encoded, tx.now())
            if not storage.add(tx, person):
                return core.NameTaken()
            if right == "operator":
                storage.drop_codes(tx)
            note(tx, actor=COMMAND_LINE, action="operator.add", subject=name, detail=right)
            return person

        return self._engine.run(operation)

    def remove(self, name: str) -> bool:
        """Let somebody sign in no more, and end their sessions. False when nobody has this name."""

        def operation(tx: Transaction) -> bool:
            was_there = storage.remove(tx, name)
            if was_there:
                note(tx, actor=COMMAND_LINE, action="operator.remove", subject=name)
            return was_there

        return self._engine.run(operation)

    def every(self) -> Sequence[Person]:
        """Everybody who may sign in, by name."""
        return self._engine.read(storage.every)

    def _open(self, tx: Transaction, token: str, person: Person, action: str) -> None:
        storage.open_session(tx, tokens.digest("session", token), person.name, core.session_end(tx.now()))
        note(tx, actor=person.name, action=action)


def _keys(name: str, address: str) -> tuple[str, str]:
    return "name:" + name[:80], "address:" + address


def _is_speakable(name: str) -> bool:
    return core.judge(name, "x" * core.LEAST_PASSWORD) is None


def _is_code_good(end: int | None, now: int) -> bool:
    return end is not None and now < end
