"""How a page becomes bytes: the templates, and the small words that they share.

Escaping is on everywhere and an unknown name is a fault. Text from outside goes through `shown` (see marks.py). Times
are UTC and say so; what still runs is sent as seconds left, which the script counts down on the browser's monotonic
clock, so that a wrong clock there misleads nobody.
"""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from app.core.instants import SECOND, seconds_down
from app.dashboard import marks
from app.shipped import folder
from app.wire.reply import iso

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def in_words(seconds: int) -> str:
    """A time span for people, two units at most: `3 min 20 s`."""
    seconds = max(0, seconds)
    for place, (size, unit) in enumerate(_UNITS):
        if seconds >= size:
            rest = seconds % size
            size_below, unit_below = _UNITS[place + 1] if place + 1 < len(_UNITS) else (1, "")
            below = rest // size_below if unit_below else 0
            return f"{seconds // size} {unit}" + (f" {below} {unit_below}" if below else "")
    return "0 s"


def iso_words(at: int) -> str:
    """An instant (microseconds) in a sentence, with its zone."""
    text = iso(at)
    return f"{text[:10]} {text[11:19]} UTC"


def when(at: int) -> Markup:
    """An instant (microseconds) as an element of time, with its zone."""
    text = iso(at)
    day, time = text[:10], text[11:19]
    return Markup('<time datetime="%s">%s %s UTC</time>') % (text, day, time)


def left(microseconds: int, over: str = "0 s") -> Markup:
    """Time that runs out: the script counts it down from the seconds that were left when the page was made.

    `over` is what it says from the end on, until the page knows more.
    """
    seconds = max(0, microseconds)
    return Markup('<span class="left" data-left="%s" data-over="%s">%s</span>') % (
        f"{seconds / SECOND:.3f}",
        over,
        in_words(seconds_down(seconds)) if seconds else over,
    )


@lru_cache(maxsize=1)
def _templates() -> Environment:
    templates = Environment(
        loader=FileSystemLoader(folder("templates")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters |= {"shown": marks.shown, "when": when, "left": left, "in_words": in_words, "json": json.dumps}
    return templates


def render(template: str, words: Mapping[str, Any]) -> bytes:
    """The page as UTF-8."""
    return _templates().get_template(template).render(words).encode("utf-8", "replace")
