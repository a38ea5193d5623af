"""A payload for the eye: as a tree, and raw.

It is shown from the text that is stored, digit for digit: numbers never become numbers on the way (temporalio/ui
#2670), so `1e400`, `-0` and 40 digits stand as they were sent. A big one is shown in part; the raw text is whole.
"""

import hashlib
import json
from dataclasses import dataclass

from markupsafe import Markup

from app.dashboard import marks

_MOST_NODES = 1000
_OPEN_LEVELS = 3
_DEEP = 12
_WORDS = {True: "true", False: "false", None: "null"}


class _Number(str):
    """A number, as it is spelled."""


@dataclass(frozen=True, slots=True)
class ShownPayload:
    """What a page says of a payload."""

    tree: Markup
    raw: Markup
    size: int
    digest: str
    marked: int
    """How many characters nobody would have seen, or would have taken for others."""
    is_cut: bool
    """Whether the tree is only the beginning."""


def shown(payload: bytes) -> ShownPayload:
    """The payload as it is stored: JSON text in UTF-8, checked when it came."""
    text = payload.decode("utf-8")
    value = json.loads(text, parse_int=_Number, parse_float=_Number, object_pairs_hook=_Members)
    tree = _Tree()
    markup = Markup('<ul class="tree">%s</ul>') % tree.item(None, value, 0)
    hidden = max(marks.count(text), tree.marked)
    return ShownPayload(markup, marks.marked(text), len(payload), digest(payload), hidden, tree.left < 0)


def digest(payload: bytes) -> str:
    """SHA-256 of the stored bytes, in hex: what a decision is about."""
    return hashlib.sha256(payload).hexdigest()


class _Members(list[tuple[str, object]]):
    """An object: names and values in their order."""


class _Tree:
    def __init__(self) -> None:
        self.left = _MOST_NODES
        self.marked = 0

    def item(self, name: str | None, value: object, level: int) -> Markup:
        self.left -= 1
        label = Markup("")
        if name is not None:
            label = Markup('<span class="member">%s</span>: ') % self._text(name)
        if isinstance(value, list):
            return self._branch(label, value, level)
        return Markup("<li>%s%s</li>") % (label, self._leaf(value))

    def _branch(self, label: Markup, value: list[object], level: int) -> Markup:
        is_object = isinstance(value, _Members)
        signs = ("{", "}") if is_object else ("[", "]")
        count = f"{len(value)} {'member' if is_object else 'element'}{'' if len(value) == 1 else 's'}"
        if not value:
            return Markup("<li>%s%s%s</li>") % (label, *signs)
        items: list[Markup] = []
        for one in value:
            if self.left <= 0:
                self.left = -1
                items.append(Markup('<li class="soft">… more in the raw text</li>'))
                break
            name, inner = one if is_object and isinstance(one, tuple) else (None, one)
            items.append(self.item(name, inner, level + 1))
        start = Markup(' <span class="soft">%s %s %s</span>') % (signs[0], count, signs[1])
        is_open = Markup(" open") if level < _OPEN_LEVELS and len(value) <= 100 else ""
        folder = "tree deep" if level > _DEEP else "tree"
        return Markup('<li><details%s><summary>%s%s</summary><ul class="%s">%s</ul></details></li>') % (
            is_open,
            label,
            start,
            folder,
            Markup("").join(items),
        )

    def _leaf(self, value: object) -> Markup:
        if isinstance(value, _Number):
            return Markup("%s") % str(value)
        if isinstance(value, str):
            return Markup('"%s"') % self._text(value)
        return Markup("<b>%s</b>") % _WORDS[value]  # type: ignore[index]

    def _text(self, text: str) -> Markup:
        self.marked += marks.count(text)
        return marks.shown(text)
