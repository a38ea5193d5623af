"""Handoffs on a real server, as their parties see them."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tests.real.api import V1, Answer, Api
from tests.real.server import RunningServer

PATH = f"{V1}/handoff"
UNKNOWN = "0" * 32
BODY = "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG"


@dataclass(frozen=True)
class Made:
    """A handoff and its two tokens."""

    name: str
    owner: str
    receiver: str

    @property
    def path(self) -> str:
        return f"{PATH}/{self.name}"


def bearer(token: str, **headers: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"} | {name.replace("_", "-"): value for name, value in headers.items()}


def make(api: Api, **members: Any) -> Made:
    answer = api.post(PATH, **({"payload": {"n": 1}} | members))
    assert answer.status == 201, answer.raw
    return Made(answer["handoff_id"], answer["owner_token"], answer["receiver_token"])


def look(api: Api, made: Made, token: str | None = None, **headers: str) -> Answer:
    return api.get(made.path, bearer(token or made.owner, **headers))


def move(api: Api, made: Made, to: str, expected: str, *, token: str | None = None, **members: Any) -> Answer:
    return api.post(f"{made.path}/{to}", headers=bearer(token or made.receiver), **({"from": expected} | members))


def wait(api: Api, made: Made, seconds: object = 20, *, known: object = None, token: str | None = None) -> Answer:
    tag: Mapping[str, str] = {} if known is None else {"If_None_Match": f'"{known}"'}
    return api.get(f"{made.path}/wait/{seconds}", bearer(token or made.owner, **tag))


def own_tokens(letters: str = "zy") -> dict[str, str]:
    """A nonce with two tokens of the caller's own; other letters, other tokens."""
    return {
        "nonce": "n-1",
        "owner_token": "howner_" + (letters + BODY)[:43],
        "receiver_token": "hrecv_" + (letters + BODY)[:43],
    }


def at_once(server: RunningServer, calls: list[Callable[[Api], Answer]]) -> list[Answer]:
    """Run the calls on a barrier, each on a thread and an open connection of its own; the answers in their order."""
    barrier = threading.Barrier(len(calls))
    answers: list[Answer | None] = [None] * len(calls)

    def run(index: int) -> None:
        with Api(server.port) as api:
            api.get("/healthz")
            barrier.wait(30)
            answers[index] = calls[index](api)

    threads = [threading.Thread(target=run, args=(index,)) for index in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    given = [answer for answer in answers if answer is not None]
    assert len(given) == len(calls)
    return given


@contextmanager
def waiting(server: RunningServer, made: Made, seconds: int = 20, **arguments: Any) -> Iterator[list[Answer]]:
    """Somebody waits on another connection while the block runs; afterwards the list holds the answer."""
    answers: list[Answer] = []

    def run() -> None:
        with Api(server.port) as api:
            answers.append(wait(api, made, seconds, **arguments))

    thread = threading.Thread(target=run)
    thread.start()
    yield answers
    thread.join(60)
    assert answers, "the wait was not answered"
