"""The table of settings for people: `--help`, the reference page, and what is in force now."""

import textwrap

from app.settings import ROWS, Settings
from app.settings.table import PREFIX

_INTRODUCTION = f"""# Settings

Environment variables that begin with `{PREFIX}`. A `.env` file in the working directory is read too; the environment
wins. An empty variable counts as not set. An unknown `{PREFIX}` name or a bad value stops the start with a sentence
(exit code 78). `fencepost-server settings` shows what is in force and where it came from.

This page is made from the table in `app/settings/table.py`: `fencepost-server settings --markdown > docs/settings.md`.

| name | default | what it does | since |
| --- | --- | --- | --- |"""


def settings_text() -> str:
    """For `--help`."""
    parts = ["Settings are environment variables, or lines of a .env file in the working directory:\n"]
    for row in ROWS:
        parts.append(f"  {row.variable} ({row.default})")
        parts.append(textwrap.fill(row.meaning, 100, initial_indent="      ", subsequent_indent="      "))
    return "\n".join(parts)


def markdown() -> str:
    """docs/settings.md."""
    lines = [_INTRODUCTION]
    for row in ROWS:
        default = row.default if row.text is None else f"`{row.text}`"
        lines.append(f"| `{row.variable}` | {default} | {row.meaning} | {row.since} |")
    return "\n".join(lines)


def current_text(settings: Settings) -> str:
    """Every setting with its value and source; of secrets only whether they are set."""
    lines = []
    for row in ROWS:
        value = getattr(settings, row.field)
        source = settings.sources[row.variable]
        shown = (f"({row.default})" if source == "default" else "(set)") if row.secret else _shown(value)
        lines.append(f"{row.variable}={shown}  [{source}]")
    return "\n".join(lines)


def _shown(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "on" if value else "off"
        case (str() as host, int() as port):
            return f"{host}:{port}"
        case tuple():
            return ",".join(str(item) for item in value)
        case _:
            return str(value)
