"""`fencepost run KEY -- COMMAND…`: a lease is held while the command runs.

The command is told to go (TERM to its whole group) a grace before the lease could be another's, and is gone (KILL)
before that. The lease is released only after nothing of the group runs any more.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import Any

import fencepost
from fencepost import Completed, Conflict, Held, LeaseLost, NotGranted, RawJson
from fencepost.command import exits, secret, show
from fencepost.command.attend import Attended, Ending
from fencepost.errors import FencepostError
from fencepost.refusals import ResultTooLarge

_SHARE_OF_TTL = 3
_TOKENS = ("FENCEPOST_OWNER_TOKEN", "FENCEPOST_CLAIM_TOKEN", "FENCEPOST_ONCE_TOKEN", "FENCEPOST_HANDOFF_TOKEN")


def run(given: argparse.Namespace, command: Sequence[str]) -> int:
    """Hold the lease, run the command; the exit code."""
    key, namespace = secret.lease_key(given.key, given.namespace_file)
    lease = fencepost.Client(given.url).lease(
        key,
        namespace=namespace,
        ttl=given.ttl,
        wait=given.wait,
        fingerprint=given.fingerprint,
        holder=given.holder,
        raise_if_lost=False,
    )
    with _ended_by_signals(), ExitStack() as held:
        try:
            with show.countdown("waiting for the lease", given.wait, is_quiet=given.quiet):
                held.enter_context(lease)
        except NotGranted as refusal:
            return _not_granted(refusal.outcome, given)
        except LeaseLost:
            return exits.NOT_GRANTED
        except FencepostError as fault:
            show.say(str(fault))
            return exits.NOT_GRANTED
        return _hold(lease, key, given, command)


def _hold(lease: Any, key: str, given: argparse.Namespace, command: Sequence[str]) -> int:
    environment = environment_of_child() | {"FENCEPOST_KEY": key, "FENCEPOST_FENCE": str(lease.fencing_token)}
    attended = Attended(
        command,
        environment,
        grace_seconds=min(given.grace, given.ttl / _SHARE_OF_TTL),
        seconds_certain=lambda: lease.seconds_certain,
        is_lost=lambda: lease.lost.is_set(),
        captures=given.complete_with_stdout,
    )
    try:
        ending = attended.run()
    except OSError as fault:
        return cannot_start(fault)
    if ending.was_ended or lease.lost.is_set():
        return _lost(lease, given, environment)
    if ending.code == 0 and given.complete_with_stdout:
        return _complete(lease, given, environment, ending)
    return ending.code


def _complete(lease: Any, given: argparse.Namespace, environment: dict[str, str], ending: Ending) -> int:
    try:
        if not ending.is_output_whole:
            raise ResultTooLarge(413, {"error": "the output is too long to be recorded"})
        lease.complete(as_result(ending.output))
    except LeaseLost:
        return _lost(lease, given, environment)
    except FencepostError as fault:
        show.say(f"the command succeeded, but its output was not recorded: {fault}")
        return exits.NOT_RECORDED
    return passed_on(ending)


def _lost(lease: Any, given: argparse.Namespace, environment: dict[str, str]) -> int:
    reason = "expired"
    try:
        lease.check()
    except LeaseLost as lost:
        reason = lost.reason
    show.say(f"the lease was lost while the command ran ({reason}); everything it had started was ended")
    if given.on_lost:
        subprocess.run(
            ["sh", "-c", given.on_lost],
            env=environment | {"FENCEPOST_REASON": reason},
            check=False,
        )
    return exits.LOST


def _not_granted(outcome: object, given: argparse.Namespace) -> int:
    match outcome:
        case Completed(result=result):
            if given.skip_if_completed:
                print_result(result, is_wanted=given.complete_with_stdout)
                return exits.DONE
            show.say("the work under this key was completed already (--skip-if-completed makes that a success)")
        case Held(holder=holder, retry_after_seconds=seconds):
            show.say(f"the lease is held{f' by {holder}' if holder else ''}, for {seconds} s if it is not renewed")
        case Conflict():
            show.say("the key is bound to another fingerprint")
        case _:
            show.say("the lease was not granted")
    return exits.NOT_GRANTED


def passed_on(ending: Ending) -> int:
    """The exit code of a success that was recorded: whether its output came through as well."""
    if ending.is_output_passed_on:
        return exits.DONE
    show.say("the command succeeded and its output was recorded, but could not be written here")
    return exits.NOT_WRITTEN


def cannot_start(fault: OSError) -> int:
    """Say why a command could not be started; the exit code that shells use for it."""
    show.say(f"the command cannot be run: {fault.strerror}")
    return exits.NOT_FOUND if isinstance(fault, FileNotFoundError) else exits.CANNOT_RUN


def as_result(output: bytes) -> Any:
    """A command's output as a result: JSON as it stands, other text as text without its last line end."""
    text = output.decode("utf-8", "replace")
    try:
        json.loads(text, parse_constant=_no_constant)
    except ValueError:
        return text.removesuffix("\n")
    return RawJson(text.strip())


def _no_constant(_: str) -> None:
    raise ValueError


def print_result(result: Any, *, is_wanted: bool = True) -> None:
    """Print a recorded result as the command had printed it."""
    if not is_wanted:
        return
    if isinstance(result, str):
        sys.stdout.write(result + "\n")
    elif result is not None:
        show.show({"result": result} if not isinstance(result, dict) else result, as_json=True)


def environment_of_child() -> dict[str, str]:
    """Our environment without tokens, for what we start."""
    return {name: value for name, value in os.environ.items() if name.removesuffix("_FILE") not in _TOKENS}


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Outside the command's run, SIGTERM and SIGHUP end us as Ctrl-C does: what is held is given back."""

    def leave(number: int, _: FrameType | None) -> None:
        raise SystemExit(128 + number)

    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {number: signal.signal(number, leave) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
