"""Rotating the key of receipts from the command line."""

import stat
from pathlib import Path

import pytest

from app.cli.main import REFUSED, main
from app.cli.receipt_key import rotate_receipt_key
from app.services.receipts import open_receipts
from app.settings import Settings, StartRefused, load

SECRET = "0123456789abcdef0123456789abcdef"


def settings(tmp_path: Path, **more: str) -> Settings:
    return load({"FENCEPOST_SECRET_KEY": SECRET, "FENCEPOST_DATA_DIR": str(tmp_path), **more}, tmp_path)


def test_each_rotation_signs_with_a_new_key_and_keeps_the_old_ones(tmp_path: Path) -> None:
    file = tmp_path / "receipts.json"
    given = settings(tmp_path, FENCEPOST_RECEIPT_KEY_FILE=str(file))
    made = [open_receipts(SECRET.encode()).sign(b"{}")]
    for _ in range(2):
        key_id = rotate_receipt_key(given)
        receipts = open_receipts(SECRET.encode(), file.read_text())
        made.append(receipts.sign(b"{}"))
        assert made[-1].split(":")[1] == key_id
        assert all(receipts.is_valid(b"{}", receipt) for receipt in made)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [file]


def test_a_broken_key_file_is_left_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "receipts.json"
    file.write_text("{}")
    with pytest.raises(StartRefused, match="JWK set"):
        rotate_receipt_key(settings(tmp_path, FENCEPOST_RECEIPT_KEY_FILE=str(file)))
    assert file.read_text() == "{}"


def test_without_a_file_to_write_there_is_nothing_to_rotate(tmp_path: Path) -> None:
    with pytest.raises(StartRefused, match="FENCEPOST_RECEIPT_KEY_FILE"):
        rotate_receipt_key(settings(tmp_path))
    nowhere = settings(tmp_path, FENCEPOST_RECEIPT_KEY_FILE=str(tmp_path / "no" / "folder"))
    with pytest.raises(StartRefused, match="cannot be replaced"):
        rotate_receipt_key(nowhere)


def test_an_unknown_verb_is_wrong_usage() -> None:
    with pytest.raises(SystemExit) as ended:
        main(["rotate-receipt-keys"])
    assert ended.value.code not in (0, REFUSED)
