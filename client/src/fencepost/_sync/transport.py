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
from fencepost._calls import Answer, Call
from fencepost._retry import Attempts, is_decided, seconds_of
from fencepost.errors import Unreachable, refused

_log = logging.getLogger("fencepost")
_CONNECT_SECONDS = 5.0
_SHORTEST_ATTEMPT_SECONDS = 0.05
_KEPT_CONNECTIONS = 20


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
        try:
            response = self._client().request(
                call.method, call.path, content=call.content, headers=call.headers(), timeout=timeout
            )
        except httpx.TransportError as fault:
            raise Unreachable(f"{self.url} gave no answer ({type(fault).__name__})") from None
        return self._read(response)

    def _client(self) -> httpx.Client:
        """The pool of this process: two processes on one connection would read each other's answers."""
        if self._process != os.getpid():
            self._left_to_parent.append(self._http)
            self._http, self._process = self._open(), os.getpid()
        if self._http.is_closed:
            raise Unreachable("this client is closed")
        return self._http

    def _read(self, response: httpx.Response) -> Answer:
        try:
            body = _json.read(response.content or b"{}")
        except ValueError:
            body = None
        if not isinstance(body, dict):
            if is_decided(response.status_code):
                raise Unreachable(f"{self.url} does not answer as Fencepost does (status {response.status_code})")
            body = {}
        return Answer(response.status_code, body, response.content, seconds_of(response.headers.get("Retry-After")))
