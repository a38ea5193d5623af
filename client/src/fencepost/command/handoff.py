"""`fencepost handoff …` and `fencepost review`: make, look, move, wait, watch, decide."""

import argparse
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import fencepost
from fencepost import RawJson
from fencepost.command import exits, secret, show
from fencepost.command.words import Parsers, takes_json

_TOKEN = "FENCEPOST_HANDOFF_TOKEN"  # noqa: S105 - the name of a variable
_LINK = "FENCEPOST_REVIEW_LINK"


def add(verbs: Parsers, shared: list[argparse.ArgumentParser]) -> None:
    """The words of this noun."""
    create = verbs.add_parser("create", parents=shared, help="a new handoff; its payload is JSON on standard input")
    create.add_argument("--payload-file", metavar="FILE", default="-", help="the payload (standard input)")
    create.add_argument("--states", metavar="A,B,…", help="in order; the first is the start")
    create.add_argument("--final", metavar="B,…", help="states that end it (the last one)")
    create.add_argument("--note", help="the first entry of its history")
    create.add_argument("--title", help="for lists and pages")
    create.add_argument("--audience", choices=["agent", "person"], help="person: in the operator's inbox")
    create.add_argument("--ttl", type=int, metavar="SECONDS", help="its life (a day)")
    create.add_argument("--token-file", metavar="FILE", help="where the owner's token goes")
    create.add_argument("--receiver-file", metavar="FILE", help="where the receiver's token goes")
    create.add_argument("--show-tokens", action="store_true", help="print both tokens and the review link")
    create.set_defaults(act=_create)
    for name, act, text in (
        ("show", _show, "payload, state and history"),
        ("move", _move, "move it into a state"),
        ("wait", _wait, "until it is in one of the states, or ended"),
        ("watch", _watch, "print each change until it ends"),
    ):
        verb = verbs.add_parser(name, parents=shared, help=text)
        verb.add_argument("handoff_id", metavar="ID")
        verb.add_argument("--token-file", metavar="FILE", help=f"a token of either side (or set {_TOKEN})")
        verb.set_defaults(act=act)
    verbs.choices["move"].add_argument("state")
    verbs.choices["move"].add_argument("--from", dest="expect", metavar="STATE", help="where it must be (as read now)")
    verbs.choices["move"].add_argument("--note")
    verbs.choices["wait"].add_argument("states", nargs="*", metavar="STATE")
    verbs.choices["wait"].add_argument("--timeout", type=float, default=3600.0, metavar="SECONDS")
    verbs.choices["watch"].add_argument("--after", type=int, default=0, metavar="VERSION", help="tell what came later")


def _create(given: argparse.Namespace, fp: fencepost.Client) -> int:
    if not (given.show_tokens or (given.token_file and given.receiver_file)):
        raise secret.Missing("say where the tokens go: --token-file and --receiver-file, or --show-tokens")
    made = fp.handoffs.create(
        RawJson(takes_json(given.payload_file)),
        note=given.note,
        states=given.states.split(",") if given.states else None,
        final=given.final.split(",") if given.final else None,
        title=given.title,
        audience=given.audience,
        ttl=given.ttl,
    )
    for file, token in ((given.token_file, made.token), (given.receiver_file, made.receiver_token)):
        if file:
            secret.save(Path(file), token)
    told: dict[str, Any] = {"handoff_id": made.handoff_id, "state": made.state, "version": made.version}
    told["expires_at"] = made.view["expires_at_timestamp"]
    if given.show_tokens:
        told |= {"owner_token": made.token, "receiver_token": made.receiver_token, "review_url": made.review_url}
    show.show(told, as_json=given.json)
    return exits.DONE


def _open(given: argparse.Namespace, fp: fencepost.Client) -> fencepost.Handoff:
    return fp.handoffs.open(given.handoff_id, secret.needed(_TOKEN, given.token_file, "--token-file"))


def _show(given: argparse.Namespace, fp: fencepost.Client) -> int:
    _print(_open(given, fp).read(), as_json=given.json)
    return exits.DONE


def _print(view: Any, *, as_json: bool) -> None:
    if as_json:
        show.show(view, as_json=True)
        return
    names = ("handoff_id", "title", "state", "ended", "role", "allowed", "payload", "note", "seconds_left")
    show.show({name: view.get(name) for name in names}, as_json=False)
    show.table([{**entry, "at": entry["at"]} for entry in view["history"]], ["at", "by", "from", "state", "note"])


def _move(given: argparse.Namespace, fp: fencepost.Client) -> int:
    moved = _open(given, fp).move(given.state, note=given.note, expect=given.expect)
    show.show({name: moved[name] for name in ("state", "previous", "version", "ended")}, as_json=given.json)
    return exits.DONE


def _wait(given: argparse.Namespace, fp: fencepost.Client) -> int:
    handoff = _open(given, fp)
    try:
        with show.countdown("waiting for a decision", given.timeout, is_quiet=given.quiet):
            handoff.wait_until(*given.states, timeout=given.timeout)
    except TimeoutError:
        show.show({"state": handoff.state, "reached": False}, as_json=given.json)
        return exits.NOT_GRANTED
    is_reached = not given.states or handoff.state in given.states
    show.show({"state": handoff.state, "reached": is_reached}, as_json=given.json)
    return exits.DONE if is_reached else exits.REFUSED


def _watch(given: argparse.Namespace, fp: fencepost.Client) -> int:
    for change in _open(given, fp).changes(after=given.after):
        if given.json:
            show.show(asdict(change), as_json=True)
        else:
            arrow = f"{change.previous} -> {change.state}" if change.previous else change.state
            note = f"  {show.visible(change.note)}" if change.note else ""
            sys.stdout.write(f"{show.instant(change.at)}  {change.version:>2}  {change.by}: {arrow}{note}\n")
        sys.stdout.flush()
    return exits.DONE


def hide_link(words: list[str]) -> None:
    """A review link holds a token. If it stands in the arguments, begin anew without it there, at once."""
    for at, word in enumerate(words):
        if word.startswith(("http://", "https://")) and "#" in word:
            rest = [*words[:at], *words[at + 1 :]]
            environment = os.environ | {_LINK: word}
            os.execve(sys.executable, [sys.executable, "-m", "fencepost.command.main", *rest], environment)


def review(given: argparse.Namespace) -> int:
    """Show the handoff behind a review link, and decide."""
    if given.link_file or os.environ.get(_LINK):
        link = secret.needed(_LINK, given.link_file, "--link-file")
    else:
        import getpass

        link = getpass.getpass("Review link (not shown): ").strip()
    parts = urlsplit(link)
    with fencepost.Client(given.url or f"{parts.scheme}://{parts.netloc}") as fp:
        try:
            handoff = fp.handoffs.from_link(link)
        except ValueError as fault:
            raise secret.Missing(str(fault)) from None
        view = handoff.read()
        _print(view, as_json=given.json)
        choice, note = given.decide, given.note
        if not view["allowed"] or (choice is None and not sys.stdin.isatty()):
            return exits.DONE
        if choice is None:
            choice, note = _ask(view["allowed"])
            if choice is None:
                return exits.DONE
        moved = handoff.move(choice, note=note)
    show.show({"state": moved["state"], "ended": moved["ended"]}, as_json=given.json)
    return exits.DONE


def _ask(allowed: list[str]) -> tuple[str | None, str | None]:
    """What the person chooses, and the note; None to leave it undecided."""
    for number, state in enumerate(allowed, start=1):
        sys.stderr.write(f"  {number}  {state}\n")
    while True:
        sys.stderr.write("Decide (number or name, empty to leave it): ")
        sys.stderr.flush()
        word = sys.stdin.readline().strip()
        if not word:
            return None, None
        if word.isascii() and word.isdigit() and 1 <= int(word) <= len(allowed):
            word = allowed[int(word) - 1]
        if word in allowed:
            break
    sys.stderr.write("Note (may be empty): ")
    sys.stderr.flush()
    note = sys.stdin.readline().strip() or None
    sys.stderr.write(f"Move it to {word}? [y/N] ")
    sys.stderr.flush()
    return (word, note) if sys.stdin.readline().strip().lower() in {"y", "yes"} else (None, None)
