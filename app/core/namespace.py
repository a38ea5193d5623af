"""Who owns a once-key namespace: whoever claimed in it first.

    (nobody's) ──first claim──▶ OWNED ──30 days without a claim──▶ (nobody's)
                                 │ ▲
                                 └─┘ rotate: another token, the old one stops at once

Invariants, named by the tests that prove them:

N1  Only a claim makes an owner; nothing else does, and nothing of a refused claim stays behind.
N2  Of many first claims one makes the owner. A namespace has one token, of which the digest is kept.
N3  A missing token, a wrong one and a namespace that nobody owns are one and the same to whoever asks.
N4  Ownership outlives the last claim by 30 days, so that a quiet week does not hand the name to a stranger.

A malformed token is a wrong one, so it never becomes an owner's: only a token with 256 bits in it may be brought.
"""

import hmac
from dataclasses import dataclass, replace

from app.core.instants import DAY_SECONDS, SECOND

KEPT_DAYS = 30
_STRONG_LENGTH = 16
_STRONG_CLASSES = 2
_NOBODY = bytes(32)


@dataclass(frozen=True, slots=True)
class NamespaceRecord:
    """An owned namespace: the digest of its token; when it was founded; when the last removed claim had ended."""

    token_hash: bytes
    founded_at: int
    last_ended_at: int


@dataclass(frozen=True, slots=True)
class NamespaceOwned:
    """The caller has shown the namespace's token."""

    record: NamespaceRecord


@dataclass(frozen=True, slots=True)
class NamespaceFounded:
    """The caller's claim makes it the owner."""

    record: NamespaceRecord


@dataclass(frozen=True, slots=True)
class NamespaceForbidden:
    """The token is missing or wrong, or nobody owns the namespace."""


@dataclass(frozen=True, slots=True)
class NamespaceWeak:
    """New namespaces need a name that is not guessed, by a setting of the server."""


def enter(record: NamespaceRecord | None, token_hash: bytes | None) -> NamespaceOwned | NamespaceForbidden:
    """Let the caller in if it shows the token. The same comparison is made for a namespace that nobody owns."""
    kept = _NOBODY if record is None else record.token_hash
    proven = hmac.compare_digest(kept, _NOBODY[1:] if token_hash is None else token_hash)
    if record is None or not proven:
        return NamespaceForbidden()
    return NamespaceOwned(record)


def found(
    name: str, token_hash: bytes | None, *, strong_names: bool, now: int
) -> NamespaceFounded | NamespaceForbidden | NamespaceWeak:
    """Found a namespace that nobody owns. `token_hash` is None when the caller brought a malformed token."""
    if token_hash is None:
        return NamespaceForbidden()
    if strong_names and not is_strong(name):
        return NamespaceWeak()
    return NamespaceFounded(NamespaceRecord(token_hash, founded_at=now, last_ended_at=now))


def rotate(record: NamespaceRecord, token_hash: bytes) -> NamespaceRecord:
    """Replace the token."""
    return replace(record, token_hash=token_hash)


def is_abandoned(record: NamespaceRecord, now: int) -> bool:
    """Whether a namespace without claims has been so for 30 days."""
    return now >= record.last_ended_at + KEPT_DAYS * DAY_SECONDS * SECOND


def is_strong(name: str) -> bool:
    """At least 16 characters from two of: lower case, upper case, digits, everything else."""
    classes = {_character_class(character) for character in name}
    return len(name) >= _STRONG_LENGTH and len(classes) >= _STRONG_CLASSES


def _character_class(character: str) -> str:
    if character.islower():
        return "lower"
    if character.isupper():
        return "upper"
    return "digit" if character.isdigit() else "other"
