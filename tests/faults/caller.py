"""A caller on a line that loses answers and delivers questions twice, as a seed says."""

import http.client
import json
import random
import socket
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from tests.faults.history import FOREVER
from tests.real.api import Api

DOWN = (OSError, http.client.HTTPException)
PATIENCE_SECONDS = 40.0


@dataclass(frozen=True)
class Line:
    """How bad the line is: the shares of calls whose answer is lost, and of those that are delivered twice."""

    lost: float = 0.0
    twice: float = 0.0


@dataclass
class Tally:
    """What happened in a run, by name."""

    counts: Counter[str] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, name: str, number: int = 1) -> None:
        """Count, from any thread."""
        with self.lock:
            self.counts[name] += number


@dataclass(frozen=True, slots=True)
class Heard:
    """What came back of a call, and when; status 0 and no body where nothing did."""

    began: float
    ended: float
    status: int = 0
    body: dict[str, Any] = field(default_factory=dict)

    @property
    def is_unknown(self) -> bool:
        """Whether the call may or may not have happened."""
        return self.status == 0 or (self.status >= 500 and not self.is_undone)

    @property
    def is_undone(self) -> bool:
        """Whether the server says that it did not happen, and that another try may."""
        return self.status == 503 and self.body.get("committed", "no") == "no"


class Caller:
    """Calls one after the other. Not for several threads."""

    def __init__(self, port: int, rng: random.Random, line: Line, tally: Tally) -> None:
        self.rng = rng
        self._port = port
        self._line = line
        self._tally = tally
        self._api = Api(port, timeout_seconds=PATIENCE_SECONDS)

    def close(self) -> None:
        """Let go of the connection."""
        self._api.close()

    def post(self, path: str, members: dict[str, Any], token: str | None = None) -> list[Heard]:
        """One call that may safely be sent again, as the line delivers it: what was heard of each delivery."""
        chance = self.rng.random()
        if chance < self._line.lost:
            return [self._lose(path, members, token)]
        if chance < self._line.lost + self._line.twice:
            return self._deliver_twice(path, members, token)
        return [self.send("POST", path, members, token)]

    def send(
        self, method: str, path: str, members: dict[str, Any] | None = None, token: str | None = None, **headers: str
    ) -> Heard:
        """One call on a line that works."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        body = None if members is None else json.dumps(members).encode()
        began = time.monotonic()
        try:
            answer = self._api.send(method, path, body, {**_headers(token), **named})
            return self._heard(began, answer.status, answer.raw)
        except DOWN:
            self._tally.add("no answer")
            time.sleep(0.02)
            return Heard(began, FOREVER)

    def _heard(self, began: float, status: int, raw: bytes) -> Heard:
        self._tally.add(f"status {status}")
        heard = Heard(began, time.monotonic(), status, json.loads(raw))
        if heard.is_undone:
            time.sleep(0.02)
        return heard if not heard.is_unknown else Heard(began, FOREVER, status, heard.body)

    def _lose(self, path: str, members: dict[str, Any], token: str | None) -> Heard:
        """Ask, and hang up before or after the answer was written."""
        began = time.monotonic()
        try:
            with self._ask(path, members, token) as raw:
                raw.settimeout(self.rng.choice([0.001, 0.01, 5.0]))
                raw.recv(1)
        except OSError:
            self._tally.add("hung up early")
        self._tally.add("answers dropped")
        return Heard(began, FOREVER)

    def _deliver_twice(self, path: str, members: dict[str, Any], token: str | None) -> list[Heard]:
        self._tally.add("questions doubled")
        began = time.monotonic()
        try:
            with self._ask(path, members, token) as raw:
                first = self.send("POST", path, members, token)
                response = http.client.HTTPResponse(raw)
                response.begin()
                return [first, self._heard(began, response.status, response.read())]
        except DOWN:
            return [Heard(began, FOREVER), self.send("POST", path, members, token)]

    def _ask(self, path: str, members: dict[str, Any], token: str | None) -> socket.socket:
        raw = socket.create_connection(("127.0.0.1", self._port), timeout=PATIENCE_SECONDS)
        payload = json.dumps(members).encode()
        named = {"Host": "test", "Content-Length": str(len(payload)), **_headers(token)}
        head = "".join(f"{name}: {value}\r\n" for name, value in named.items())
        raw.sendall(f"POST {path} HTTP/1.1\r\n{head}\r\n".encode() + payload)
        return raw


def _headers(token: str | None) -> dict[str, str]:
    named = {"Content-Type": "application/json"}
    return named if token is None else {**named, "Authorization": f"Bearer {token}"}
