"""Receipts of once-keys, verified here, without asking anybody: proof that a server gave this very answer.

A receipt is an Ed25519 signature over the canonical JSON (RFC 8785) of the answer without it, with `result` replaced by
the SHA-256 of its bytes as answered. Verification (RFC 8032, section 5.1.7) is short enough to stand here in plain
integers: it takes some milliseconds and handles nothing secret, so that it need not be quick nor even in time.
"""

import hashlib
import json
from base64 import urlsafe_b64decode
from collections.abc import Mapping
from typing import Any

from fencepost.keys import exact

_P = 2**255 - 19
_ORDER = 2**252 + 27742317777372353535851937790883648493
_D = -121665 * pow(121666, -1, _P) % _P
_ROOT = pow(2, (_P - 1) // 4, _P)
_Point = tuple[int, int, int, int]
_DECODER = json.JSONDecoder(parse_int=str, parse_float=str)


def verify(answer: bytes, key_set: Mapping[str, Any]) -> bool:
    """Whether an answer, byte for byte as received, carries a receipt by one of these keys.

    `key_set` is what the server shows at /.well-known/fencepost-keys.json; keep a copy from a time when you trusted
    it. Anything that is no such answer is False.
    """
    try:
        members, result = _members(answer.decode("utf-8"))
        algorithm, key_id, signature = str(members.pop("receipt")).split(":")
        if algorithm != "ed25519" or "result_sha256" in members:
            return False
        if result is not None:
            members["result_sha256"] = hashlib.sha256(result.encode()).hexdigest()
        keys = [key["x"] for key in key_set["keys"] if key.get("kid") == key_id and key.get("crv") == "Ed25519"]
        return any(_is_signed(_bytes(key), exact(members), _bytes(signature)) for key in keys)
    except (ValueError, KeyError, TypeError):
        return False


def _members(text: str) -> tuple[dict[str, Any], str | None]:
    """The members of an object but `result`, and the text of that. Raises ValueError."""
    spans: dict[str, str] = {}
    at = _past(text, 0, "{")
    while True:
        name, at = _DECODER.raw_decode(text, _skip(text, at))
        start = _skip(text, _past(text, at, ":"))
        _, at = _DECODER.raw_decode(text, start)
        if not isinstance(name, str) or name in spans:
            raise ValueError("not an answer")
        spans[name] = text[start:at]
        at = _skip(text, at)
        if text[at : at + 1] == "}":
            break
        at = _past(text, at, ",")
    if text[at + 1 :].strip():
        raise ValueError("not an answer")
    result = spans.pop("result", None)
    members = {name: json.loads(span) for name, span in spans.items()}
    if any(isinstance(value, float) for value in members.values()):
        raise ValueError("an answer has whole numbers only")
    return members, result


def _skip(text: str, at: int) -> int:
    while text[at : at + 1] in (" ", "\t", "\n", "\r"):
        at += 1
    return at


def _past(text: str, at: int, mark: str) -> int:
    at = _skip(text, at)
    if text[at : at + 1] != mark:
        raise ValueError("not an answer")
    return at + 1


def _bytes(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _is_signed(key: bytes, message: bytes, signature: bytes) -> bool:
    if len(key) != 32 or len(signature) != 64:
        return False
    s = int.from_bytes(signature[32:], "little")
    if s >= _ORDER:
        return False
    public, r = _point(key), _point(signature[:32])
    h = int.from_bytes(hashlib.sha512(signature[:32] + key + message).digest(), "little") % _ORDER
    left, right = _times(s, _BASE), _sum(r, _times(h, public))
    return (left[0] * right[2] - right[0] * left[2]) % _P == 0 == (left[1] * right[2] - right[1] * left[2]) % _P


def _point(text: bytes) -> _Point:
    """The point that 32 bytes stand for. Raises ValueError."""
    y = int.from_bytes(text, "little")
    sign, y = y >> 255, y & (1 << 255) - 1
    if y >= _P:
        raise ValueError("no point")
    square = (y * y - 1) * pow(_D * y * y + 1, -1, _P) % _P
    x = pow(square, (_P + 3) // 8, _P)
    if (x * x - square) % _P:
        x = x * _ROOT % _P
    if (x * x - square) % _P or (x == 0 and sign):
        raise ValueError("no point")
    if x & 1 != sign:
        x = _P - x
    return x, y, 1, x * y % _P


def _sum(one: _Point, two: _Point) -> _Point:
    a = (one[1] - one[0]) * (two[1] - two[0]) % _P
    b = (one[1] + one[0]) * (two[1] + two[0]) % _P
    c, d = 2 * one[3] * two[3] * _D % _P, 2 * one[2] * two[2] % _P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % _P, g * h % _P, f * g % _P, e * h % _P


def _times(factor: int, point: _Point) -> _Point:
    total: _Point = (0, 1, 1, 0)
    while factor:
        if factor & 1:
            total = _sum(total, point)
        point, factor = _sum(point, point), factor >> 1
    return total


_BASE = _point((4 * pow(5, -1, _P) % _P).to_bytes(32, "little"))
