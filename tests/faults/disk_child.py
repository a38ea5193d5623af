"""What the disk tests trace: a process that grants leases on SQLite and says of each that it is granted, as it is.

    python -m tests.faults.disk_child DATABASE KEYS QUIET_SECONDS

Callers take keys together, so that commits come in groups; after a third and two thirds of them all is quiet for a
moment, so that the log is copied into the database and begun anew. `granted KEY FENCE` is written at once.
"""

import os
import sys
from pathlib import Path

from gevent import monkey

monkey.patch_all()

import gevent  # noqa: E402

from app.clock import SteadyClock  # noqa: E402
from app.core import lease as core  # noqa: E402
from app.services.lease import key_hash  # noqa: E402
from app.storage import lease as storage  # noqa: E402
from app.storage.engine import Transaction, Unavailable  # noqa: E402
from app.storage.sqlite import SqliteEngine  # noqa: E402
from tests.faults.mutants import BY_NAME  # noqa: E402

CALLERS = 4


def say(line: str) -> None:
    """To the tracer and to whoever reads, in one call."""
    os.write(1, f"{line}\n".encode())


def grant(engine: SqliteEngine, key: str) -> None:
    """One lease, committed, and only then told."""

    def operation(tx: Transaction) -> int:
        record = storage.lock_or_make(tx, key_hash(key, None))
        outcome = core.acquire(record, core.Ask(key.encode().ljust(32), 3_600), tx.next_fence, tx.now())
        assert isinstance(outcome, core.Granted)
        storage.save(tx, key_hash(key, None), outcome.record)
        return outcome.record.fence

    try:
        say(f"granted {key} {engine.run(operation)}")
    except Unavailable as fault:
        say(f"refused {key} {fault.committed}")


def main(database: Path, keys: int, quiet_seconds: float) -> None:
    """Grant so many keys."""
    engine = SqliteEngine(database, clock=SteadyClock(), on_fatal=lambda reason: say(f"fatal {reason}"))
    third = max(1, keys // 3)
    for start in range(0, keys, third):
        names = [f"key-{number}" for number in range(start, min(keys, start + third))]

        def caller(who: int, names: list[str] = names) -> None:
            for name in names[who::CALLERS]:
                grant(engine, name)

        gevent.joinall([gevent.spawn(caller, who) for who in range(CALLERS)])
        gevent.sleep(quiet_seconds)
    say("done")


if __name__ == "__main__":
    if os.environ.get("MUTANT"):
        BY_NAME[os.environ["MUTANT"]]()
    main(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
