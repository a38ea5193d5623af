"""The command line: `fencepost-server VERB`.

Exit codes: 0 done or stopped, 1 the self-test found a fault, 2 wrong usage, 70 failed (starting again may help), 78
refused (it will not).
"""

import argparse
import sys
from collections.abc import Callable, Sequence

from app import __version__
from app.settings import Settings, StartRefused, load

REFUSED = 78


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb; the exit code."""
    given = _parser().parse_args(arguments)
    verb: Callable[[argparse.Namespace], int] = given.run
    try:
        return verb(given)
    except StartRefused as refused:
        for sentence in refused.sentences:
            _say(f"fencepost-server: {sentence}", to_error=True)
        return REFUSED


def _parser() -> argparse.ArgumentParser:
    from app.cli.credits import add_parsers as add_credit_parsers
    from app.cli.operator import add_parsers
    from app.cli.settings import settings_text

    parser = argparse.ArgumentParser(
        prog="fencepost-server",
        description="Leases, handoffs and once-keys for fleets of agents.",
        epilog=settings_text(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"fencepost-server {__version__}")
    verbs = parser.add_subparsers(metavar="VERB", required=True)
    serve = verbs.add_parser("serve", help="serve until stopped by SIGTERM or Ctrl-C")
    serve.set_defaults(run=_serve)
    migrate = verbs.add_parser("migrate", help="bring the database's schema up to this version")
    migrate.set_defaults(run=_migrate)
    settings = verbs.add_parser("settings", help="show every setting, its value and where it came from")
    settings.add_argument("--markdown", action="store_true", help="print the reference page instead")
    settings.set_defaults(run=_settings)
    rotate = verbs.add_parser("rotate-receipt-key", help="put a new signing key into FENCEPOST_RECEIPT_KEY_FILE")
    rotate.set_defaults(run=_rotate_receipt_key)
    backup = verbs.add_parser("backup", help="copy the SQLite database, beside a running server or without one")
    backup.add_argument("file", nargs="?", metavar="FILE", help="where to; default: a new file in FENCEPOST_BACKUP_DIR")
    backup.set_defaults(run=_backup)
    restore = verbs.add_parser("restore", help="put a backup in place of a database that is not there")
    restore.add_argument("file", metavar="FILE")
    restore.add_argument(
        "--without-log",
        action="store_true",
        help="take in a file that was copied while it was served",
    )
    restore.add_argument(
        "--above-epoch",
        type=int,
        default=0,
        metavar="N",
        help="the highest epoch its fences ever had",
    )
    restore.set_defaults(run=_restore)
    sweep = verbs.add_parser("sweep", help="remove what is over now, instead of at the next interval")
    sweep.set_defaults(run=_sweep)
    operator = verbs.add_parser("operator", help="say who may sign in to the dashboard")
    add_parsers(operator)
    operator.set_defaults(run=_operator)
    credits = verbs.add_parser("credits", help="give credit, where claims have a price")
    add_credit_parsers(credits)
    credits.set_defaults(run=_credits)
    check = verbs.add_parser("selftest", help="check a running installation from outside; leaves nothing behind")
    check.add_argument("--against", metavar="URL", required=True, help="its public address")
    check.set_defaults(run=_selftest)
    return parser


def _serve(_: argparse.Namespace) -> int:
    from app.serving.arbiter import serve
    from app.serving.prepare import prepared

    settings = prepared(load())
    serve(settings, listening=lambda: announce(settings))
    return 0


def announce(settings: Settings) -> None:
    """Say what a person wants to know of a start."""
    store = f"SQLite, {settings.sqlite_file}" if settings.is_sqlite else "PostgreSQL"
    _say(f"Fencepost {__version__} listens on http://{settings.listens_on}")
    if settings.public_url != f"http://{settings.listens_on}":
        _say(f"Public address: {settings.public_url}")
    _say(f"Data: {settings.data_dir} ({store})")
    if settings.test_mode:
        _say("TEST MODE: tests may move this server's clock and stop it at failpoints. Not for real work.")
    sys.stdout.flush()


def _migrate(_: argparse.Namespace) -> int:
    from app.cli.migrate import migrate_database
    from app.serving.prepare import prepared

    before, after = migrate_database(prepared(load()))
    _say(f"The schema is {after}, as it was." if before == after else f"The schema went from {before} to {after}.")
    return 0


def _rotate_receipt_key(_: argparse.Namespace) -> int:
    from app.cli.receipt_key import rotate_receipt_key
    from app.serving.prepare import prepared

    settings = prepared(load())
    _say(f"The signing key is {rotate_receipt_key(settings)} once every node has this file and was restarted.")
    return 0


def _backup(given: argparse.Namespace) -> int:
    from app.cli.backup import backup

    for line in backup(load(), given.file):
        _say(line)
    return 0


def _restore(given: argparse.Namespace) -> int:
    from app.cli.backup import restore
    from app.serving.prepare import prepared

    settings = prepared(load())
    for line in restore(settings, given.file, without_log=given.without_log, above_epoch=given.above_epoch):
        _say(line)
    return 0


def _sweep(_: argparse.Namespace) -> int:
    from app.cli.reach import A_DAY_SECONDS, done, installed
    from app.serving.prepare import prepared

    removed = done(prepared(installed(load())), {"verb": "sweep"}, patience_seconds=A_DAY_SECONDS)["removed"]
    _say("Swept " + ", ".join(f"{count} {kind}" for kind, count in removed.items()) + ".")
    return 0


def _operator(given: argparse.Namespace) -> int:
    from app.cli.operator import run
    from app.cli.reach import installed
    from app.serving.prepare import prepared

    for line in run(prepared(installed(load())), given):
        _say(line)
    return 0


def _credits(given: argparse.Namespace) -> int:
    from app.cli.credits import run
    from app.cli.reach import installed
    from app.serving.prepare import prepared

    for line in run(prepared(installed(load())), given):
        _say(line)
    return 0


def _selftest(given: argparse.Namespace) -> int:
    from app.cli.selftest import INSTALL, selftest

    try:
        return 0 if selftest(given.against, _say) else 1
    except ImportError:
        _say(f"fencepost-server: {INSTALL}", to_error=True)
        return REFUSED


def _settings(given: argparse.Namespace) -> int:
    from app.cli.settings import current_text, markdown

    _say(markdown() if given.markdown else current_text(load()))
    return 0


def _say(text: str, *, to_error: bool = False) -> None:
    (sys.stderr if to_error else sys.stdout).write(text + "\n")


if __name__ == "__main__":
    sys.exit(main())
