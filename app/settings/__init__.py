"""Every knob of the server: FENCEPOST_* variables, one row each in table.py.

From the table come the checks at start, `fencepost-server --help`, docs/settings.md and the settings page, so none
of them can fall behind. A name that is not in the table or a value that cannot be read stops the start: a
misspelt limit that is silently ignored is found out too late. The environment wins over the `.env` file.
"""

from app.settings.load import Settings, StartRefused, load
from app.settings.table import PREFIX, ROWS, Row

__all__ = ["PREFIX", "ROWS", "Row", "Settings", "StartRefused", "load"]
