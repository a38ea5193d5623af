"""Resuming is exact: cut at random, a client that subscribes again with `after` sees every version exactly once."""

import json
import random
import time
from collections.abc import Iterator

import pytest

from tests.real.stream.rawsocket import TEXT, RawSocket
from tests.real.stream.streaming import StreamServer

STATES = [f"s{number}" for number in range(12)]


@pytest.fixture
def server() -> Iterator[StreamServer]:
    with StreamServer() as running:
        yield running


class Follower:
    """A client of some handoffs that remembers the last version of each and nothing else."""

    def __init__(self, server: StreamServer, ids: list[str], chance: random.Random) -> None:
        self._server = server
        self._chance = chance
        self.told = dict.fromkeys(ids, 0)
        self.over: set[str] = set()
        self.cuts = 0
        self.ws = self._connect()

    def _connect(self) -> RawSocket:
        ws = RawSocket(self._server.port)
        for id in self.told:
            if id not in self.over:
                ws.send({"t": "sub", "id": id[:8], "handoff": id, "token": "o" + id, "after": self.told[id]})
        return ws

    def cut(self) -> None:
        """Lose the connection, perhaps in the middle of a frame, and come back."""
        if self._chance.random() < 0.5:
            self.read(self._chance.randrange(1, 200))
        self.ws.cut()
        self.cuts += 1
        self.ws = self._connect()

    def read(self, size: int = 65536) -> None:
        """Take what has come, up to `size` bytes."""
        self.ws.socket.setblocking(False)
        try:
            frames = self.ws.read_some(size)
        except BlockingIOError:
            return
        finally:
            self.ws.socket.settimeout(15)
        for frame in frames:
            assert frame.opcode == TEXT, frame
            self._hear(json.loads(frame.payload))

    def _hear(self, message: dict[str, object]) -> None:
        id = str(message.get("handoff"))
        if message["t"] == "chg":
            assert message["version"] == self.told[id] + 1
            self.told[id] += 1
        elif message["t"] == "live":
            assert message["version"] == self.told[id]
        elif message["t"] == "end":
            self.over.add(id)
        else:
            assert message["t"] in ("hello", "hb"), message


def cut_and_resume(server: StreamServer, *, handoffs: int, moves: int, cuts: int, seed: int) -> None:
    chance = random.Random(seed)
    ids = server.make(handoffs, states=STATES)
    followers = [Follower(server, ids[at : at + 10], chance) for at in range(0, handoffs, 10)]
    left = [id for id in ids for _ in range(11)]
    chance.shuffle(left)
    left = left[:moves]
    versions = {id: 1 + left.count(id) for id in ids}
    steps = moves + cuts
    while left or sum(follower.cuts for follower in followers) < cuts:
        for follower in followers:
            follower.read()
        if left and chance.random() < moves / steps:
            burst = left[: chance.choice((1, 1, 1, 5))]
            left = left[len(burst) :]
            server.post("move", ids=burst, note="n" * chance.randrange(1, 400))
        elif sum(follower.cuts for follower in followers) < cuts:
            chance.choice(followers).cut()
    deadline = time.monotonic() + 30
    while any(follower.told[id] < versions[id] for follower in followers for id in follower.told):
        assert time.monotonic() < deadline, "something was never told"
        for follower in followers:
            follower.read()
    for follower in followers:
        follower.ws.close()
        assert all(follower.told[id] == versions[id] for id in follower.told)


def test_sixty_cuts_during_240_moves_lose_and_repeat_nothing(server: StreamServer) -> None:
    cut_and_resume(server, handoffs=40, moves=240, cuts=60, seed=11)


@pytest.mark.long
@pytest.mark.timeout(300)
def test_500_cuts_during_2000_moves_over_300_handoffs_lose_and_repeat_nothing(server: StreamServer) -> None:
    cut_and_resume(server, handoffs=300, moves=2000, cuts=500, seed=12)
