"""`fencepost WORDS…`: reads the words, does what they say, answers with an exit code (see exits.py).

Everything after the first `--` belongs to the command that is run and is never read as ours.
"""

import argparse
import io
import os
import sys
from collections.abc import Sequence

import fencepost
from fencepost.command import completion, exits, handoff, lease, once, run, secret, show
from fencepost.command.words import shared_options, split_command
from fencepost.errors import FencepostError, Unreachable

_CODES = """exit codes: 0 done, 1 refused, 2 wrong usage, 3 completed before, 69 the server cannot be reached,
73 done but not recorded, 74 the output cannot be written, 75 not granted in time, 76 lost, 126 and 127 the command
cannot be run;
`run` and `once run` pass on the command's own code, 128 + n when signal n ended it"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the words say; the exit code."""
    _make_streams_safe()
    words, command = split_command(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["review"]:
        handoff.hide_link(words)
    parser = make_parser()
    given = parser.parse_args(words)
    if given.takes_command is not (command is not None) or command == []:
        parser.error("say the command after --" if given.takes_command else "nothing may follow -- here")
    given.command = command
    try:
        code = _act(given, parser)
        sys.stdout.flush()
        return code
    except secret.Missing as missing:
        show.say(str(missing))
        return exits.USAGE
    except Unreachable as fault:
        show.say(str(fault))
        return exits.UNREACHABLE
    except (FencepostError, ValueError) as fault:
        show.say(str(fault))
        return exits.REFUSED
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        show.write_no_more(sys.stdout)
        return 141
    except OSError as fault:
        show.write_no_more(sys.stdout)
        show.say(f"the output cannot be written: {fault.strerror}")
        return exits.NOT_WRITTEN


def _make_streams_safe() -> None:
    """Have 0, 1 and 2 open, else the next socket would be our standard output; reading and writing fail as before.

    Text that the output's encoding lacks is escaped, for an answer must not turn into an error once it was given.
    """
    for number, mode in ((0, os.O_WRONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, mode), True)
    sys.stdin = sys.stdin or os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", encoding="utf-8", closefd=False)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _act(given: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    match given.noun:
        case "run":
            return run.run(given, given.command)
        case "namespace":
            return lease.new_namespace(given)
        case "review":
            return handoff.review(given)
        case "completion":
            sys.stdout.write(completion.script(given.shell, parser))
            return exits.DONE
    with fencepost.Client(given.url) as fp:
        code: int = given.act(given, fp)
        return code


def make_parser() -> argparse.ArgumentParser:
    """All the words there are."""
    parser = argparse.ArgumentParser(
        prog="fencepost",
        description="Leases, handoffs and once-keys of a Fencepost server. Secrets come from the environment, files "
        "or standard input, never from arguments.",
        epilog=_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"fencepost {fencepost.__version__}")
    parser.set_defaults(takes_command=False)
    nouns = parser.add_subparsers(dest="noun", metavar="NOUN", required=True)
    _add_run(
        nouns.add_parser("run", parents=shared_options(has_namespace=True), help="hold a lease while a command runs")
    )
    for name, adds, text in (
        ("lease", lease.add, "acquire, renew, release, complete, status, verify"),
        ("once", once.add, "claim, complete, release, run"),
        ("handoff", handoff.add, "create, show, move, wait, watch"),
    ):
        verbs = nouns.add_parser(name, help=text).add_subparsers(dest="verb", metavar="VERB", required=True)
        adds(verbs, shared_options(has_namespace=name == "lease"))
        if name == "once":
            verbs.choices["run"].set_defaults(takes_command=True)
    namespace = nouns.add_parser("namespace", help="new: a namespace for leases")
    new = namespace.add_subparsers(dest="verb", metavar="VERB", required=True).add_parser("new", help="print a new one")
    new.add_argument("--save", action="store_true", help="keep it for this user instead of printing it")
    new.add_argument("--json", action="store_true", help="print one JSON object")
    review = nouns.add_parser("review", parents=shared_options(has_namespace=False), help="decide what a link shows")
    review.add_argument("--link-file", metavar="FILE", help="the link (or set FENCEPOST_REVIEW_LINK, or be asked)")
    review.add_argument("--decide", metavar="STATE", help="move it there without asking")
    review.add_argument("--note", help="a note for the history")
    shell = nouns.add_parser("completion", help="print the completion script of a shell")
    shell.add_argument("shell", choices=completion.SHELLS)
    return parser


def _add_run(parser: argparse.ArgumentParser) -> None:
    parser.usage = "fencepost run KEY [options] -- COMMAND…"
    parser.add_argument("key", help="the key in your namespace; - reads FENCEPOST_KEY")
    parser.add_argument("--ttl", type=int, default=60, metavar="SECONDS", help="how long without renewal (60)")
    parser.add_argument("--wait", type=float, default=0.0, metavar="SECONDS", help="how long to wait for it (0)")
    parser.add_argument("--grace", type=float, default=10.0, metavar="SECONDS", help="between TERM and KILL (10)")
    parser.add_argument("--fingerprint", metavar="TEXT", help="bind the key to its input")
    parser.add_argument("--holder", metavar="NAME", help="shown to those refused; no secret")
    parser.add_argument("--on-lost", metavar="CMD", help="a shell command to run once when the lease was lost")
    parser.add_argument("--complete-with-stdout", action="store_true", help="on success, its output is the result")
    parser.add_argument("--skip-if-completed", action="store_true", help="completed before: succeed without running")
    parser.set_defaults(takes_command=True)


if __name__ == "__main__":
    sys.exit(main())
