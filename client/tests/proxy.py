"""What the network does to a caller: a relay that can fall silent or be cut, and a proxy that mistreats requests.

The proxy reads whole requests, so that it can let the server commit and then lose the answer, send a request twice,
or send it again when everything is over.
"""

import http.client
import random
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import BinaryIO, Self

_CHUNK = 1 << 16


class Listener:
    """Accepts connections on a port of its own and serves each in a thread."""

    def __init__(self, port: int) -> None:
        self.target = ("127.0.0.1", port)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._is_over = False

    def __enter__(self) -> Self:
        self._spawn(self._accept)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over = True
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self.cut()
        for thread in list(self._threads):
            thread.join(30)

    def cut(self) -> None:
        """End all connections that are open now, with a reset."""
        with self._lock:
            sockets = list(self._open)
        for each in sockets:
            reset(each)

    def serve(self, caller: socket.socket) -> None:
        """One connection, to its end."""
        raise NotImplementedError

    def _spawn(self, target: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self._is_over:
            try:
                caller, _ = self._listening.accept()
            except OSError:
                return
            self._spawn(self._guarded, caller)

    def _guarded(self, caller: socket.socket) -> None:
        self.track(caller)
        try:
            self.serve(caller)
        except (OSError, http.client.HTTPException):
            reset(caller)
        finally:
            with self._lock:
                self._open.discard(caller)
            caller.close()

    def track(self, connection: socket.socket) -> None:
        """Have this one cut with the others."""
        with self._lock:
            self._open.add(connection)


class Relay(Listener):
    """Passes bytes both ways, until told not to."""

    def __init__(self, port: int) -> None:
        super().__init__(port)
        self.is_silent = threading.Event()
        """While set, nothing passes, and nobody is told: a black hole."""

    def serve(self, caller: socket.socket) -> None:
        with socket.create_connection(self.target, 5) as server:
            self.track(server)
            back = threading.Thread(target=self._pass, args=(server, caller))
            back.start()
            self._pass(caller, server)
            back.join()

    def _pass(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            source.settimeout(0.1)
            while not self._is_over:
                try:
                    chunk = source.recv(_CHUNK)
                except TimeoutError:
                    continue
                if self.is_silent.is_set():
                    continue
                if not chunk:
                    break
                sink.sendall(chunk)
        with suppress(OSError):
            sink.shutdown(socket.SHUT_WR)


class FaultyProxy(Listener):
    """Mistreats requests at random, by a seed. `done` counts what it did."""

    FAULTS = ("drop", "lost", "reset", "delay", "twice", "later", "half", "busy")

    def __init__(self, port: int, seed: int, rate: float = 0.5, faults: Sequence[str] = FAULTS) -> None:
        super().__init__(port)
        self._faults = faults
        self._dice = random.Random(seed)
        self.rate = rate
        self.done: Counter[str] = Counter()

    def serve(self, caller: socket.socket) -> None:
        reader = caller.makefile("rb")
        server = http.client.HTTPConnection(*self.target, timeout=40)
        try:
            while (request := _read_request(reader)) is not None:
                if not self._treat(caller, server, request):
                    return
        finally:
            reader.close()
            server.close()

    def _treat(self, caller: socket.socket, server: http.client.HTTPConnection, request: "_Request") -> bool:
        """One request; whether the connection goes on."""
        with self._lock:
            fault = self._dice.choice(self._faults) if self._dice.random() < self.rate else "pass"
            pause = self._dice.uniform(0, 0.05)
            self.done[fault] += 1
        if fault == "lost":
            reset(caller)
            return False
        if fault == "busy":
            caller.sendall(b"HTTP/1.1 503 Busy\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
            return True
        if fault == "delay":
            time.sleep(pause)
        answer = _ask(server, request)
        if fault == "twice":
            answer = _ask(server, request)
        if fault == "later":
            self._spawn(self._again, request, pause)
        if fault == "drop":
            return False
        if fault == "reset":
            reset(caller)
            return False
        caller.sendall(answer[: len(answer) // 2] if fault == "half" else answer)
        return fault != "half"

    def _again(self, request: "_Request", pause: float) -> None:
        time.sleep(pause)
        server = http.client.HTTPConnection(*self.target, timeout=10)
        with suppress(OSError, http.client.HTTPException):
            _ask(server, request)
        server.close()


_Request = tuple[str, str, dict[str, str], bytes]


def _read_request(reader: BinaryIO) -> _Request | None:
    line = reader.readline()
    if not line:
        return None
    method, path, _ = line.decode().split(" ", 2)
    headers: dict[str, str] = {}
    while (line := reader.readline()) not in (b"\r\n", b""):
        name, _, value = line.decode().partition(":")
        headers[name.strip()] = value.strip()
    length = int({name.lower(): value for name, value in headers.items()}.get("content-length", "0"))
    body: bytes = reader.read(length)
    return method, path, headers, body


def _ask(server: http.client.HTTPConnection, request: _Request) -> bytes:
    method, path, headers, body = request
    server.request(method, path, body or None, {name: value for name, value in headers.items() if name != "Connection"})
    response = server.getresponse()
    content = response.read()
    head = f"HTTP/1.1 {response.status} {response.reason}\r\n"
    kept = [(name, value) for name, value in response.getheaders() if name.lower() != "transfer-encoding"]
    head += "".join(f"{name}: {value}\r\n" for name, value in kept if name.lower() != "content-length")
    return f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content


def reset(connection: socket.socket) -> None:
    """End a connection so that its peer gets a reset."""
    with suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.shutdown(socket.SHUT_RDWR)
    with suppress(OSError):
        connection.close()
