"""The admin verbs: a request as a JSON object to an answer as a JSON object, over the socket or without one.

An answer is `{"ok": true, …}` or `{"ok": false, "error": sentence}`.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from app.core.credit import LARGEST_AMOUNT, UnknownCredit
from app.core.instants import seconds_down
from app.core.person import NameTaken, Person, PersonMalformed, Right
from app.services.credit import Credits
from app.services.people import People
from app.services.ports import Unavailable

Answer = dict[str, Any]
Verb = Callable[[Mapping[str, Any]], Answer]


def verbs(people: People, address: str) -> dict[str, Verb]:
    """The verbs of people by name; `address` is the public one, where they sign in."""

    def add(asked: Mapping[str, Any]) -> Answer:
        right: Right = "viewer" if asked.get("role") == "viewer" else "operator"
        name = str(asked.get("name", ""))
        match people.add(name=name, password=str(asked.get("password", "")), right=right):
            case Person():
                return {"ok": True, "sign_in": f"{address}/sign-in"}
            case PersonMalformed(error):
                return _refused(error + ".")
            case NameTaken():
                return _refused(f"{name} is there already. Remove it first to give it another password or role.")

    def everybody(_: Mapping[str, Any]) -> Answer:
        return {"ok": True, "people": [_person(person) for person in people.every()]}

    def remove(asked: Mapping[str, Any]) -> Answer:
        name = str(asked.get("name", ""))
        return {"ok": True} if people.remove(name) else _refused(f"There is nobody of the name {name!a}.")

    return {"operator add": add, "operator list": everybody, "operator remove": remove}


def sweep_verb(sweep: Callable[[], Mapping[str, int]]) -> dict[str, Verb]:
    """`sweep` removes what is over and says how many rows of each kind."""
    return {"sweep": lambda _: {"ok": True, "removed": dict(sweep())}}


def backup_verb(backup: Callable[[Path], None]) -> dict[str, Verb]:
    """`backup` writes a copy to a file that is not there yet."""

    def backed_up(asked: Mapping[str, Any]) -> Answer:
        file = Path(str(asked.get("file", "")))
        if not file.is_absolute():
            return _refused("The file of a backup must be named by its whole path.")
        try:
            backup(file)
        except FileExistsError:
            return _refused(f"{file} is there already; nothing was overwritten.")
        except OSError as fault:
            return _refused(f"The backup could not be written: {fault}.")
        return {"ok": True}

    return {"backup": backed_up}


def credit_verb(credits: Credits) -> dict[str, Verb]:
    """`credits grant` adds an amount to a token's account, or to a new one where none is named."""

    def granted(asked: Mapping[str, Any]) -> Answer:
        amount, shown = asked.get("amount"), asked.get("credit_token")
        if not isinstance(amount, int) or not 1 <= amount <= LARGEST_AMOUNT:
            return _refused("The amount is not one that can be granted.")
        made = credits.grant(amount, shown if isinstance(shown, str) else None)
        if isinstance(made, UnknownCredit):
            return _refused("Nobody was given that credit token; nothing was granted.")
        token, account = made
        return {"ok": True, "credit_token": token, "granted": account.granted, "balance": account.balance}

    return {"credits grant": granted}


def answer(known: Mapping[str, Verb], asked: object) -> Answer:
    """Do what is asked for."""
    verb = known.get(str(asked.get("verb"))) if isinstance(asked, dict) else None
    if verb is None or not isinstance(asked, dict):
        return _refused("This server does not know that verb; it may be of another release.")
    try:
        return verb(asked)
    except Unavailable as away:
        return _refused(f"The database does not answer: {away.reason}.")


def _refused(error: str) -> Answer:
    return {"ok": False, "error": error}


def _person(person: Person) -> dict[str, str]:
    added = datetime.fromtimestamp(seconds_down(person.added_at), UTC)
    return {"name": person.name, "role": person.right, "added_at": added.strftime("%Y-%m-%dT%H:%M:%SZ")}
