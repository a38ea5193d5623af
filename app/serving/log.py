"""The standard library's loggers, gunicorn's among them, in our one form of line, on standard error.

Request lines go to standard output by app/web/log.py; these are the few others: starts, stops, warnings, faults.
"""

import logging
import sys

from app.web.log import Events


def dress(log_format: str, log_level: str) -> None:
    """Give every logger our form; `fencepost.*` and gunicorn from this level, other libraries from warnings on.

    Safe to call again: at each reload.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Events(log_format))
    logging.getLogger().handlers = [handler]
    level = getattr(logging, log_level.upper())
    for name in ("fencepost", "gunicorn.error"):
        log = logging.getLogger(name)
        log.handlers = [handler]
        log.setLevel(level)
        log.propagate = False
