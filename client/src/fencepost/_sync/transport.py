# Made by scripts/unasync.py from _async. Do not edit.
"""Sends calls, again where that is right."""

import logging
import os
import ssl
import time
from types import TracebackType
from typing import Any

import httpx

from fencepost import _json
from fencepost._calls import Answer, Call, Members
from fencepost._clock import steady
from fencepost._retry import Attempts, is_decided, seconds_of
from fencepost.errors import Unreachable, refused

_log = logging.getLogger("fencepost")
_CONNECT_SECONDS = 5.0
_SHORTEST_ATTEMPT_SECONDS = 0.05
_KEPT_CONNECTIONS = 20
_LARGEST_ANSWER = 16 * 1024 * 1024


class Transport:
    """One pool of connections to one server.

    `timeout_seconds` is how long one attempt may take beside the time that the server is asked to wait, so that the
    caller never gives up on a call that the server still parks (atlasdb #2183). `retry_seconds` bounds all attempts.
    Environment variables for proxies are not obeyed; redirects are not followed: a token goes to this server only.
    """

    def __init__(
        self, url: str, *, timeout_seconds: float, retry_seconds: float, context: ssl.SSLContext | None = None
    ) -> None:
        self.url = url.rstrip("/")
        self.timeout_seconds = timeout_seconds
        self.retry_seconds = retry_seconds
        self.context = context
        self._process = os.getpid()
        self._http = self._open()
        self._left_to_parent: list[httpx.Client] = []

    def _open(self) -> httpx.Client:
        verify: Any = False
        if self.url.lower().startswith("https:"):
            verify = self.context or ssl.create_default_context()
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=_KEPT_CONNECTIONS)
        return httpx.Client(base_url=self.url, verify=verify, limits=limits, trust_env=False, follow_redirects=False)

    def __enter__(self) -> "Transport":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections; those of a parent process are left to it."""
        if self._process == os.getpid():
            self._http.close()

    def send(self, call: Call, *, within_seconds: float | None = None) -> Answer:
        """The answer, after as many attempts as it takes within the limit.

        Raises Unreachable when there was no answer, and the refusal when it stayed one of those that mean "later".
        """
        attempts = Attempts((self.retry_seconds if within_seconds is None else within_seconds) + call.wait_seconds)
        while True:
            last: Answer | None = None
            fault: Unreachable | None = None
            try:
                last = self.attempt(call, attempts.left)
            except Unreachable as unreachable:
                fault = unreachable
            if last is not None and is_decided(last.status):
                return last
            pause = attempts.pause(last.retry_after_seconds if last is not None else 0.0)
            if pause is None:
                if last is not None and last.body.get("code"):
                    raise refused(last.status, last.body)
                raise fault or Unreachable(f"{self.url} answered {last.status if last else 0} until the time was up")
            _log.debug("%s %s is sent again in %.2f s", call.method, call.path, pause)
            time.sleep(pause)

    def attempt(self, call: Call, limit_seconds: float) -> Answer:
        """One attempt and no other. Raises Unreachable."""
        limit = max(_SHORTEST_ATTEMPT_SECONDS, min(self.timeout_seconds + call.wait_seconds, limit_seconds))
        timeout = httpx.Timeout(limit, connect=min(_CONNECT_SECONDS, limit))
        until = steady() + limit
        asked = self._client().stream(
            call.method, call.path, content=call.content, headers=call.headers(), timeout=timeout
        )
        try:
            with asked as response:
                content = self._content(response, until)
        except httpx.RequestError as fault:
            raise Unreachable(f"{self.url} gave no answer ({type(fault).__name__})") from None
        return self._read(response, content)

    def _content(self, response: httpx.Response, until: float) -> bytes:
        """The whole body: a body that drips or never ends is none."""
        chunks, size = [], 0
        for chunk in response.iter_bytes():
            chunks.append(chunk)
            size += len(chunk)
            if size > _LARGEST_ANSWER or steady() > until:
                raise Unreachable(f"{self.url} did not come to the end of its answer")
        return b"".join(chunks)

    def _client(self) -> httpx.Client:
        """The pool of this process: two processes on one connection would read each other's answers."""
        if self._process != os.getpid():
            self._left_to_parent.append(self._http)
            self._http, self._process = self._open(), os.getpid()
        if self._http.is_closed:
            raise Unreachable("this client is closed")
        return self._http

    def _read(self, response: httpx.Response, content: bytes) -> Answer:
        status = response.status_code
        try:
            body = _json.read(content or b"{}")
        except ValueError:
            body = None
        if not isinstance(body, dict) or 300 <= status < 400:
            if is_decided(status):
                raise Unreachable(f"{self.url} does not answer as Fencepost does (status {status})")
            body = {}
        return Answer(status, Members(body), content, seconds_of(response.headers.get("Retry-After")))
