"""A copy taken beside running writers, and a log that stays small."""

import sqlite3
from pathlib import Path

import gevent
import pytest

from app.storage.engine import Transaction
from tests.storage import shelf
from tests.storage.shelf import Open


def test_a_backup_is_whole_while_writes_go_on(open_engine: Open, tmp_path: Path) -> None:
    engine = open_engine(write_deadline_seconds=30)

    def fill(tx: Transaction) -> None:
        for n in range(200):
            shelf.put(tx, f"{n}-" + "x" * 3000)
        shelf.put(tx, "count")

    engine.run(fill)
    copying = gevent.spawn(engine.backup, tmp_path / "copy.db")
    added = 0
    while not copying.ready():
        engine.run(lambda tx: shelf.add(tx, "count"))
        added += 1
    copying.get()
    engine.close()
    copy = open_engine(tmp_path / "copy.db")
    assert len(shelf.names(copy)) == 201
    count = shelf.look(copy, "count")
    assert count is not None
    assert count <= added
    copy.close()
    connection = sqlite3.connect(tmp_path / "copy.db")
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()


def test_a_backup_overwrites_nothing(open_engine: Open, tmp_path: Path) -> None:
    engine = open_engine()
    (tmp_path / "there").write_text("something", encoding="utf-8")
    with pytest.raises(FileExistsError):
        engine.backup(tmp_path / "there")
    assert (tmp_path / "there").read_text(encoding="utf-8") == "something"


def test_the_log_stays_small_under_writes_beside_readers(open_engine: Open, tmp_path: Path) -> None:
    engine = open_engine()
    log = tmp_path / "fencepost.db-wal"
    largest = 0

    def read() -> None:
        while True:
            shelf.look(engine, "a")

    readers = [gevent.spawn(read) for _ in range(4)]

    def write(turn: int) -> None:
        def operation(tx: Transaction) -> None:
            for n in range(100):
                shelf.put(tx, f"{turn}.{n}-" + "x" * 3500)

        engine.run(operation)

    for turn in range(50):
        write(turn)
        largest = max(largest, log.stat().st_size)
    gevent.killall(readers)
    assert largest < 64 * 1024 * 1024
