"""What the client's tests share: one real server for each test process, and both worlds over one suite."""

from collections.abc import Iterator

import pytest
from client.tests.worlds import AsyncWorld, SyncWorld, World
from tests.real.server import RunningServer

from fencepost import keys
from tests.conftest import _nothing_is_left_running

__all__ = ["_nothing_is_left_running"]


@pytest.fixture(scope="session")
def server() -> Iterator[RunningServer]:
    """A server that the tests of this process share; each makes its own namespace."""
    with RunningServer() as running:
        yield running


@pytest.fixture
def own_server() -> Iterator[RunningServer]:
    """A server of this test alone, to be stopped, killed or moved in time."""
    with RunningServer() as running:
        yield running


@pytest.fixture(params=["sync", "async"])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    """Makes clients of one kind that are all called in the same way."""
    kind = SyncWorld if request.param == "sync" else AsyncWorld
    with kind() as made:
        yield made


@pytest.fixture
def ns() -> str:
    """A namespace of this test alone."""
    return keys.mint_namespace()


@pytest.fixture
def url(server: RunningServer) -> str:
    """Where the shared server listens."""
    return server.url
