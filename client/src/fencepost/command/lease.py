"""`fencepost lease …`: the lease's calls for shells. Owner tokens live in files or the environment."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import fencepost
from fencepost import Completed, Conflict, Granted, Held, LeaseLost, RawJson, keys
from fencepost.command import exits, secret, show
from fencepost.command.words import Parsers, takes_json

_TOKEN = "FENCEPOST_OWNER_TOKEN"  # noqa: S105 - the name of a variable


def add(verbs: Parsers, shared: list[argparse.ArgumentParser]) -> None:
    """The words of this noun."""
    acquire = verbs.add_parser("acquire", parents=shared, help="take a lease, or wait for it")
    acquire.add_argument("key", help="the key in your namespace; - reads FENCEPOST_KEY")
    acquire.add_argument("--ttl", type=int, default=60, metavar="SECONDS", help="how long without renewal (60)")
    acquire.add_argument("--wait", type=float, default=0.0, metavar="SECONDS", help="how long to wait for it (0)")
    acquire.add_argument("--fingerprint", metavar="TEXT", help="bind the key to its input")
    acquire.add_argument("--holder", metavar="NAME", help="shown to those refused; no secret")
    acquire.add_argument("--show-token", action="store_true", help="print the owner token")
    acquire.set_defaults(act=_acquire)
    for name, act, text in (
        ("renew", _renew, "hold it for another TTL"),
        ("release", _release, "give it back"),
        ("complete", _complete, "record the result (JSON on standard input) and end it"),
    ):
        verb = verbs.add_parser(name, parents=shared, help=text)
        verb.add_argument("key")
        verb.set_defaults(act=act)
        if name == "renew":
            verb.add_argument("--ttl", type=int, default=60, metavar="SECONDS", help="how long from now (60)")
        if name == "complete":
            verb.add_argument("--result-file", metavar="FILE", default="-", help="the result (standard input)")
    for verb in (verbs.choices[name] for name in ("acquire", "renew", "release", "complete")):
        verb.add_argument("--token-file", metavar="FILE", help=f"the owner token's file (or set {_TOKEN})")
    status = verbs.add_parser("status", parents=shared, help="what anyone with the key may know")
    status.add_argument("key")
    status.add_argument("--watch", action="store_true", help="count down until it is free or completed")
    status.set_defaults(act=_status)
    verify = verbs.add_parser("verify", parents=shared, help="whether a fence is current: exit code 0, else 1")
    verify.add_argument("key")
    verify.add_argument("fence", type=int, nargs="?", help="the fencing token (FENCEPOST_FENCE)")
    verify.set_defaults(act=_verify)


def _acquire(given: argparse.Namespace, fp: fencepost.Client) -> int:
    key, namespace = secret.lease_key(given.key, given.namespace_file)
    token, file = secret.given(_TOKEN, None), Path(given.token_file) if given.token_file else None
    if token is None and file is not None and file.exists() and file.stat().st_size:
        token = secret.from_file(given.token_file)
    if token is None:
        if file is None and not given.show_token:
            raise secret.Missing(f"say where the owner token goes: --token-file FILE, --show-token, or bring {_TOKEN}")
        token = keys.mint_owner_token()
        if file is not None:
            secret.save(file, token)
    with show.countdown("waiting for the lease", given.wait, is_quiet=given.quiet):
        outcome = fp.leases.acquire(
            key,
            namespace=namespace,
            ttl=given.ttl,
            wait=given.wait,
            fingerprint=given.fingerprint,
            holder=given.holder,
            owner_token=token,
        )
    told: dict[str, Any] = {"status": _word(outcome)}
    match outcome:
        case Granted():
            told |= {"fencing_token": outcome.fencing_token, "ttl_seconds": outcome.ttl_seconds}
            told |= {"attempt": outcome.attempt, "owner_token": token if given.show_token else None}
        case Completed():
            told |= {"fencing_token": outcome.fencing_token, "completed_at": outcome.completed_at}
            told |= {"result": outcome.result}
        case Held():
            told |= {"retry_after_seconds": outcome.retry_after_seconds, "holder": outcome.holder}
            told |= {"held_since_at": outcome.held_since_at, "fencing_token": outcome.fencing_token}
    show.show(
        {name: value for name, value in told.items() if value is not None or name == "result"}, as_json=given.json
    )
    return {
        Granted: exits.DONE,
        Completed: exits.COMPLETED,
        Held: exits.NOT_GRANTED,
        Conflict: exits.REFUSED,
    }.get(type(outcome), exits.LOST)


def _word(outcome: object) -> str:
    return "held by you" if isinstance(outcome, Granted) else type(outcome).__name__.lower()


def _owned(given: argparse.Namespace) -> tuple[str, str, str | None]:
    key, namespace = secret.lease_key(given.key, given.namespace_file)
    return key, secret.needed(_TOKEN, given.token_file, "--token-file"), namespace


def _renew(given: argparse.Namespace, fp: fencepost.Client) -> int:
    key, token, namespace = _owned(given)
    is_held = fp.leases.renew(key, token, namespace=namespace, ttl=given.ttl)
    show.show({"status": "held by you" if is_held else "lost"}, as_json=given.json)
    return exits.DONE if is_held else exits.LOST


def _release(given: argparse.Namespace, fp: fencepost.Client) -> int:
    key, token, namespace = _owned(given)
    was_held = fp.leases.release(key, token, namespace=namespace)
    show.show({"status": "released" if was_held else "lost"}, as_json=given.json)
    return exits.DONE if was_held else exits.LOST


def _complete(given: argparse.Namespace, fp: fencepost.Client) -> int:
    key, token, namespace = _owned(given)
    result = takes_json(given.result_file)
    try:
        kept = fp.leases.complete(key, token, RawJson(result), namespace=namespace)
    except LeaseLost:
        show.show({"status": "lost"}, as_json=given.json)
        return exits.LOST
    show.show({"status": "completed", "result": kept}, as_json=given.json)
    return exits.DONE


def _status(given: argparse.Namespace, fp: fencepost.Client) -> int:
    key, namespace = secret.lease_key(given.key, given.namespace_file)
    told = fp.leases.status(key, namespace=namespace)
    while given.watch and told["status"] == "held":
        seconds = told["retry_after_seconds"]
        who = f"held by {told['holder']}" if told.get("holder") else "held"
        with show.countdown(who, seconds, is_quiet=given.quiet):
            show.pause(min(seconds, 5))
        told = fp.leases.status(key, namespace=namespace)
    show.show(_without_doubles(told), as_json=given.json)
    return exits.DONE


def _verify(given: argparse.Namespace, fp: fencepost.Client) -> int:
    key, namespace = secret.lease_key(given.key, given.namespace_file)
    fence = given.fence
    if fence is None:
        fence = int(secret.needed("FENCEPOST_FENCE", None, "FENCEPOST_FENCE_FILE="))
    is_current = fp.leases.verify(key, fence, namespace=namespace)
    show.show({"current": is_current}, as_json=given.json)
    return exits.DONE if is_current else exits.REFUSED


def _without_doubles(told: Any) -> dict[str, Any]:
    """Instants come in pairs; people and programs here get one of each, and no `ok`."""
    paired = {name.removesuffix("_timestamp") for name in told if name.endswith("_timestamp")}
    return {name: value for name, value in told.items() if name not in paired and name != "ok"}


def new_namespace(given: argparse.Namespace) -> int:
    """`fencepost namespace new`: minted here, nothing is sent."""
    made = keys.mint_namespace()
    if not given.save:
        sys.stdout.write(json.dumps({"namespace": made}) + "\n" if given.json else made + "\n")
        return exits.DONE
    place = secret.kept_namespace()
    if place.exists():
        raise secret.Missing(f"{place} has one already; remove it first if it is not needed any more")
    secret.save(place, made)
    show.show({"saved_in": str(place)}, as_json=given.json)
    return exits.DONE
