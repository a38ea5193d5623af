"""The table of settings: defaults, sources, and every way in which a start is refused."""

import dataclasses
from decimal import Decimal
from ipaddress import ip_network
from pathlib import Path

import pytest

from app.settings import ROWS, Settings, StartRefused, load
from app.settings.table import EXAMPLE_SECRET_KEY

KEY = "0123456789abcdef0123456789abcdef"
POSTGRES = {"FENCEPOST_DATABASE_URL": "postgresql://fp:secret-password@db/fencepost", "FENCEPOST_SECRET_KEY": KEY}


def refused(folder: Path, **variables: str) -> str:
    with pytest.raises(StartRefused) as caught:
        load({f"FENCEPOST_{name}": value for name, value in variables.items()}, folder)
    return str(caught.value)


def test_every_row_is_an_attribute_and_every_attribute_a_row() -> None:
    fields = {field.name for field in dataclasses.fields(Settings)} - {"sources"}
    assert fields == {row.field for row in ROWS}


def test_the_defaults_are_those_of_the_specification(tmp_path: Path) -> None:
    settings = load({}, tmp_path)
    assert settings.bind == ("127.0.0.1", 8000)
    assert settings.public_url == "http://127.0.0.1:8000"
    assert settings.allowed_origins == ("http://127.0.0.1:8000",)
    assert settings.is_sqlite
    assert settings.sqlite_file == settings.data_dir / "fencepost.db"
    assert settings.backup_dir == settings.data_dir / "backups"
    assert settings.data_dir.is_absolute()
    assert settings.workers == 1
    assert (settings.limits, settings.limit_requests_per_day, settings.limit_handoffs_per_day) == ("auto", 5000, 100)
    assert (settings.limit_live_handoffs, settings.limit_waiters, settings.trusted_proxies) == (4096, 10000, 0)
    assert settings.notify_allow == ()
    assert settings.notify_ports == (80, 443, 8080, 8443)
    assert (settings.sweep_seconds, settings.log_format, settings.log_level) == (3600.0, "auto", "info")
    assert settings.price_once_claim is None
    assert not settings.test_mode
    assert set(settings.sources.values()) == {"default"}


def test_the_environment_wins_over_the_env_file_and_each_setting_knows_its_source(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(
        "# a comment\nexport FENCEPOST_LOG_LEVEL = 'debug'\nFENCEPOST_LIMIT_WAITERS=7 # seven\nOTHER=x\n\n"
    )
    settings = load({"FENCEPOST_LIMIT_WAITERS": "9", "FENCEPOST_LOG_FORMAT": ""}, tmp_path)
    assert (settings.log_level, settings.limit_waiters) == ("debug", 9)
    assert settings.sources["FENCEPOST_LOG_LEVEL"] == ".env"
    assert settings.sources["FENCEPOST_LIMIT_WAITERS"] == "environment"
    assert settings.sources["FENCEPOST_LOG_FORMAT"] == "default"


def test_a_line_of_the_env_file_that_cannot_be_read_is_named_without_its_text(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("FENCEPOST_SECRET_KEY='unclosed-secret\nnonsense\n")
    text = refused(tmp_path)
    assert "line 1" in text
    assert "line 2" in text
    assert "unclosed-secret" not in text


def test_an_unknown_name_is_refused_with_the_nearest_known_one(tmp_path: Path) -> None:
    assert "FENCEPOST_WORKERZ is no setting. Did you mean FENCEPOST_WORKERS?" in refused(tmp_path, WORKERZ="2")
    (tmp_path / ".env").write_text("FENCEPOST_LIMTS=on\n")
    assert "Did you mean FENCEPOST_LIMITS?" in refused(tmp_path)


def test_the_clients_own_variables_are_not_unknown(tmp_path: Path) -> None:
    load({"FENCEPOST_URL": "http://x", "FENCEPOST_KEY": "k", "FENCEPOST_FENCE": "1"}, tmp_path)


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("WORKERS", "0"),
        ("WORKERS", "257"),
        ("WORKERS", "two"),
        ("WORKERS", "²"),
        ("BIND", "localhost"),
        ("BIND", "127.0.0.1:65536"),
        ("BIND", "a b:80"),
        ("PUBLIC_URL", "ftp://x"),
        ("PUBLIC_URL", "https://x/path"),
        ("PUBLIC_URL", "https://user@x"),
        ("ALLOWED_ORIGINS", "https://a.example, nonsense"),
        ("DATABASE_URL", "mysql://x/y"),
        ("DATABASE_URL", "sqlite:///"),
        ("SECRET_KEY", "short"),
        ("SECRET_KEY", "a" * 64),
        ("PRICE_ONCE_CLAIM", "-1"),
        ("PRICE_ONCE_CLAIM", "1e2"),
        ("ONCE_STRONG_NAMES", "maybe"),
        ("LIMITS", "sometimes"),
        ("LIMIT_REQUESTS_PER_DAY", "0"),
        ("LIMIT_WAITERS", "-1"),
        ("TRUSTED_PROXIES", "11"),
        ("NOTIFY_ALLOW", "10.0.0.1/8"),
        ("NOTIFY_PORTS", "80,70000"),
        ("NOTIFY_PORTS", ","),
        ("SWEEP_SECONDS", "0"),
        ("SWEEP_SECONDS", "nan"),
        ("LOG_FORMAT", "xml"),
        ("LOG_LEVEL", "loud"),
        ("KEEPALIVE_SECONDS", "0"),
        ("WRITE_DEADLINE_SECONDS", "61"),
        ("X402_FACILITATOR", "nonsense"),
    ],
)
def test_a_bad_value_is_refused_with_what_is_needed(tmp_path: Path, name: str, bad: str) -> None:
    assert f"FENCEPOST_{name} must be " in refused(tmp_path, **{name: bad})


def test_all_faults_are_told_at_once(tmp_path: Path) -> None:
    text = refused(tmp_path, WORKERS="x", LOG_LEVEL="y", NONSENSE_AT_ALL="z")
    assert len(text.splitlines()) == 3


def test_good_values_are_read(tmp_path: Path) -> None:
    settings = load(
        {
            **POSTGRES,
            "FENCEPOST_DATABASE_URL": "postgres://fp@db/fencepost",
            "FENCEPOST_BIND": ":9000",
            "FENCEPOST_WORKERS": "256",
            "FENCEPOST_PUBLIC_URL": "https://Fence.Example.com/",
            "FENCEPOST_NOTIFY_ALLOW": "10.0.0.0/8, fd00::/8",
            "FENCEPOST_PRICE_ONCE_CLAIM": "0.010",
            "FENCEPOST_ONCE_STRONG_NAMES": "ON",
            "FENCEPOST_BUS": "redis://localhost:6379/0",
            "FENCEPOST_SWEEP_SECONDS": "0.5",
        },
        tmp_path,
    )
    assert settings.database_url == "postgresql://fp@db/fencepost"
    assert settings.listens_on == "0.0.0.0:9000"
    assert settings.workers == 256
    assert settings.public_url == "https://fence.example.com"
    assert settings.notify_allow == (ip_network("10.0.0.0/8"), ip_network("fd00::/8"))
    assert settings.price_once_claim == Decimal("0.010")
    assert settings.once_strong_names
    assert settings.sweep_seconds == 0.5


def test_a_price_of_zero_is_free(tmp_path: Path) -> None:
    assert load({"FENCEPOST_PRICE_ONCE_CLAIM": "0.00"}, tmp_path).price_once_claim is None


def test_on_every_interface_the_public_address_is_one_that_works(tmp_path: Path) -> None:
    assert load({"FENCEPOST_BIND": "0.0.0.0:81"}, tmp_path).public_url == "http://127.0.0.1:81"
    assert load({"FENCEPOST_BIND": "[::]:81"}, tmp_path).public_url == "http://[::1]:81"


def test_what_does_not_go_together_is_refused(tmp_path: Path) -> None:
    assert "example" in refused(tmp_path, SECRET_KEY=EXAMPLE_SECRET_KEY)
    assert "required with PostgreSQL" in refused(tmp_path, DATABASE_URL="postgresql://h/d")
    assert "must be 1 on SQLite" in refused(tmp_path, WORKERS="2")
    assert "is for PostgreSQL" in refused(tmp_path, BUS="redis://h")
    assert "https" in refused(tmp_path, TEST_MODE="1", PUBLIC_URL="https://x.example")
    assert "FENCEPOST_TEST_MODE=1" in refused(tmp_path, TEST_CLOCK_FILE="clock")
    assert "FENCEPOST_TEST_MODE=1" in refused(tmp_path, TEST_FAILPOINTS="points")
    assert "set together" in refused(tmp_path, X402_PAY_TO="0x1")


def test_test_mode_is_taken_with_an_http_address(tmp_path: Path) -> None:
    settings = load({"FENCEPOST_TEST_MODE": "1", "FENCEPOST_TEST_CLOCK_FILE": "clock"}, tmp_path)
    assert settings.test_mode
    assert settings.test_clock_file == Path("clock")


def test_secrets_are_neither_in_a_refusal_nor_in_the_repr(tmp_path: Path) -> None:
    bad = {"SECRET_KEY": "hunter2", "DATABASE_URL": "mysql://u:hunter3@h/d", "BUS": "http://u:hunter4@h"}
    text = refused(tmp_path, **bad)
    assert "hunter" not in text
    assert "secret-password" not in repr(load(POSTGRES, tmp_path))
    assert KEY not in repr(load(POSTGRES, tmp_path))
