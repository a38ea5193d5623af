"""People who sign in to the dashboard, and how far they may reach.

    first link ──▶ person ──name and password──▶ session ──12 hours, or sign-out──▶ over

Invariants, named by the tests that prove them:

P1  A session is live for 12 hours from its sign-in; nothing lengthens it. At the last instant it is over.
P2  A session reaches as far as its person does now: whoever is removed is out, whatever their cookie says.
P3  The sign-in link works only while there is no operator, once, and for a day.
P4  A name is short, visible ASCII: two people cannot have names that look alike on a page.
P5  Each failure makes the next try of that name, and of that address, wait longer, up to a minute; a success ends it
    for the name. Nobody is locked out for good, so nobody can lock another out for good.
"""

import re
from dataclasses import dataclass
from typing import Literal

from app.core.instants import DAY_SECONDS, SECOND

Right = Literal["viewer", "operator"]

SESSION_SECONDS = 12 * 3600
CODE_SECONDS = DAY_SECONDS
LEAST_PASSWORD, MOST_PASSWORD = 8, 512
FREE_FAILURES = 4
LONGEST_PAUSE_SECONDS = 60.0
FORGET_SECONDS = 900.0

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody who may sign in. `password` is the encoded argon2id hash."""

    name: str
    right: Right
    password: str
    added_at: int

    @property
    def may_act(self) -> bool:
        """Whether they may move handoffs and break leases, or only look."""
        return self.right == "operator"


@dataclass(frozen=True, slots=True)
class Session:
    """A signed-in person. `expires_at` is an instant in microseconds."""

    person: Person
    expires_at: int


@dataclass(frozen=True, slots=True)
class SignedIn:
    """The token to put into the cookie; it is shown nowhere else."""

    token: str
    person: Person


@dataclass(frozen=True, slots=True)
class SignInRefused:
    """Wrong name or password; nobody is told which."""


@dataclass(frozen=True, slots=True)
class SignInPaused:
    """Too many failures; nothing was tried. Come back after so many seconds."""

    retry_after_seconds: int


@dataclass(frozen=True, slots=True)
class CodeRefused:
    """The sign-in code is wrong, a day old, or there is an operator by now."""


@dataclass(frozen=True, slots=True)
class PersonMalformed:
    """A name or a password that cannot be taken; `error` says why in a sentence."""

    error: str


@dataclass(frozen=True, slots=True)
class NameTaken:
    """Somebody of this name is there already."""


def judge(name: str, password: str) -> PersonMalformed | None:
    """Whether a person may be called so and have this password (P4)."""
    if _NAME.fullmatch(name) is None:
        return PersonMalformed("A name is 1 to 64 letters, digits or . _ @ + -, and begins with a letter or a digit")
    if not LEAST_PASSWORD <= len(password) <= MOST_PASSWORD:
        return PersonMalformed(f"A password has {LEAST_PASSWORD} to {MOST_PASSWORD} characters")
    return None


def session_end(now: int) -> int:
    """When a session that begins now is over (P1)."""
    return now + SESSION_SECONDS * SECOND


def pause_seconds(failures: int) -> float:
    """How long after so many failures the next try has to wait (P5)."""
    beyond = failures - FREE_FAILURES
    return 0.0 if beyond <= 0 else min(LONGEST_PAUSE_SECONDS, 2.0 ** min(beyond, 10))
