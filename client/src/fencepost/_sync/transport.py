# Made by scripts/unasync.py from _async. Do not edit.
"""Sends calls, again where that is right."""

import json
import time
from types import TracebackType

import httpx

from fencepost._calls import Answer, Call
from fencepost._retry import Attempts
from fencepost.errors import Unreachable

_CONNECT_SECONDS = 5.0


class Transport:
    """One pool of connections to one server.

    `timeout_seconds` is how long one attempt may take beside the time that the server is asked to wait, so that the
    caller never gives up on a call that the server still parks (atlasdb #2183). `retry_seconds` bounds all attempts.
    """

    def __init__(self, url: str, *, timeout_seconds: float, retry_seconds: float) -> None:
        self.url = url.rstrip("/")
        self.timeout_seconds = timeout_seconds
        self.retry_seconds = retry_seconds
        self._http = httpx.Client(base_url=self.url, trust_env=False, follow_redirects=False)

    def __enter__(self) -> "Transport":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def send(self, call: Call, *, within_seconds: float | None = None) -> Answer:
        """The answer, after as many attempts as it takes within the limit. Raises Unreachable."""
        attempts = Attempts((within_seconds or self.retry_seconds) + call.wait_seconds)
        while True:
            status: int | None = None
            headers: dict[str, str] = {}
            why = "no answer"
            try:
                response = self._attempt(call, attempts.left)
                status, headers = response.status_code, dict(response.headers.items())
                answer = Answer(status, json.loads(response.content or b"{}"))
            except (httpx.TransportError, ValueError) as fault:
                why = type(fault).__name__
                if status is not None and status < 500:
                    raise Unreachable(f"{self.url} does not answer as Fencepost does (status {status})") from None
            else:
                pause = attempts.pause(status, {"Retry-After": headers.get("retry-after", "0")})
                if pause is None:
                    if status >= 500:
                        raise Unreachable(f"{self.url} answered {status} until the time was up")
                    return answer
                time.sleep(pause)
                continue
            pause = attempts.pause(None)
            if pause is None:
                raise Unreachable(f"{self.url} gave no answer in time ({why})")
            time.sleep(pause)

    def attempt(self, call: Call, limit_seconds: float) -> Answer:
        """One attempt and no other. Raises Unreachable."""
        try:
            response = self._attempt(call, limit_seconds)
            return Answer(response.status_code, json.loads(response.content or b"{}"))
        except (httpx.TransportError, ValueError) as fault:
            raise Unreachable(f"{self.url} gave no answer ({type(fault).__name__})") from None

    def _attempt(self, call: Call, left: float) -> httpx.Response:
        limit = max(0.05, min(self.timeout_seconds + call.wait_seconds, left))
        timeout = httpx.Timeout(limit, connect=min(_CONNECT_SECONDS, limit))
        return self._http.request(call.method, call.path, json=call.body, headers=call.headers(), timeout=timeout)
