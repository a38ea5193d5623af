"""The data folder and the secret key."""

import stat
from pathlib import Path

import pytest

from app.serving.prepare import prepared
from app.settings import Settings, StartRefused, load


def settings(folder: Path) -> Settings:
    return load({"FENCEPOST_DATA_DIR": str(folder / "data")}, folder)


def test_the_first_start_makes_a_private_folder_and_key_and_the_second_keeps_them(tmp_path: Path) -> None:
    first = prepared(settings(tmp_path))
    file = tmp_path / "data" / "secret.key"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert len(first.secret_key) == 64
    assert prepared(settings(tmp_path)).secret_key == first.secret_key


def test_another_folder_gets_another_key(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    assert prepared(settings(tmp_path / "a")).secret_key != prepared(settings(tmp_path / "b")).secret_key


def test_a_given_key_is_used_and_none_is_made(tmp_path: Path) -> None:
    key = "0123456789abcdef0123456789abcdef"
    given = load({"FENCEPOST_DATA_DIR": str(tmp_path / "data"), "FENCEPOST_SECRET_KEY": key}, tmp_path)
    assert prepared(given).secret_key == key
    assert not (tmp_path / "data" / "secret.key").exists()


def test_a_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    prepared(settings(tmp_path))
    (tmp_path / "data" / "secret.key").chmod(0o640)
    with pytest.raises(StartRefused, match="chmod 600"):
        prepared(settings(tmp_path))


def test_an_empty_key_file_is_refused(tmp_path: Path) -> None:
    prepared(settings(tmp_path))
    (tmp_path / "data" / "secret.key").write_text("")
    with pytest.raises(StartRefused, match="holds no key"):
        prepared(settings(tmp_path))


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StartRefused, match="FENCEPOST_DATA_DIR"):
        prepared(load({"FENCEPOST_DATA_DIR": str(tmp_path / "file" / "data")}, tmp_path))
