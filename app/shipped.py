"""Where the files are that travel with the code: templates, static files, migrations.

In a checkout they have folders of their own beside `app`; in an installed wheel they lie inside the package
(setup.py puts them there). Nothing else in the server builds a path from `__file__`.
"""

from pathlib import Path
from typing import Literal

_PACKAGE = Path(__file__).resolve().parent


def folder(name: Literal["templates", "static", "migrations"]) -> Path:
    """The absolute path of one of the shipped folders."""
    installed = _PACKAGE / "_shipped" / name
    return installed if installed.is_dir() else _PACKAGE.parent / name
