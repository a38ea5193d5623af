"""Keys and tokens that a caller makes itself.

A token that the caller brings makes its call repeatable: when an answer is lost, the same call is sent again and means
the same. A key made from what is to be done, not from an id of the attempt, is the same for every attempt: models mint
a new call id on each retry (openai-agents-python #4254, agno #10366).
"""

import hashlib
import json
import math
import secrets
import unicodedata
from base64 import urlsafe_b64encode
from decimal import Decimal
from typing import Any

_LARGEST_EXACT = 2**53


def mint_namespace() -> str:
    """A lease namespace: a secret under which readable keys are private. Keep it; nothing is stored anywhere."""
    return _mint("ns_")


def mint_owner_token() -> str:
    """An owner token for one ownership of a lease."""
    return _mint("own_")


def mint_claim_token() -> str:
    """Proof of being the claimant of one once-key."""
    return _mint("clm_")


def mint_once_namespace_token() -> str:
    """A token to own a once-key namespace with, from its first claim on. Keep it."""
    return _mint("nst_")


def mint_handoff_tokens() -> tuple[str, str]:
    """The owner's and the receiver's token of one handoff."""
    return _mint("howner_"), _mint("hrecv_")


def mint_nonce() -> str:
    """A name for one attempt to do something, 32 hex digits."""
    return secrets.token_hex(16)


def for_call(tool: str, arguments: Any, *, scope: str = "") -> str:
    """A key for a tool call: the same for the same tool, arguments and scope, however they are spelled.

    Arguments are put in canonical form (RFC 8785; text in Unicode form NFC; 1.0 is 1), so member order, white space
    and Unicode spelling do not matter. `scope` tells apart calls that are meant twice, such as an order's id.
    64 lower-case hex digits after the tool's name. Raises ValueError for what JSON cannot say.
    """
    content = canonical([tool, scope, arguments])
    readable = "".join(c for c in tool if c.isascii() and (c.isalnum() or c in "-._"))[:40]
    return f"{readable}:{hashlib.sha256(content).hexdigest()}"


def digest(payload: Any) -> str:
    """SHA-256 of a payload's canonical form, as hex: for `payload_sha256`."""
    return hashlib.sha256(canonical(payload)).hexdigest()


def canonical(value: Any) -> bytes:
    """The canonical JSON of a value, for digests. Numbers must be exact: integers below 2**53, finite floats."""
    return _written(_plain(value)).encode("utf-8")


def exact(members: dict[str, Any]) -> bytes:
    """The canonical JSON of an answer, its text as it stands: for signatures over what somebody else wrote."""
    return _written(_sorted(members)).encode("utf-8")


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        in_order = sorted(value.items(), key=lambda item: item[0].encode("utf-16-be"))
        return {name: _sorted(inner) for name, inner in in_order}
    return [_sorted(inner) for inner in value] if isinstance(value, list) else value


def _written(value: Any) -> str:
    """RFC 8785: members in the order of UTF-16, numbers as ECMAScript writes them."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{_written(name)}:{_written(inner)}" for name, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_written, value)) + "]"
    if isinstance(value, float):
        return _float(value)
    return json.dumps(value, ensure_ascii=False)


def _float(value: float) -> str:
    """A number that is no exact integer, as ECMAScript's Number::toString writes it (section 6.1.6.1.20)."""
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    text, minus = "".join(map(str, digits)), "-" if sign else ""
    assert isinstance(exponent, int), "only finite numbers come here"
    point = len(text) + exponent
    if 0 < point <= 21:
        body = text.ljust(point, "0") if exponent >= 0 else f"{text[:point]}.{text[point:]}"
    elif -6 < point <= 0:
        body = f"0.{'0' * -point}{text}"
    else:
        fraction = f".{text[1:]}" if len(text) > 1 else ""
        body = f"{text[0]}{fraction}e{point - 1:+d}"
    return minus + body


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return unicodedata.normalize("NFC", value)
    if isinstance(value, int):
        if abs(value) >= _LARGEST_EXACT:
            raise ValueError("an integer of 2**53 or more is not exact in JSON; send it as text")
        return value
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return _object(value)
    raise ValueError(f"JSON has no {type(value).__name__}")


def _number(value: float) -> Any:
    if not math.isfinite(value):
        raise ValueError("JSON has no NaN and no infinity")
    if value.is_integer() and abs(value) < _LARGEST_EXACT:
        return int(value)
    return value


def _object(value: dict[Any, Any]) -> dict[str, Any]:
    plain: dict[str, Any] = {}
    for name, inner in value.items():
        if not isinstance(name, str):
            raise ValueError("names in JSON are text")
        normal = unicodedata.normalize("NFC", name)
        if normal in plain:
            raise ValueError("two names are the same text")
        plain[normal] = _plain(inner)
    return dict(sorted(plain.items(), key=lambda item: item[0].encode("utf-16-be")))


def _mint(prefix: str) -> str:
    return prefix + urlsafe_b64encode(secrets.token_bytes(32)).rstrip(b"=").decode("ascii")
