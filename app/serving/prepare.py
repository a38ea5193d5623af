"""What a start needs on disk before anything opens a database: the data folder and the secret key."""

import dataclasses
import os
import stat
from pathlib import Path

from app import tokens
from app.settings import Settings, StartRefused

_KEY_BYTES = 32


def prepared(settings: Settings) -> Settings:
    """Make the data folder (0700) and, on SQLite, the secret key (0600) where they are missing.

    Returns the settings with `secret_key` filled. Raises StartRefused where the folder cannot be used or the key
    file can be read by others.
    """
    try:
        settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        if settings.secret_key:
            return settings
        key = _secret_key(settings.data_dir / "secret.key")
    except OSError as fault:
        raise StartRefused(
            f"The data folder {settings.data_dir} cannot be used: {fault.strerror}. Set FENCEPOST_DATA_DIR."
        ) from fault
    return dataclasses.replace(settings, secret_key=key)


def _secret_key(file: Path) -> str:
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return _kept_key(file)
    with open(descriptor, "w", encoding="ascii") as out:
        out.write(tokens.random_bytes(_KEY_BYTES).hex() + "\n")
        out.flush()
        os.fsync(out.fileno())
    return _kept_key(file)


def _kept_key(file: Path) -> str:
    if stat.S_IMODE(file.stat().st_mode) & 0o077:
        raise StartRefused(f"{file} can be read by other users; run `chmod 600 {file}`.")
    key = file.read_text(encoding="ascii", errors="replace").strip()
    if len(key) < _KEY_BYTES:
        raise StartRefused(f"{file} holds no key. Remove it to have a new one made; sessions end then.")
    return key
