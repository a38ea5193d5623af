"""Receipts: what was signed stays provable through restarts and rotations, and nothing else passes."""

import json
import re
from base64 import urlsafe_b64decode

import pytest
import rfc8785
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from app.services.receipts import KeyFileError, open_receipts, rotated

SECRET, OTHER_SECRET = b"s" * 32, b"t" * 32
ANSWER = {"status": "released", "namespace": "billing", "action_key": "charge-1042"}
CANONICAL = rfc8785.dumps(ANSWER)


def verify_with_public_libraries_only(jwks: dict[str, object], canonical: bytes, receipt: str) -> None:
    """What any stranger can write: raises InvalidSignature if the receipt is not that of these bytes."""
    _, key_id, signature = receipt.split(":")
    keys = {key["kid"]: key["x"] for key in jwks["keys"]}  # type: ignore[attr-defined]
    public = Ed25519PublicKey.from_public_bytes(urlsafe_b64decode(keys[key_id] + "="))
    public.verify(urlsafe_b64decode(signature + "=="), canonical)


def test_a_receipt_verifies_with_nothing_but_public_libraries() -> None:
    receipts = open_receipts(SECRET)
    receipt = receipts.sign(CANONICAL)
    assert re.fullmatch(r"ed25519:[A-Za-z0-9_-]{43}:[A-Za-z0-9_-]{86}", receipt)
    verify_with_public_libraries_only(receipts.published(), CANONICAL, receipt)
    with pytest.raises(InvalidSignature):
        verify_with_public_libraries_only(receipts.published(), CANONICAL + b" ", receipt)


def test_one_changed_character_of_a_receipt_makes_it_invalid() -> None:
    receipts = open_receipts(SECRET)
    receipt = receipts.sign(CANONICAL)
    assert receipts.is_valid(CANONICAL, receipt)
    for place, character in enumerate(receipt):
        for other in {"A", "B", "g", "_", ":", " ", "é"} - {character}:
            assert not receipts.is_valid(CANONICAL, receipt[:place] + other + receipt[place + 1 :])
    for other in ("", receipt + "=", receipt + "\n", " " + receipt, receipt[:-1]):
        assert not receipts.is_valid(CANONICAL, other)


def test_unused_bits_of_the_last_character_cannot_be_changed() -> None:
    receipts = open_receipts(SECRET)
    receipt = receipts.sign(CANONICAL)
    spellings = [receipt[:-1] + last for last in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"]
    assert [spelling for spelling in spellings if receipts.is_valid(CANONICAL, spelling)] == [receipt]


def test_a_restart_changes_nothing_and_another_secret_is_another_server() -> None:
    receipt = open_receipts(SECRET).sign(CANONICAL)
    assert open_receipts(SECRET).sign(CANONICAL) == receipt
    assert open_receipts(SECRET).is_valid(CANONICAL, receipt)
    assert not open_receipts(OTHER_SECRET).is_valid(CANONICAL, receipt)


def test_rotation_keeps_every_old_receipt_valid() -> None:
    file: str | None = None
    made = [open_receipts(SECRET).sign(CANONICAL)]
    for _ in range(3):
        file = rotated(file, SECRET)
        made.append(open_receipts(SECRET, file).sign(CANONICAL))
    assert len({receipt.split(":")[1] for receipt in made}) == 4
    for secret in (SECRET, OTHER_SECRET):
        receipts = open_receipts(secret, file)
        for receipt in made:
            assert receipts.is_valid(CANONICAL, receipt)
            verify_with_public_libraries_only(receipts.published(), CANONICAL, receipt)


def test_only_the_signing_key_keeps_its_private_part_and_none_is_published() -> None:
    file = rotated(rotated(None, SECRET), SECRET)
    assert ["d" in key for key in json.loads(file)["keys"]] == [True, False, False]
    published = open_receipts(SECRET, file).published()
    assert [sorted(key) for key in published["keys"]] == [  # type: ignore[attr-defined]
        ["alg", "crv", "kid", "kty", "use", "x"]
    ] * 3


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"keys": []}',
        '{"keys": [1]}',
        '{"keys": [{"kty": "OKP", "crv": "Ed25519", "x": "AAAA", "d": "AAAA"}]}',
        '{"keys": [{"kty": "RSA", "crv": "Ed25519", "x": "' + "A" * 43 + '", "d": "' + "A" * 43 + '"}]}',
    ],
)
def test_a_key_file_that_is_none_stops_the_start_with_a_sentence(text: str) -> None:
    with pytest.raises(KeyFileError, match="JWK set"):
        open_receipts(SECRET, text)


def test_a_key_file_whose_halves_do_not_belong_together_is_refused() -> None:
    one, other = json.loads(rotated(None, SECRET)), json.loads(rotated(None, SECRET))
    one["keys"][0]["x"] = other["keys"][0]["x"]
    with pytest.raises(KeyFileError, match="does not belong"):
        open_receipts(SECRET, json.dumps(one))
    del one["keys"][0]["d"]
    with pytest.raises(KeyFileError, match="JWK set"):
        open_receipts(SECRET, json.dumps(one))
