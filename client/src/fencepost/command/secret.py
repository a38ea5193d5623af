"""Where secrets come from: the environment, a file, or standard input; never the arguments, which everybody can see.

A file that is written is readable by its owner only, and written before anybody else could open it.
"""

import os
import stat
import sys
from pathlib import Path

_LARGEST = 4096


class Missing(Exception):
    """A secret is needed and was not given, or not as it should be; the sentence says how to give it."""


def from_file(path: str) -> str:
    """The one line of a file; `-` is standard input. Raises Missing."""
    try:
        if path == "-":
            text = sys.stdin.readline(_LARGEST)
        else:
            with open(path, encoding="utf-8") as file:
                text = file.read(_LARGEST)
    except OSError as fault:
        raise Missing(f"{path} cannot be read: {fault.strerror}") from None
    if not text.strip():
        raise Missing(f"{'standard input' if path == '-' else path} is empty")
    return text.strip()


def given(variable: str, path: str | None) -> str | None:
    """A secret from the file that was named, the variable, or the file that `VARIABLE_FILE` names."""
    if path:
        return from_file(path)
    if os.environ.get(variable):
        return os.environ[variable]
    named = os.environ.get(f"{variable}_FILE")
    return from_file(named) if named else None


def needed(variable: str, path: str | None, option: str) -> str:
    """As given. Raises Missing, saying how to give it."""
    secret = given(variable, path)
    if secret is None:
        raise Missing(f"set {variable} or give {option} FILE (- for standard input); a secret is never an argument")
    return secret


def namespace(path: str | None) -> str | None:
    """The lease namespace: as given, else the one that `fencepost namespace new --save` keeps."""
    found = given("FENCEPOST_NAMESPACE", path)
    if found is None and kept_namespace().exists():
        found = from_file(str(kept_namespace()))
    return found


def lease_key(key: str, path: str | None) -> tuple[str, str | None]:
    """Key and namespace. A key without a namespace is a secret itself: it is `-` and comes from FENCEPOST_KEY."""
    if key == "-":
        return needed("FENCEPOST_KEY", None, "FENCEPOST_KEY_FILE="), namespace(path)
    found = namespace(path)
    if found is None:
        raise Missing(
            "no namespace: without one a key is itself a secret and must not stand here. Make one for all who share "
            "these keys: fencepost namespace new --save (or set FENCEPOST_NAMESPACE, or --namespace-file)"
        )
    return key, found


def kept_namespace() -> Path:
    """Where the namespace is kept when nothing else says."""
    folder = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(folder) / "fencepost" / "namespace"


def save(path: Path, secret: str) -> None:
    """Write a secret to a new file that only its owner can read, or over one that is like that. Raises Missing."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            if stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
                raise Missing(f"{path} can be read by others; remove it or chmod 600 it")
            file.truncate()
            file.write(f"{secret}\n")
    except OSError as fault:
        raise Missing(f"{path} cannot be written: {fault.strerror}") from None
