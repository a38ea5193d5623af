"""Variables to one frozen value, or to the sentences why not."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from app.settings import dotenv
from app.settings.parse import Network
from app.settings.table import BY_VARIABLE, EXAMPLE_SECRET_KEY, FOREIGN, PREFIX, ROWS, Row

_ANY_INTERFACE = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}  # noqa: S104 - compared, not bound


class StartRefused(Exception):
    """The server must not start like this, and starting it again will not help: settings, schema, a file in use.

    `sentences` says why, one sentence for each fault, without secret values.
    """

    def __init__(self, *sentences: str) -> None:
        super().__init__("\n".join(sentences))
        self.sentences = sentences


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Every setting, checked. One attribute for each row of the table; `sources` says where each came from.

    `sources` maps the variable's name to `default`, `environment` or `.env`. `secret_key` is empty on SQLite until
    the start has read or made the key file.
    """

    data_dir: Path
    database_url: str = field(repr=False)
    bind: tuple[str, int]
    public_url: str
    secret_key: str = field(repr=False)
    workers: int
    allowed_origins: tuple[str, ...]
    bus: str | None = field(repr=False)
    price_once_claim: Decimal | None
    x402_pay_to: str | None
    x402_network: str | None
    x402_facilitator: str | None
    once_strong_names: bool
    receipt_key_file: Path | None
    limits: str
    limit_requests_per_day: int
    limit_handoffs_per_day: int
    limit_live_handoffs: int
    limit_waiters: int
    trusted_proxies: int
    notify_allow: tuple[Network, ...]
    notify_ports: tuple[int, ...]
    sweep_seconds: float
    backup_dir: Path
    log_format: str
    log_level: str
    write_deadline_seconds: float
    postgres_connections: int
    body_deadline_seconds: float
    header_deadline_seconds: float
    answer_deadline_seconds: float
    keepalive_seconds: float
    allow_weak_durability: bool
    test_mode: bool
    test_clock_file: Path | None
    test_failpoints: Path | None
    sources: Mapping[str, str]

    @property
    def is_sqlite(self) -> bool:
        """Whether the embedded engine serves: one process, one file."""
        return self.database_url.startswith("sqlite:")

    @property
    def sqlite_file(self) -> Path:
        """The file of the embedded engine."""
        return Path(self.database_url.removeprefix("sqlite:///")).absolute()

    @property
    def listens_on(self) -> str:
        """`host:port` as gunicorn and people read it."""
        return f"{self.bind[0]}:{self.bind[1]}"


def load(environment: Mapping[str, str] | None = None, folder: Path | None = None) -> Settings:
    """Read the environment, and `.env` in `folder` (default: the working directory) for what it does not set.

    Raises StartRefused with every fault at once. An empty variable counts as not set.
    """
    env = os.environ if environment is None else environment
    filed, sentences = dotenv.read((folder or Path()) / ".env")
    ours = {name: (text, ".env") for name, text in filed.items() if name.startswith(PREFIX) and text}
    ours |= {name: (text, "environment") for name, text in env.items() if name.startswith(PREFIX) and text}
    sentences += [_unknown(name) for name in ours if name not in BY_VARIABLE and name not in FOREIGN]
    values: dict[str, Any] = {}
    for row in ROWS:
        text = ours[row.variable][0] if row.variable in ours else row.text
        values[row.field] = None if text is None else _parsed(row, text, sentences)
    if sentences:
        raise StartRefused(*sentences)
    _derive(values)
    if sentences := _contradictions(values, given=set(ours)):
        raise StartRefused(*sentences)
    sources = {row.variable: ours[row.variable][1] if row.variable in ours else "default" for row in ROWS}
    return Settings(**values, sources=sources)


def _unknown(name: str) -> str:
    near = get_close_matches(name, BY_VARIABLE, n=1, cutoff=0.6)
    hint = f"Did you mean {near[0]}?" if near else "See `fencepost-server --help` for the list."
    return f"{name!r} is no setting. {hint}".replace("'", "")


def _parsed(row: Row, text: str, sentences: list[str]) -> Any:
    try:
        return row.parse(text.strip())
    except ValueError as fault:
        shown = "" if row.secret else f" It is {text[:80]!r}."
        sentences.append(f"{row.variable} must be {fault}.{shown}")
        return None


def _derive(values: dict[str, Any]) -> None:
    data_dir: Path = values["data_dir"].absolute()
    host, port = values["bind"]
    values["data_dir"] = data_dir
    values["database_url"] = values["database_url"] or f"sqlite:///{data_dir / 'fencepost.db'}"
    values["public_url"] = values["public_url"] or f"http://{_ANY_INTERFACE.get(host, host)}:{port}"
    values["secret_key"] = values["secret_key"] or ""
    is_sqlite = values["database_url"].startswith("sqlite:")
    values["workers"] = values["workers"] or (1 if is_sqlite else os.cpu_count() or 1)
    values["allowed_origins"] = values["allowed_origins"] or (values["public_url"],)
    values["notify_allow"] = values["notify_allow"] or ()
    values["backup_dir"] = values["backup_dir"] or data_dir / "backups"


def _contradictions(values: dict[str, Any], given: set[str]) -> list[str]:
    """Settings that are sound one by one but not together."""
    is_sqlite = values["database_url"].startswith("sqlite:")
    x402 = [values[name] for name in ("x402_pay_to", "x402_network", "x402_facilitator")]
    tests_only = [name for name in ("FENCEPOST_TEST_CLOCK_FILE", "FENCEPOST_TEST_FAILPOINTS") if name in given]
    found = [
        (
            values["secret_key"] == EXAMPLE_SECRET_KEY,
            "FENCEPOST_SECRET_KEY is the example from the documentation; make your own with `openssl rand -hex 32`.",
        ),
        (
            not values["secret_key"] and not is_sqlite,
            "FENCEPOST_SECRET_KEY is required with PostgreSQL, and must be the same on every node; "
            "make one with `openssl rand -hex 32`.",
        ),
        (
            is_sqlite and values["workers"] > 1,
            "FENCEPOST_WORKERS must be 1 on SQLite: its file belongs to one process. Use PostgreSQL for more.",
        ),
        (
            is_sqlite and values["bus"] is not None,
            "FENCEPOST_BUS is for PostgreSQL: on SQLite there is one process and nobody else to tell.",
        ),
        (
            values["test_mode"] and values["public_url"].startswith("https:"),
            "FENCEPOST_TEST_MODE is refused with an https FENCEPOST_PUBLIC_URL: it would let tests move the clock of "
            "a real service.",
        ),
        (
            bool(tests_only) and not values["test_mode"],
            f"{' and '.join(tests_only)} can only be set with FENCEPOST_TEST_MODE=1.",
        ),
        (
            any(x402) and not all(x402),
            "FENCEPOST_X402_PAY_TO, FENCEPOST_X402_NETWORK and FENCEPOST_X402_FACILITATOR must be set together.",
        ),
    ]
    return [sentence for applies, sentence in found if applies]
