"""Several processes on one PostgreSQL look for due notices at the same moment; none is begun twice."""

import threading
from collections import Counter
from collections.abc import Iterator

import pytest

from app.clock import DatabaseClock
from app.core.instants import SECOND
from app.core.outbox import Answered, Delivery
from app.services.outbox import CLAIM_SECONDS, Outbox, announce
from app.storage.engine import Transaction
from app.storage.postgres import PostgresEngine
from tests.real.cluster import shared_cluster

NOTICES, PROCESSES = 200, 4


class Offset:
    """How far the deciding clock runs ahead, in microseconds."""

    ahead = 0

    def __call__(self) -> int:
        return self.ahead


@pytest.fixture
def offset() -> Offset:
    return Offset()


@pytest.fixture
def engines(offset: Offset) -> Iterator[list[PostgresEngine]]:
    url = shared_cluster().database()
    opened = [
        PostgresEngine(url, clock=DatabaseClock(offset), deadline_seconds=60.0, connections=2) for _ in range(PROCESSES)
    ]
    yield opened
    for engine in opened:
        engine.close()


def append(tx: Transaction) -> None:
    for number in range(NOTICES):
        announce(
            tx,
            notify_url=f"http://r{number % 40}.example/",
            result_url="http://fence.example/",
            handoff_id=f"{number:032x}",
            version=2,
            state="done",
            previous="offered",
            by="receiver",
            ended=True,
            changed_at=tx.now(),
            expires_at=tx.now() + 3_600 * SECOND,
        )


def claim_together(engines: list[PostgresEngine], room: int) -> list[list[Delivery]]:
    """What each process gets when all ask at once until nothing is left."""
    barrier = threading.Barrier(len(engines))
    got: list[list[Delivery]] = [[] for _ in engines]

    def work(place: int) -> None:
        outbox = Outbox(engines[place])
        barrier.wait()
        while claimed := outbox.claim(room=room, per_receiver=100, sending=()):
            got[place] += claimed

    threads = [threading.Thread(target=work, args=(place,)) for place in range(len(engines))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return got


@pytest.mark.postgres
def test_a_notice_is_begun_by_one_process_only(engines: list[PostgresEngine], offset: Offset) -> None:
    engines[0].run(append)
    for tries in (1, 2):
        got = claim_together(engines, room=10)
        begun = [delivery for part in got for delivery in part]
        assert Counter(delivery.notice.handoff_id for delivery in begun) == {
            f"{number:032x}": 1 for number in range(NOTICES)
        }
        assert {delivery.tries for delivery in begun} == {tries}
        offset.ahead += (CLAIM_SECONDS + 1) * SECOND  # all of them died


@pytest.mark.postgres
def test_only_the_process_whose_claim_it_is_writes_what_came_of_it(
    engines: list[PostgresEngine], offset: Offset
) -> None:
    one, other = Outbox(engines[0]), Outbox(engines[1])
    engines[0].run(append)
    first = one.claim(room=1, per_receiver=1, sending=())[0]
    offset.ahead += (CLAIM_SECONDS + 1) * SECOND
    again = [
        delivery
        for delivery in other.claim(room=NOTICES, per_receiver=100, sending=())
        if delivery.notice.handoff_id == first.notice.handoff_id
    ]
    assert one.record(first, Answered(500)) is None
    assert other.record(again[0], Answered(200)) is not None
    (kept,) = one.of_handoff(first.notice.handoff_id)
    assert (kept.ending, kept.result, kept.tries) == ("delivered", "200", 2)
