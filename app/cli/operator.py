"""`fencepost-server operator add|list|remove`: who may sign in to the dashboard.

On SQLite the running server holds the file, so it is asked over its socket; when none runs this process opens the
file itself. On PostgreSQL it always uses the database.
"""

import argparse
import getpass
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from app.settings import Settings, StartRefused

if TYPE_CHECKING:
    from app.storage.engine import Engine


def add_parsers(operator: argparse.ArgumentParser) -> None:
    """The three verbs below `operator`."""
    what = operator.add_subparsers(metavar="WHAT", dest="what", required=True)
    add = what.add_parser("add", help="let somebody sign in; asks for a password, or reads it from standard input")
    add.add_argument("name")
    add.add_argument("--role", choices=("operator", "viewer"), default="operator", help="a viewer only looks")
    what.add_parser("list", help="who may sign in")
    what.add_parser("remove", help="let somebody sign in no more, and end their sessions").add_argument("name")


def run(settings: Settings, given: argparse.Namespace) -> list[str]:
    """Do it; the lines to say. Raises StartRefused with what is wrong."""
    asked = {"verb": f"operator {given.what}"}
    if given.what != "list":
        asked["name"] = given.name
    if given.what == "add":
        asked |= {"role": given.role, "password": _password(given.name)}
    answer = _answer(settings, asked)
    if not answer["ok"]:
        raise StartRefused(str(answer["error"]))
    if given.what == "add":
        return [f"{given.name} may sign in as {given.role} on {settings.public_url}/sign-in"]
    if given.what == "remove":
        return [f"{given.name} may not sign in any more."]
    people = answer["people"]
    return [f"{one['name']}  {one['role']}  since {one['added_at']}" for one in people] or ["Nobody may sign in yet."]


def _answer(settings: Settings, asked: Mapping[str, Any]) -> dict[str, Any]:
    from app.admin import verbs
    from app.admin.socket import NobodyServes, ask
    from app.services.people import People

    if settings.is_sqlite:
        try:
            return ask(settings.data_dir, asked)
        except NobodyServes:
            pass
    engine = _engine(settings)
    try:
        return verbs.answer(verbs.verbs(People(engine)), dict(asked))
    finally:
        engine.close()


def _engine(settings: Settings) -> "Engine":
    from app.clock import DatabaseClock, SteadyClock
    from app.storage.postgres import PostgresEngine
    from app.storage.sqlite import SqliteEngine
    from app.testmode import offset_from

    offset = offset_from(settings.test_clock_file if settings.test_mode else None)
    if settings.is_sqlite:
        return SqliteEngine(settings.sqlite_file, clock=SteadyClock(offset))
    weak = settings.allow_weak_durability
    return PostgresEngine(settings.database_url, clock=DatabaseClock(offset), connections=2, allow_weak_durability=weak)


def _password(name: str) -> str:
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    password = getpass.getpass(f"Password of {name}: ")
    if getpass.getpass("Once more: ") != password:
        raise StartRefused("The two passwords differ; nothing was done.")
    return password
