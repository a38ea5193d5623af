"""How an admin verb reaches the store: through the server that serves it, or by opening it.

On SQLite the running server holds the file, so it is asked over its socket; when none runs this process opens the file
itself. On PostgreSQL it always uses the database.
"""

from collections.abc import Callable, Mapping
from typing import Any

from app.admin import verbs
from app.admin.socket import NobodyServes, ask
from app.clock import DatabaseClock, SteadyClock
from app.services.credit import Credits
from app.services.people import People
from app.services.sweep import EVERY_CHORE, Sweep
from app.settings import Settings, StartRefused
from app.storage.engine import Engine
from app.storage.sqlite import SqliteEngine
from app.testmode import Failpoints, offset_from
from app.wire.prices import CLAIM, prices

A_MOMENT_SECONDS = 15.0
A_DAY_SECONDS = 86_400.0


def installed(settings: Settings) -> Settings:
    """The settings, unless they name a SQLite file that is not there: an admin verb makes no database by accident.

    Raises StartRefused. To be asked before anything makes the data folder.
    """
    if settings.is_sqlite and not settings.sqlite_file.exists():
        raise StartRefused(
            f"{settings.sqlite_file} is not there, so nothing was done. Is FENCEPOST_DATA_DIR right? "
            "`fencepost-server migrate` makes a new database."
        )
    return settings


def done(settings: Settings, asked: Mapping[str, Any], *, patience_seconds: float = A_MOMENT_SECONDS) -> dict[str, Any]:
    """What the verb answered. Raises StartRefused with the sentence when it could not be done."""
    said = _answer(settings, asked, patience_seconds)
    if not said["ok"]:
        raise StartRefused(str(said["error"]))
    return said


def _answer(settings: Settings, asked: Mapping[str, Any], patience_seconds: float) -> dict[str, Any]:
    if settings.is_sqlite:
        try:
            return ask(settings.data_dir, asked, patience_seconds=patience_seconds)
        except NobodyServes:
            pass
        except OSError as fault:
            raise StartRefused(f"The server does not answer on its admin socket: {fault}.") from fault
    engine = _engine(settings)
    try:
        return verbs.answer(_verbs(settings, engine), dict(asked))
    finally:
        engine.close()


def _verbs(settings: Settings, engine: Engine) -> dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]]:
    sweep = Sweep(engine, EVERY_CHORE, Failpoints())
    known = verbs.verbs(People(engine), settings.public_url) | verbs.sweep_verb(sweep.run)
    cost = prices(settings.price_once_claim)
    if cost:
        known |= verbs.credit_verb(Credits(engine, price=cost[CLAIM], server_key=settings.secret_key.encode()))
    return known | verbs.backup_verb(engine.backup) if isinstance(engine, SqliteEngine) else known


def _engine(settings: Settings) -> Engine:
    offset = offset_from(settings.test_clock_file if settings.test_mode else None)
    if settings.is_sqlite:
        return SqliteEngine(settings.sqlite_file, clock=SteadyClock(offset))
    from app.storage.postgres import PostgresEngine

    weak = settings.allow_weak_durability
    return PostgresEngine(settings.database_url, clock=DatabaseClock(offset), connections=2, allow_weak_durability=weak)
