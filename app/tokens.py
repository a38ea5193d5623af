"""The only reader of randomness, and the one place where secrets become digests.

A token is a prefix that names its kind, so that leak scanners can find it, and 256 bits from the operating
system in base64url without padding. What is stored is a SHA-256 digest, separated by kind: the digest of an
owner token is never the digest of a namespace token, even for equal text.
"""

import hashlib
import hmac
import re
import secrets
from base64 import b64decode, b64encode, urlsafe_b64encode
from collections.abc import Sequence
from enum import StrEnum

_BODY_LENGTH = 43
_LEAST_DISTINCT = 16


class Kind(StrEnum):
    """What a secret is for; the value is its prefix."""

    NAMESPACE = "ns_"
    LEASE_OWNER = "own_"
    HANDOFF_OWNER = "howner_"
    HANDOFF_RECEIVER = "hrecv_"
    ONCE_NAMESPACE = "nst_"
    CLAIMANT = "clm_"
    CREDIT = "cred_"
    CREDIT_TRIAL = "cred_trial_"
    SESSION = "sess_"
    SIGN_IN = "signin_"
    CSRF = "csrf_"


START = secrets.token_hex(16)
"""Drawn once by the process that starts the workers, which inherit it: tells one start of a server from the next."""

_IDENTIFIER = re.compile(r"[0-9a-f]{32}", re.ASCII)
_SHAPES = {kind: re.compile(re.escape(kind.value) + r"[A-Za-z0-9_-]{43}", re.ASCII) for kind in Kind}


def mint(kind: Kind) -> str:
    """A new secret of this kind: its prefix and 43 base64url characters (256 bits)."""
    body = urlsafe_b64encode(secrets.token_bytes(32)).rstrip(b"=").decode("ascii")
    return kind.value + body


def mint_identifier() -> str:
    """32 lower-case hex digits that name an object and grant nothing."""
    return secrets.token_hex(16)


def is_identifier(text: str) -> bool:
    """Whether it has the form of an identifier of ours: 32 lower-case hexadecimal digits."""
    return _IDENTIFIER.fullmatch(text) is not None


def random_bytes(length: int) -> bytes:
    """Bytes from the operating system's generator, for keys made on first start."""
    return secrets.token_bytes(length)


def random_fraction() -> float:
    """A number in [0, 1) for jitter; not a secret."""
    return secrets.randbelow(1 << 30) / (1 << 30)


def is_well_formed(kind: Kind, token: str) -> bool:
    """Whether a caller's own token has the shape of this kind and is not obviously guessable.

    43 base64url characters after the prefix, at least 16 distinct ones among them.
    """
    return _SHAPES[kind].fullmatch(token) is not None and len(set(token[-_BODY_LENGTH:])) >= _LEAST_DISTINCT


def is_token(text: str) -> bool:
    """Whether a text has the shape of a secret of any kind."""
    return any(shape.fullmatch(text) for shape in _SHAPES.values())


def digest(purpose: str, *parts: str) -> bytes:
    """SHA-256 of the parts, each with its length before it, under a purpose that separates domains. 32 bytes."""
    hasher = hashlib.sha256(b"fencepost:" + purpose.encode("ascii"))
    for part in parts:
        encoded = part.encode("utf-8")
        hasher.update(len(encoded).to_bytes(8, "big"))
        hasher.update(encoded)
    return hasher.digest()


def sealed(key: bytes, purpose: str, *parts: str) -> str:
    """43 base64url characters that only somebody with the server's key can make for these parts."""
    mac = hmac.digest(key, digest(purpose, *parts), "sha256")
    return urlsafe_b64encode(mac).rstrip(b"=").decode("ascii")


def same_text(one: str, other: str) -> bool:
    """Compare two secrets in constant time."""
    return hmac.compare_digest(one.encode("utf-8"), other.encode("utf-8"))


def same(one: bytes, other: bytes) -> bool:
    """Compare two digests in constant time."""
    return hmac.compare_digest(one, other)


def notify_secret(server_key: bytes, handoff_id: str) -> str:
    """What a handoff's webhooks are signed with: `whsec_` and 32 bytes in base64. Derived at each use, never stored."""
    derived = hmac.digest(server_key, b"fencepost:notify:" + handoff_id.encode("ascii"), "sha256")
    return "whsec_" + b64encode(derived).decode("ascii")


def sign_notice(secrets: Sequence[str], message_id: str, timestamp: int, body: bytes) -> str:
    """The value of `webhook-signature` as Standard Webhooks say: one `v1,` signature for each secret."""
    signed = f"{message_id}.{timestamp}.".encode("ascii") + body
    return " ".join(
        "v1," + b64encode(hmac.digest(b64decode(secret.removeprefix("whsec_")), signed, "sha256")).decode("ascii")
        for secret in secrets
    )
