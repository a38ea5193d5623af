"""A small TCP proxy between a server and its database, that cuts, delays and freezes where a test says."""

import socket
import threading
import time
from contextlib import suppress
from typing import Literal, Self

from tests.real.ports import free_port

Cut = Literal["answer", "question", "late"]
COMMIT = b"COMMIT\x00"


class Proxy:
    """Listens on a port of its own and passes bytes on to `upstream`, a port of this machine.

    `cut` says what becomes of the next COMMIT, once: its answer is swallowed, the question is swallowed, or the
    question arrives late, after the asker's connection is gone. In each case the connection is lost.
    """

    def __init__(self, upstream: int) -> None:
        self.upstream = upstream
        self.port = free_port()
        self.cut: Cut | None = None
        self.cuts = 0
        self.frozen = False
        self._listener = socket.create_server(("127.0.0.1", self.port))
        self._pairs: set[tuple[socket.socket, socket.socket]] = set()
        self._lock = threading.Lock()
        self._closed = False
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *fault: object) -> None:
        self._closed = True
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.drop_all()
        for thread in self._threads:
            thread.join(10)

    def drop_all(self) -> None:
        """Cut every connection now."""
        with self._lock:
            pairs, self._pairs = self._pairs, set()
        for pair in pairs:
            for end in pair:
                _close(end)

    def _accept(self) -> None:
        while not self._closed:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self.upstream), timeout=5)
                server.settimeout(None)
            except OSError:
                client.close()
                continue
            with self._lock:
                self._pairs.add((client, server))
            for act in (self._ask, self._answer):
                thread = threading.Thread(target=act, args=(client, server), daemon=True)
                self._threads.append(thread)
                thread.start()

    def _ask(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while asked := client.recv(65536):
                self._thaw()
                cut = self._take_cut() if COMMIT in asked else None
                if cut == "answer":
                    with self._lock:
                        self._pairs.discard((client, server))
                    _close(client)
                    server.sendall(asked)
                    time.sleep(0.05)
                    break
                if cut == "question":
                    break
                if cut == "late":
                    _close(client)
                    time.sleep(0.3)
                server.sendall(asked)
                if cut == "late":
                    time.sleep(0.1)
                    break
        _close(client)
        _close(server)

    def _answer(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while answered := server.recv(65536):
                self._thaw()
                client.sendall(answered)
        _close(client)

    def _take_cut(self) -> Cut | None:
        with self._lock:
            cut, self.cut = self.cut, None
            if cut is not None:
                self.cuts += 1
        return cut

    def _thaw(self) -> None:
        while self.frozen and not self._closed:
            time.sleep(0.02)


def _close(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()
