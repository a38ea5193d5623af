"""Fixtures of tests against a real server process."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.real.server import RunningServer


@pytest.fixture
def server() -> Iterator[RunningServer]:
    """A running server in test mode with an empty data folder."""
    with RunningServer() as running:
        yield running


@pytest.fixture
def start_server() -> Iterator[Callable[..., RunningServer]]:
    """Starts servers with the arguments of RunningServer; all end with the test."""
    with ExitStack() as stack:

        def start(**arguments: Any) -> RunningServer:
            return stack.enter_context(RunningServer(**arguments))

        yield start
