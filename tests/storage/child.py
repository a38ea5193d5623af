"""What the restart tests run in a process of its own: `python -m tests.storage.child COMMAND DATABASE [patched]`."""

import sys

if "patched" in sys.argv:
    from gevent import monkey

    monkey.patch_all()

import resource
from pathlib import Path

import gevent

from app.clock import SteadyClock
from app.storage.engine import Transaction, Unavailable
from app.storage.sqlite import SqliteEngine
from tests.storage import shelf


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def once(database: Path) -> None:
    """Open and close."""
    SqliteEngine(database, clock=SteadyClock()).close()


def write(database: Path) -> None:
    """Eight callers write for ever and say what was acknowledged."""
    engine = SqliteEngine(database, clock=SteadyClock())

    def caller(who: int) -> None:
        for n in range(1_000_000):
            name = f"{who}-{n}"

            def operation(tx: Transaction, name: str = name) -> int:
                shelf.put(tx, name)
                return tx.next_fence()

            _say(f"{name} {engine.run(operation)} .")

    gevent.joinall([gevent.spawn(caller, who) for who in range(8)])


def io_error(database: Path) -> None:
    """The file may grow no more: the system answers EFBIG, which SQLite takes for a broken disk."""
    engine = SqliteEngine(database, clock=SteadyClock(), on_fatal=lambda reason: _say(f"fatal: {reason}"))
    engine.run(lambda tx: shelf.put(tx, "small"))
    _say("small stored")
    size = database.with_name(database.name + "-wal").stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    for name in ("large", "after"):
        try:
            shelf.putting(engine, name).get()
        except Unavailable as fault:
            _say(f"{name} {fault.committed}")
    problems = engine.report()["problems"]
    assert isinstance(problems, list)
    _say(f"problems: {', '.join(problems)}")
    engine.close()


if __name__ == "__main__":
    {"once": once, "write": write, "io-error": io_error}[sys.argv[1]](Path(sys.argv[2]))
