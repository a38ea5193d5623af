"""Both ends of the admin socket: `admin.sock` in the data folder.

The name of a Unix socket may have about a hundred characters, a data folder may have more. So both ends name it through
a descriptor of the folder where the system has such names (Linux); elsewhere a long name is refused with a sentence.
"""

import json
import logging
import os
import socket as sockets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gevent.server import StreamServer
from gevent.socket import socket as green_socket

from app.admin import verbs
from app.admin.verbs import Answer, Verb

_log = logging.getLogger("fencepost.admin")
NAME = "admin.sock"
_LONGEST_LINE = 64 * 1024
_LONGEST_NAME = 100
_PATIENCE_SECONDS = 15.0


class NobodyServes(Exception):
    """No server listens on this folder's socket."""


class AdminSocket:
    """The server's end. `stop` removes the file."""

    def __init__(self, folder: Path, known: Mapping[str, Verb]) -> None:
        self._file = folder / NAME
        self._known = known
        self._file.unlink(missing_ok=True)
        listener = green_socket(sockets.AF_UNIX, sockets.SOCK_STREAM)
        mask = os.umask(0o177)
        try:
            with _short_name(folder) as name:
                listener.bind(name)
        finally:
            os.umask(mask)
        listener.listen(16)
        self._server = StreamServer(listener, self._serve)
        self._server.start()

    def stop(self) -> None:
        """Listen no longer."""
        self._server.stop(timeout=0.5)
        self._file.unlink(missing_ok=True)

    def _serve(self, connection: Any, _: object) -> None:
        connection.settimeout(_PATIENCE_SECONDS)
        with connection, connection.makefile("rwb") as stream:
            try:
                line = stream.readline(_LONGEST_LINE)
                asked = json.loads(line) if line else None
            except (OSError, ValueError):
                return
            try:
                said = verbs.answer(self._known, asked)
            except Exception:  # noqa: BLE001 - told in full in the log, and by a sentence to who asked
                _log.exception("an admin verb failed")
                said = {"ok": False, "error": "It failed; the server's log says why."}
            stream.write(json.dumps(said).encode("ascii") + b"\n")


def ask(folder: Path, asked: Mapping[str, Any], *, patience_seconds: float = _PATIENCE_SECONDS) -> Answer:
    """Ask the server that serves this data folder. Raises NobodyServes."""
    with sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM) as connection:
        connection.settimeout(patience_seconds)
        try:
            with _short_name(folder) as name:
                connection.connect(name)
        except (FileNotFoundError, ConnectionRefusedError):
            raise NobodyServes from None
        connection.sendall(json.dumps(dict(asked)).encode("ascii") + b"\n")
        with connection.makefile("rb") as stream:
            answer: Answer = json.loads(stream.readline())
    return answer


@contextmanager
def _short_name(folder: Path) -> Iterator[str]:
    name = str(folder / NAME)
    if len(os.fsencode(name)) <= _LONGEST_NAME or not Path("/proc/self/fd").is_dir():
        yield name
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{descriptor}/{NAME}"
    finally:
        os.close(descriptor)
