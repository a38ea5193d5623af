"""The engine serves callers that have no event loop, too: plain threads, and a plain main thread."""

import threading

from app.storage.engine import Transaction
from tests.storage import shelf
from tests.storage.shelf import Open


def test_threads_without_an_event_loop_are_answered(open_engine: Open) -> None:
    rung: list[list[str]] = []
    engine = open_engine(on_commit=rung.append)
    barrier = threading.Barrier(16)

    def caller(n: int) -> None:
        def operation(tx: Transaction) -> None:
            shelf.put(tx, str(n))
            tx.ring(str(n))

        barrier.wait(10)
        engine.run(operation)
        assert shelf.look(engine, str(n)) == 0

    threads = [threading.Thread(target=caller, args=(n,)) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(shelf.names(engine)) == 16
    assert sorted(topic for topics in rung for topic in topics) == sorted(map(str, range(16)))
