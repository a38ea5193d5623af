"""Receipts verified by the client alone: those of a real server, none that was touched, the cases of a library."""

import random
from typing import Any

import pytest
from client.tests.worlds import World
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from fencepost import Claimed, Duplicate, RawJson, keys, receipts


def test_an_answer_of_the_server_is_proven_and_no_touched_one(world: World, url: str) -> None:
    fp = world.client(url, once_secret="s" * 20)
    app = f"app-cafe\u0301-{keys.mint_nonce()}"
    claimed = fp.onces.claim(app, "k")
    assert isinstance(claimed, Claimed)
    fp.onces.complete(app, "k", RawJson('{"b": 1e400, "a": [1.50, "\u20ac"]}'), claim_token=claimed.claim_token)
    again = fp.onces.claim(app, "k")
    assert isinstance(again, Duplicate)
    known: Any = fp.onces.receipt_keys()
    for answer in (claimed.answer, again.answer):
        assert receipts.verify(answer, known)
        assert not receipts.verify(answer, {"keys": []})
        assert not receipts.verify(answer + b" x", known)
    for touched in (again.answer.replace(b"1.50", b"1.5"), again.answer.replace(b"duplicate", b"duplicatE")):
        assert touched != again.answer
        assert not receipts.verify(touched, known)
    for nonsense in (b"", b"{}", b"[]", b'{"receipt": 1}', b'{"receipt": "ed25519:a:b"}', b'{"a":1,"a":2}', b"\xff"):
        assert not receipts.verify(nonsense, known)


def test_signatures_are_judged_as_a_library_judges_them() -> None:
    dice = random.Random(8032)
    for _ in range(12):
        private = Ed25519PrivateKey.from_private_bytes(dice.randbytes(32))
        public = private.public_key().public_bytes_raw()
        message = dice.randbytes(dice.randint(0, 90))
        signature = private.sign(message)
        assert receipts._is_signed(public, message, signature)
        at = dice.randrange(512)
        flipped = bytearray(signature)
        flipped[at // 8] ^= 1 << at % 8
        with pytest.raises(InvalidSignature):
            Ed25519PublicKey.from_public_bytes(public).verify(bytes(flipped), message)
        assert not _judged(public, message, bytes(flipped))
        assert not _judged(public, message + b"x", signature)


def _judged(public: bytes, message: bytes, signature: bytes) -> bool:
    try:
        return receipts._is_signed(public, message, signature)
    except ValueError:
        return False
