"""The real server process around tests/real/stream/stream_app.py, on a real port."""

import json
import time
import urllib.request
from types import TracebackType
from typing import Any, Self

from tests.real.server import RunningServer


class StreamServer:
    """Use it as a context manager. Keyword arguments set `Pace`."""

    def __init__(self, *, seats: int = 20000, **pace: float) -> None:
        environment = {
            "TEST_PACE": json.dumps(pace),
            "TEST_SEATS": str(seats),
            "FENCEPOST_LIMIT_WAITERS": "15000",
            "FENCEPOST_LOG_LEVEL": "warning",
            "FENCEPOST_HEADER_DEADLINE_SECONDS": "2",
            "FENCEPOST_ANSWER_DEADLINE_SECONDS": "2",
        }
        self.running = RunningServer(
            environment=environment, application="tests.real.stream.stream_app:application", await_path="/test/tick"
        )
        self.port = self.running.port

    def __enter__(self) -> Self:
        self.running.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        log = self.running.stderr
        self.running.close()
        assert "Traceback" not in log, log[-4000:]

    def post(self, path: str, **members: Any) -> Any:
        """Tell the process something."""
        body = json.dumps(members).encode()
        asked = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/test/{path}", body, {"Content-Type": "application/json"}
        )
        return json.loads(urllib.request.urlopen(asked, timeout=30).read())

    def make(self, count: int = 1, **members: Any) -> list[str]:
        """New handoffs."""
        ids: list[str] = self.post("handoff", count=count, **members)
        return ids

    def counts(self) -> dict[str, int]:
        """Descriptors, what hangs on a socket, and the like."""
        counted: dict[str, int] = json.loads(self.running.get("/test/counts", 30)[1])
        return counted

    def settle(self, wanted: dict[str, int], seconds: float = 8.0) -> dict[str, int]:
        """The counts once they are back at `wanted`, or after the time."""
        deadline = time.monotonic() + seconds
        names = ("descriptors", "objects", "topics", "watched", "seats")
        while True:
            counts = self.counts()
            if all(counts[name] <= wanted[name] for name in names) or time.monotonic() > deadline:
                return {name: counts[name] for name in names}
            time.sleep(0.2)
