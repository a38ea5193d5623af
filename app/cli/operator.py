"""`fencepost-server operator add|list|remove`: who may sign in to the dashboard."""

import argparse
import getpass
import sys

from app.settings import Settings, StartRefused


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
    from app.cli.reach import done

    asked = {"verb": f"operator {given.what}"}
    if given.what != "list":
        asked["name"] = given.name
    if given.what == "add":
        asked |= {"role": given.role, "password": _password(given.name)}
    answer = done(settings, asked)
    if given.what == "add":
        return [f"{given.name} may sign in as {given.role} on {answer['sign_in']}"]
    if given.what == "remove":
        return [f"{given.name} may not sign in any more."]
    people = answer["people"]
    return [f"{one['name']}  {one['role']}  since {one['added_at']}" for one in people] or ["Nobody may sign in yet."]


def _password(name: str) -> str:
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    password = getpass.getpass(f"Password of {name}: ")
    if getpass.getpass("Once more: ") != password:
        raise StartRefused("The two passwords differ; nothing was done.")
    return password
