"""docs/settings.md and `--help` are made from the table."""

from pathlib import Path

from app.cli.settings import current_text, markdown, settings_text
from app.settings import ROWS, load

PAGE = Path(__file__).resolve().parents[2] / "docs" / "settings.md"


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == markdown() + "\n", "run: fencepost-server settings --markdown > docs/settings.md"


def test_help_names_every_setting() -> None:
    assert all(row.variable in settings_text() for row in ROWS)


def test_what_is_in_force_is_shown_with_its_source_and_without_secrets(tmp_path: Path) -> None:
    key = "0123456789abcdef0123456789abcdef"
    text = current_text(load({"FENCEPOST_SECRET_KEY": key, "FENCEPOST_BIND": "[::1]:8001"}, tmp_path))
    assert "FENCEPOST_SECRET_KEY=(set)  [environment]" in text
    assert key not in text
    assert "FENCEPOST_BIND=[::1]:8001  [environment]" in text
    assert "FENCEPOST_LIMIT_WAITERS=10000  [default]" in text
