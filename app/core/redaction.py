"""Values under secret names never reach the disk.

A result is kept exactly as it was sent, so redaction edits text: it walks the JSON, finds the members whose name
says "secret", and replaces only the bytes of their values. Names are compared lower-cased (ASCII) without `-`, `_`
and spaces, after their escapes are read (`pass\\u0077ord` is `password`):

- equal to one of NAMES: the value goes, whatever its type;
- containing one of them: it goes when it is text, an object or an array; a number, boolean or null stays, because
  `total_tokens: 512` is a count.

A secret inside an ordinary value cannot be found; the docs say so.
"""

import re
from json import loads

NAMES = ("authorization", "password", "passwd", "secret", "token", "privatekey", "apikey")
REPLACEMENT = '"[redacted]"'

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+', re.DOTALL)
_SUSPECT = re.compile("|".join(NAMES))
_FILLER = str.maketrans("", "", "-_ ")


def redact(text: str) -> str:
    """The JSON text with the values of secret members replaced. The text must be valid JSON, checked before."""
    if "\\" not in text and not _SUSPECT.search(_plain(text)):
        return text
    pieces: list[str] = []
    kept_to = 0
    for start, end in _secret_values(text):
        pieces.append(text[kept_to:start])
        pieces.append(REPLACEMENT)
        kept_to = end
    pieces.append(text[kept_to:])
    return "".join(pieces)


def _plain(name: str) -> str:
    lowered = "".join(chr(ord(c) + 32) if "A" <= c <= "Z" else c for c in name) if not name.isascii() else name.lower()
    return lowered.translate(_FILLER)


def _is_secret(name: str, value_is_scalar: bool) -> bool:
    plain = _plain(name)
    if plain in NAMES:
        return True
    return not value_is_scalar and _SUSPECT.search(plain) is not None


def _secret_values(text: str) -> list[tuple[int, int]]:
    """The outermost spans to replace, in order."""
    tokens = [(found.group(), found.start(), found.end()) for found in _TOKEN.finditer(text)]
    spans: list[tuple[int, int]] = []
    place = 0
    while place < len(tokens):
        word = tokens[place][0]
        is_name = word[0] == '"' and place + 1 < len(tokens) and tokens[place + 1][0] == ":"
        if not is_name:
            place += 1
            continue
        value = place + 2
        first = tokens[value][0]
        if _is_secret(loads(word), value_is_scalar=first[0] not in '"{['):
            last = _end_of_value(tokens, value)
            spans.append((tokens[value][1], tokens[last][2]))
            place = last + 1
        else:
            place = value
    return spans


def _end_of_value(tokens: list[tuple[str, int, int]], start: int) -> int:
    depth = 0
    for place in range(start, len(tokens)):
        word = tokens[place][0]
        if word in "{[":
            depth += 1
        elif word in "}]":
            depth -= 1
        if depth == 0:
            return place
    raise ValueError("not a JSON text")
