"""Proof that this server gave an answer: Ed25519 keys that sign, and keys that used to.

A receipt reads `ed25519:<key id>:<base64url of the signature>`. The key id is the RFC 7638 thumbprint of the public
key, so that a key set cannot give one id to two keys. The signing key comes from a key file if the operator keeps
one, else it is derived from the server's secret key, so that every node of an installation signs alike and a
restart changes nothing. Every key that may have signed stays published: a receipt outlives the key's service.

A key file is a JWK set (RFC 7517, RFC 8037). Its first key has the private part `d` and signs; the others are older
ones, of which only the public part `x` is used. Rotating puts a new key before the others and forgets their `d`.
"""

import hashlib
import json
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from app import tokens

_PURPOSE = b"fencepost receipt key 1"
_RECEIPT = re.compile(r"ed25519:([A-Za-z0-9_-]{43}):([A-Za-z0-9_-]{86})", re.ASCII)


class KeyFileError(ValueError):
    """The receipt key file cannot be used; the text is a sentence for the operator and holds nothing of the file."""


class Receipts:
    """Signs answers, and checks what any of its keys signed."""

    def __init__(self, signing: Ed25519PrivateKey, older: Iterable[Ed25519PublicKey] = ()) -> None:
        self._signing = signing
        keys = [signing.public_key(), *older]
        self._keys = {thumbprint(key): key for key in keys}
        self.signing_key_id = thumbprint(keys[0])

    def sign(self, canonical: bytes) -> str:
        """The receipt for an answer's canonical bytes."""
        return f"ed25519:{self.signing_key_id}:{_encode(self._signing.sign(canonical))}"

    def is_valid(self, canonical: bytes, receipt: str) -> bool:
        """Whether one of the published keys signed exactly these bytes, spelled exactly so."""
        parts = _RECEIPT.fullmatch(receipt)
        if parts is None:
            return False
        key = self._keys.get(parts[1])
        signature = _decode(parts[2])
        if key is None or signature is None:
            return False
        try:
            key.verify(signature, canonical)
        except InvalidSignature:
            return False
        return True

    def published(self) -> dict[str, object]:
        """The public keys as a JWK set, the signing one first."""
        return {
            "keys": [
                {"kty": "OKP", "crv": "Ed25519", "use": "sig", "alg": "EdDSA", "kid": key_id, "x": _public_text(key)}
                for key_id, key in self._keys.items()
            ]
        }


def open_receipts(secret_key: bytes, key_file: str | None = None) -> Receipts:
    """The server's receipts: signed with the file's first key, or with the derived one where there is no file.

    The derived key is published in both cases, because it may have signed before there was a file.
    Raises KeyFileError.
    """
    derived = derive(secret_key)
    if key_file is None:
        return Receipts(derived)
    signing, older = _read(key_file)
    return Receipts(signing, [*older, derived.public_key()])


def derive(secret_key: bytes) -> Ed25519PrivateKey:
    """The signing key that belongs to a secret key, by HKDF-SHA256."""
    seed = HKDF(algorithm=SHA256(), length=32, salt=None, info=_PURPOSE).derive(secret_key)
    return Ed25519PrivateKey.from_private_bytes(seed)


def rotated(key_file: str | None, secret_key: bytes) -> str:
    """The text of a key file with a new signing key; what signed until now stays, without its private part.

    Without a file, the key derived from `secret_key` is what signed until now; it is written down, so that its
    receipts stay valid even when the secret key itself is replaced. Raises KeyFileError.
    """
    older = [derive(secret_key).public_key()]
    if key_file is not None:
        signing, kept = _read(key_file)
        older = [signing.public_key(), *kept]
    new = Ed25519PrivateKey.from_private_bytes(tokens.random_bytes(32))
    signing_row = {**_row(new.public_key()), "d": _encode(new.private_bytes_raw())}
    return json.dumps({"keys": [signing_row, *(_row(key) for key in older)]}, indent=2) + "\n"


def thumbprint(key: Ed25519PublicKey) -> str:
    """The key's id: RFC 7638 over SHA-256, 43 characters."""
    members = f'{{"crv":"Ed25519","kty":"OKP","x":"{_public_text(key)}"}}'
    return _encode(hashlib.sha256(members.encode("ascii")).digest())


def _read(key_file: str) -> tuple[Ed25519PrivateKey, list[Ed25519PublicKey]]:
    try:
        rows = json.loads(key_file)["keys"]
        first, *others = [_part(row, "x") for row in rows]
        signing = Ed25519PrivateKey.from_private_bytes(_part(rows[0], "d"))
        older = [Ed25519PublicKey.from_public_bytes(public) for public in others]
    except (ValueError, TypeError, KeyError, IndexError):
        # `from None`: the fault may quote the file, which holds a private key.
        raise KeyFileError(
            "the receipt key file is not a JWK set of Ed25519 keys whose first one has its private part `d`"
        ) from None
    if signing.public_key().public_bytes_raw() != first:
        raise KeyFileError("in the receipt key file the first key's `x` does not belong to its `d`")
    return signing, older


def _part(row: dict[str, object], name: str) -> bytes:
    part = _decode(row[name]) if isinstance(row[name], str) else None
    if row["kty"] != "OKP" or row["crv"] != "Ed25519" or part is None or len(part) != 32:
        raise ValueError(name)
    return part


def _row(key: Ed25519PublicKey) -> dict[str, str]:
    return {"kty": "OKP", "crv": "Ed25519", "kid": thumbprint(key), "x": _public_text(key)}


def _public_text(key: Ed25519PublicKey) -> str:
    return _encode(key.public_bytes_raw())


def _encode(part: bytes) -> str:
    return urlsafe_b64encode(part).rstrip(b"=").decode("ascii")


def _decode(text: object) -> bytes | None:
    """The bytes, or None where another text stands for the same ones: unused bits make base64 ambiguous."""
    if not isinstance(text, str) or not text.isascii():
        return None
    part = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    return part if _encode(part) == text else None
