"""What every test shares: nothing but the promise that it leaves nothing running.

Fixtures live beside the tests that use them; there is no shared cupboard of them here.
"""

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from time import monotonic, sleep

import pytest

from tests.real.cluster import lasting_processes

_PATIENCE_SECONDS = 10.0


def _running() -> set[str]:
    """The threads and child processes of this process, as people would name them."""
    threads = {f"thread {thread.name}" for thread in threading.enumerate() if thread.is_alive() and not thread.daemon}
    processes: set[str] = set()
    for task in Path(f"/proc/{os.getpid()}/task").glob("*/children"):
        try:
            processes.update(f"process {pid}" for pid in task.read_text(encoding="ascii").split())
        except OSError:  # the thread ended while we looked
            continue
    return threads | processes - {f"process {pid}" for pid in lasting_processes()}


def _left(before: set[str]) -> set[str]:
    """What runs now and did not before. A server of a wider fixture may have been restarted: one went, one came."""
    now = _running()
    came, went = now - before, before - now
    return came if len(came) > len(went) else set()


@pytest.fixture(autouse=True)
def _nothing_is_left_running() -> Iterator[None]:
    """Fail a test that leaves a thread or a process behind; what a wider fixture started may stay."""
    before = _running()
    yield
    deadline = monotonic() + _PATIENCE_SECONDS
    while (left := _left(before)) and monotonic() < deadline:
        sleep(0.01)
    assert not left, f"left running: {', '.join(sorted(left))}"
