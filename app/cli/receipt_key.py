"""`fencepost-server rotate-receipt-key`: a new key signs from the next start on; the old ones stay published."""

import os
from pathlib import Path

from app.services.receipts import KeyFileError, open_receipts, rotated
from app.settings import Settings, StartRefused


def rotate_receipt_key(settings: Settings) -> str:
    """Replace the key file in one step, mode 0600; the id of the new signing key. Raises StartRefused."""
    file = settings.receipt_key_file
    if file is None:
        raise StartRefused("Set FENCEPOST_RECEIPT_KEY_FILE to the file that is to hold the keys of receipts.")
    secret = settings.secret_key.encode("utf-8")
    try:
        text = rotated(file.read_text(encoding="utf-8") if file.exists() else None, secret)
        _replace(file, text)
    except KeyFileError as fault:
        raise StartRefused(f"{file}: {fault}.") from None
    except OSError as fault:
        raise StartRefused(f"{file} cannot be replaced: {fault.strerror}.") from fault
    return open_receipts(secret, text).signing_key_id


def _replace(file: Path, text: str) -> None:
    beside = file.with_name(file.name + ".new")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(descriptor, "w", encoding="utf-8") as out:
        out.write(text)
        out.flush()
        os.fsync(out.fileno())
    beside.replace(file)
