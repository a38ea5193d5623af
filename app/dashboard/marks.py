"""Text that nobody trusts, on a page.

It is escaped, and what a reader would not see is drawn: control characters, zero-width ones, overrides of the writing
direction, tags, variation selectors, odd blanks; and letters of another alphabet inside a Latin word, which look like
its own (Trojan Source; denoland/deno #36195). A mark names the character, so that nobody signs what they cannot see.
"""

import re
import unicodedata

from markupsafe import Markup, escape

_PLAIN_BLANKS = frozenset("\n\t ")
_HIDDEN_KINDS = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"})
_ALSO_HIDDEN = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
_WORD = re.compile(r"\w+")
_NAMED = {0x0A: "LINE FEED", 0x0D: "CARRIAGE RETURN", 0x1B: "ESCAPE", 0x00: "NULL", 0x7F: "DELETE", 0x08: "BACKSPACE"}


def is_hidden(character: str) -> bool:
    """Whether a reader would not see that this character is there."""
    if " " <= character <= "~" or character in _PLAIN_BLANKS:
        return False
    point = ord(character)
    is_selector = 0xFE00 <= point <= 0xFE0F or 0xE0100 <= point <= 0xE01EF or 0x180B <= point <= 0x180F
    return is_selector or character in _ALSO_HIDDEN or unicodedata.category(character) in _HIDDEN_KINDS


def look_alikes(text: str) -> set[int]:
    """The places of letters that look like Latin ones and stand in a word with Latin ones, or are odd forms of them."""
    if text.isascii():
        return set()
    found: set[int] = set()
    for word in _WORD.finditer(text):
        letters = word.group()
        if letters.isascii():
            continue
        is_latin = any("a" <= letter.lower() <= "z" for letter in letters)
        for place, letter in enumerate(letters, word.start()):
            if not letter.isascii() and (_is_odd_form(letter) or (is_latin and _is_of_other_alphabet(letter))):
                found.add(place)
    return found


def count(text: str) -> int:
    """How many characters of it are marked."""
    return sum(map(is_hidden, text)) + len(look_alikes(text))


def shown(text: object) -> Markup:
    """Safe markup of a text: escaped, hidden characters as visible marks, in a box of its own writing direction."""
    return Markup('<bdi class="theirs">%s</bdi>') % marked(str(text))


def marked(text: str) -> Markup:
    """The same without the box."""
    if text.isascii() and text.isprintable():
        return escape(text)
    alike = look_alikes(text)
    pieces: list[Markup] = []
    plain = 0
    for place, character in enumerate(text):
        kind = "alike" if place in alike else "hidden" if is_hidden(character) else None
        if kind is not None:
            pieces += [escape(text[plain:place]), _mark(character, kind)]
            plain = place + 1
    pieces.append(escape(text[plain:]))
    return Markup("").join(pieces)


def _mark(character: str, kind: str) -> Markup:
    point = ord(character)
    name = unicodedata.name(character, _NAMED.get(point, "CONTROL CHARACTER" if point < 0xA0 else "UNASSIGNED"))
    inside = f"{character} U+{point:04X}" if kind == "alike" else f"U+{point:04X}"
    return Markup('<span class="mark" title="%s">%s</span>') % (name, inside)


def _is_of_other_alphabet(letter: str) -> bool:
    return unicodedata.name(letter, "").startswith(("CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC", "LISU"))


def _is_odd_form(letter: str) -> bool:
    folded = unicodedata.normalize("NFKC", letter)
    return folded.isascii() and folded.isalpha() and unicodedata.category(letter).startswith("L")
