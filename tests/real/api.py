"""A caller of a real server, as plain as HTTP: one connection, bytes out, an answer back."""

import http.client
import json
import socket
import threading
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Self

V1 = "/services/v1"


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    raw: bytes

    @property
    def body(self) -> dict[str, Any]:
        """The JSON object."""
        read: dict[str, Any] = json.loads(self.raw)
        return read

    def __getitem__(self, name: str) -> Any:
        return self.body[name]


class Api:
    """Calls over one kept-open connection. Not for several threads at once."""

    def __init__(self, port: int, *, timeout_seconds: float = 60.0) -> None:
        self.port = port
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout_seconds)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *fault: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def send(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """One request as given."""
        try:
            self._connection.request(method, path, body, dict(headers or {}))
            response = self._connection.getresponse()
            return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
        except BaseException:
            self._connection.close()
            raise

    def post(self, path: str, *, headers: Mapping[str, str] | None = None, **members: Any) -> Answer:
        """A JSON body made of the members."""
        return self.text(path, json.dumps(members), headers)

    def text(self, path: str, body: str, headers: Mapping[str, str] | None = None) -> Answer:
        """A JSON body as spelled here."""
        return self.send("POST", path, body.encode(), {"Content-Type": "application/json", **(headers or {})})

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> Answer:
        """A GET."""
        return self.send("GET", path, None, headers)

    def lease(self, route: str, **members: Any) -> Answer:
        """A call of `/services/v1/lease/<route>`."""
        return self.post(f"{V1}/lease/{route}", **members)


class Crowd:
    """Callers that each wait on a connection and thread of their own."""

    def __init__(self, port: int, size: int) -> None:
        self.port = port
        self._pool = ThreadPoolExecutor(max_workers=size)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *fault: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def lease(self, route: str, **members: Any) -> "Future[Answer]":
        """Call in the background."""

        def call() -> Answer:
            with Api(self.port) as api:
                return api.lease(route, **members)

        return self._pool.submit(call)


def open_request(port: int, path: str, body: str) -> socket.socket:
    """A request that was sent on a raw socket and whose answer nobody has read yet."""
    raw = socket.create_connection(("127.0.0.1", port), timeout=30)
    payload = body.encode()
    head = f"POST {path} HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\n"
    head += f"Content-Length: {len(payload)}\r\n\r\n"
    raw.sendall(head.encode() + payload)
    return raw


def together(calls: int) -> threading.Barrier:
    """A barrier to start a race on."""
    return threading.Barrier(calls)
