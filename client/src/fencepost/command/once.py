"""`fencepost once …`: an action exactly once, from a shell. Tokens live in files or the environment."""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import fencepost
from fencepost import Claimed, Duplicate, InProgress, InProgressElsewhere, RawJson, keys
from fencepost.command import exits, run, secret, show
from fencepost.command.attend import Attended, Ending
from fencepost.command.words import Parsers, takes_json
from fencepost.refusals import ClaimLost, ResultTooLarge

_CLAIM = "FENCEPOST_CLAIM_TOKEN"
_OWNER = "FENCEPOST_ONCE_TOKEN"
_GRACE_SECONDS = 10.0


def add(verbs: Parsers, shared: list[argparse.ArgumentParser]) -> None:
    """The words of this noun."""
    claim = verbs.add_parser("claim", parents=shared, help="be the one to act, or learn that it was done")
    complete = verbs.add_parser("complete", parents=shared, help="record the result (JSON on standard input)")
    release = verbs.add_parser("release", parents=shared, help="give the claim back undone")
    command = verbs.add_parser("run", parents=shared, help="run a command exactly once: once run NS KEY -- COMMAND…")
    for verb in (claim, complete, release, command):
        verb.add_argument("application", metavar="NAMESPACE", help="the application's name")
        verb.add_argument("action_key", metavar="KEY", help="what is done once")
        verb.add_argument("--once-token-file", metavar="FILE", help=f"the namespace's token (or {_OWNER})")
    for verb in (claim, command):
        verb.add_argument("--ttl", type=int, metavar="SECONDS", help="life of the claim (a day)")
        verb.add_argument("--lease-ttl", type=int, metavar="SECONDS", help="taken over after so long without renewal")
        verb.add_argument("--wait", type=float, default=0.0, metavar="SECONDS", help="wait for another's end (0)")
        verb.add_argument("--payload-file", metavar="FILE", help="JSON that the key is bound to")
    for verb in (claim, complete, release):
        verb.add_argument("--claim-file", metavar="FILE", help=f"the claim token's file (or {_CLAIM})")
    claim.add_argument("--show-token", action="store_true", help="print the claim token")
    complete.add_argument("--result-file", metavar="FILE", default="-", help="the result (standard input)")
    claim.set_defaults(act=_claim)
    complete.set_defaults(act=_complete)
    release.set_defaults(act=_release)
    command.set_defaults(act=_run)


def _with_token(given: argparse.Namespace, fp: fencepost.Client) -> None:
    token = secret.given(_OWNER, given.once_token_file)
    if token is not None:
        fp.onces.tokens[given.application] = token
    elif fp.onces.tokens.of(given.application) is None:
        raise secret.Missing(
            f"whose namespace is it? Set {_OWNER} to its token (for a new one: nst_ and 43 letters of base64url), or "
            "FENCEPOST_ONCE_SECRET to a text of 16 characters or more from which all tokens are made"
        )


def _payload(given: argparse.Namespace) -> Any:
    return None if given.payload_file is None else json.loads(takes_json(given.payload_file))


def _claim(given: argparse.Namespace, fp: fencepost.Client) -> int:
    _with_token(given, fp)
    token, file = secret.given(_CLAIM, None), Path(given.claim_file) if given.claim_file else None
    if token is None:
        if file is None and not given.show_token:
            raise secret.Missing(f"say where the claim token goes: --claim-file FILE, --show-token, or bring {_CLAIM}")
        token = keys.mint_claim_token()
        if file is not None:
            secret.save(file, token)
    with show.countdown("waiting for the other", given.wait, is_quiet=given.quiet):
        outcome = fp.onces.claim(
            given.application,
            given.action_key,
            payload=_payload(given),
            ttl=given.ttl,
            lease_ttl=given.lease_ttl,
            wait=given.wait,
            claim_token=token,
        )
    told: dict[str, Any] = {"status": "claimed"}
    code = exits.DONE
    match outcome:
        case Claimed():
            told |= {"fencing_token": outcome.fencing_token, "attempt": outcome.attempt, "recovered": outcome.recovered}
            told |= {"expires_at": outcome.expires_at} | ({"claim_token": token} if given.show_token else {})
        case Duplicate():
            told = {"status": "duplicate", "has_result": outcome.has_result, "result": outcome.result}
            code = exits.COMPLETED
        case InProgress():
            told = {"status": "in progress", "retry_after_seconds": outcome.retry_after_seconds}
            code = exits.NOT_GRANTED
        case _:
            told, code = {"status": "conflict"}, exits.REFUSED
    show.show(told, as_json=given.json)
    return code


def _complete(given: argparse.Namespace, fp: fencepost.Client) -> int:
    _with_token(given, fp)
    token = secret.needed(_CLAIM, given.claim_file, "--claim-file")
    result = RawJson(takes_json(given.result_file))
    try:
        stands = fp.onces.complete(given.application, given.action_key, result, claim_token=token)
    except ClaimLost:
        show.show({"status": "lost"}, as_json=given.json)
        return exits.LOST
    show.show({"status": "completed", "result": stands}, as_json=given.json)
    return exits.DONE


def _release(given: argparse.Namespace, fp: fencepost.Client) -> int:
    _with_token(given, fp)
    token = secret.needed(_CLAIM, given.claim_file, "--claim-file")
    try:
        fp.onces.release(given.application, given.action_key, claim_token=token)
    except ClaimLost:
        show.show({"status": "lost"}, as_json=given.json)
        return exits.LOST
    show.show({"status": "released"}, as_json=given.json)
    return exits.DONE


class _Failed(Exception):
    """The command ended with another code than 0: the claim is given back."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


def _run(given: argparse.Namespace, fp: fencepost.Client) -> int:
    _with_token(given, fp)
    command: Sequence[str] = given.command
    endings: list[Ending] = []

    def act(_: Any = None) -> Any:
        ending = Attended(command, run.environment_of_child(), grace_seconds=_GRACE_SECONDS, captures=True).run()
        endings.append(ending)
        if ending.code != 0:
            raise _Failed(ending.code)
        if not ending.is_output_whole:
            return "x" * (1 << 16)  # refused as too large: done, recorded without a result
        return run.as_result(ending.output)

    try:
        with show.countdown("waiting for the other", given.wait, is_quiet=given.quiet):
            result = fp.once(
                given.application,
                given.action_key,
                act,
                payload=_payload(given),
                ttl=given.ttl,
                lease_ttl=given.lease_ttl,
                wait=given.wait,
            )
    except _Failed as failed:
        return failed.code
    except InProgressElsewhere:
        show.say("another caller is at it")
        return exits.NOT_GRANTED
    except ClaimLost:
        show.say("another caller took the action over while it ran here")
        return exits.LOST
    except ResultTooLarge:
        show.say("the command succeeded; its output is too long and was not recorded")
        return exits.NOT_RECORDED
    except OSError as fault:
        return run.cannot_start(fault)
    if endings:
        return run.passed_on(endings[0])
    run.print_result(result)
    return exits.DONE
