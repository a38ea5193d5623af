"""The one table. A row: name without the prefix, default as people read it, parser, what it does, since when.

A default of `None` is worked out from other settings in load.py; `default` then says how. Rows marked secret are
never printed, not even in a refusal.
"""

from collections.abc import Callable
from dataclasses import dataclass

from app.settings import parse

PREFIX = "FENCEPOST_"
EXAMPLE_SECRET_KEY = "example-key-replace-me-with-openssl-rand-hex-32"  # noqa: S105 - refused at start

# Names with our prefix that belong to the client and its `run` command: no business of the server, not unknown.
FOREIGN = frozenset({"FENCEPOST_URL", "FENCEPOST_KEY", "FENCEPOST_FENCE"})


@dataclass(frozen=True, slots=True)
class Row:
    """One knob. `text` is what an unset variable is read as; None where load.py derives the value."""

    name: str
    default: str
    text: str | None
    parse: Callable[[str], object]
    meaning: str
    since: str = "0.1.0"
    secret: bool = False

    @property
    def variable(self) -> str:
        """The name of the environment variable."""
        return PREFIX + self.name

    @property
    def field(self) -> str:
        """The name of the attribute of Settings."""
        return self.name.lower()


def _row(name: str, text: str, parser: Callable[[str], object], meaning: str) -> Row:
    return Row(name, text, text, parser, meaning)


def _derived(name: str, default: str, parser: Callable[[str], object], meaning: str, *, secret: bool = False) -> Row:
    return Row(name, default, None, parser, meaning, secret=secret)


ROWS: tuple[Row, ...] = (
    _row("DATA_DIR", "./data", parse.path, "Folder of everything kept on disk. Made at start, for the owner only."),
    _derived(
        "DATABASE_URL",
        "SQLite file in the data folder",
        parse.database_url,
        "Where leases, handoffs and claims live: `sqlite:///FILE` or `postgresql://…` (14 or later).",
        secret=True,
    ),
    Row("BIND", "127.0.0.1:8000", "127.0.0.1:8000", parse.listen_address, "Address and port to listen on."),
    _derived("PUBLIC_URL", "from `BIND`", parse.public_url, "Address by which people and programs reach the server."),
    _derived(
        "SECRET_KEY",
        "made on first start (SQLite); required (PostgreSQL)",
        parse.secret,
        "Key of sessions and of sealed records. The same on every node. On SQLite it is made on the first start and "
        "kept in `secret.key` in the data folder, mode 0600.",
        secret=True,
    ),
    _derived(
        "WORKERS",
        "1 on SQLite, one per core on PostgreSQL",
        parse.whole(1, 256),
        "Serving processes. More than 1 is refused on SQLite, whose file belongs to one process.",
    ),
    _derived(
        "ALLOWED_ORIGINS",
        "the public URL's",
        parse.origins,
        "Comma list of browser origins that may open the WebSocket and use the dashboard.",
    ),
    _derived(
        "BUS",
        "PostgreSQL itself",
        parse.bus_url,
        "How processes tell each other of changes: unset, `redis://…`, or `postgresql://…` past a pooler. Only with "
        "PostgreSQL.",
        secret=True,
    ),
    _derived(
        "PRICE_ONCE_CLAIM",
        "none: free",
        parse.dollars,
        "Price of a once-key claim in US dollars, such as `0.010`. Switches metering on.",
    ),
    _derived("X402_PAY_TO", "none", parse.words, "Wallet address that x402 payments go to."),
    _derived("X402_NETWORK", "none", parse.words, "Network of x402 payments, such as `eip155:8453`."),
    _derived("X402_FACILITATOR", "none", parse.web_address, "Address of the x402 facilitator."),
    _row(
        "ONCE_STRONG_NAMES",
        "off",
        parse.switch,
        "Ask of new once namespaces at least 16 characters of two classes, so that nobody guesses or squats them.",
    ),
    _derived(
        "RECEIPT_KEY_FILE",
        "none: derived from `SECRET_KEY`",
        parse.path,
        "File with the Ed25519 keys of receipts, a JWK set: the first signs, the others stay published. Made and "
        "rotated by `fencepost-server rotate-receipt-key`; the same on every node.",
    ),
    _row(
        "LIMITS",
        "auto",
        parse.one_of("auto", "on", "off"),
        "Whom the per-address limits count: `auto` everybody but loopback and private peers without forwarding "
        "headers, `on` everybody, `off` nobody.",
    ),
    _row("LIMIT_REQUESTS_PER_DAY", "5000", parse.whole(1, 10**12), "Requests per address and UTC day."),
    _row("LIMIT_HANDOFFS_PER_DAY", "100", parse.whole(1, 10**12), "Handoffs created per address and UTC day."),
    _row("LIMIT_LIVE_HANDOFFS", "4096", parse.whole(1, 10**9), "Handoffs that may be open at once."),
    _row("LIMIT_WAITERS", "10000", parse.whole(1, 1_000_000), "Open waits and sockets per process."),
    _row(
        "TRUSTED_PROXIES",
        "0",
        parse.whole(0, 10),
        "How many reverse proxies stand in front; that many of the last forwarded addresses are believed.",
    ),
    _derived(
        "NOTIFY_ALLOW",
        "none",
        parse.networks,
        "Comma list of private networks (CIDR) that webhooks may go to, on any port.",
    ),
    _row("NOTIFY_PORTS", "80,443,8080,8443", parse.ports, "Ports that webhooks may go to."),
    _row("SWEEP_SECONDS", "3600", parse.seconds(0.1, 86400), "Real seconds between two sweeps of what has ended."),
    _derived("BACKUP_DIR", "`backups` in the data folder", parse.path, "Where `fencepost-server backup` writes."),
    _row(
        "LOG_FORMAT",
        "auto",
        parse.one_of("auto", "text", "json"),
        "One line per event: `text` is key=value, `json` is JSON; `auto` is text on a terminal and JSON otherwise.",
    ),
    _row(
        "LOG_LEVEL",
        "info",
        parse.one_of("debug", "info", "warning", "error"),
        "The least that is logged. Request lines are `info`.",
    ),
    _row(
        "WRITE_DEADLINE_SECONDS",
        "3",
        parse.seconds(0.05, 60),
        "How long a call may wait for the database before it is answered 503.",
    ),
    _row(
        "POSTGRES_CONNECTIONS", "10", parse.whole(2, 1000), "The most connections to PostgreSQL that a process opens."
    ),
    _row("BODY_DEADLINE_SECONDS", "10", parse.seconds(0.1, 300), "How long a request body may take to arrive."),
    _row("HEADER_DEADLINE_SECONDS", "10", parse.seconds(0.1, 300), "How long a request's head may take to arrive."),
    _row("ANSWER_DEADLINE_SECONDS", "10", parse.seconds(0.1, 300), "How long a client may take to read an answer."),
    _row(
        "KEEPALIVE_SECONDS",
        "75",
        parse.seconds(1, 3600),
        "How long an idle connection stays open. Longer than the proxy in front keeps its own (nginx: 60).",
    ),
    _row(
        "ALLOW_WEAK_DURABILITY",
        "off",
        parse.switch,
        "Start although PostgreSQL has `fsync` or `synchronous_commit` off. Said on every start and page.",
    ),
    _row(
        "TEST_MODE",
        "off",
        parse.switch,
        "What tests of a real server need, and nothing else. Refused with an https public URL.",
    ),
    _derived(
        "TEST_CLOCK_FILE",
        "none",
        parse.path,
        "Test mode: file with a number of seconds that is added to the deciding clock.",
    ),
    _derived("TEST_FAILPOINTS", "none", parse.path, "Test mode: file of `name action` lines, see docs/testing.md."),
)

BY_VARIABLE = {row.variable: row for row in ROWS}
