"""JSON as the contract has it: numbers of any size survive reading, and what is no JSON is never sent.

Python's own reader turns 1e400 into infinity and refuses an integer of 5,000 digits; here both become Decimals.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

_LONGEST_INT = 4000


@dataclass(frozen=True)
class RawJson:
    """JSON text that is sent exactly as it stands, for a result or payload whose spelling matters."""

    text: str

    def __repr__(self) -> str:
        return f"RawJson({len(self.text)} characters)"


def read(content: bytes) -> Any:
    """The value of a JSON text. Raises ValueError, for one that is nested too deep to be read as well."""
    try:
        return json.loads(content, parse_int=_integer, parse_float=_number, parse_constant=_no_constant)
    except RecursionError:
        raise ValueError("nested too deep") from None


def written(members: Mapping[str, Any]) -> bytes:
    """One object as UTF-8. Raises ValueError for what JSON cannot say, TypeError for what is no JSON value."""
    parts = [f"{_dumped(name)}:{_dumped(value)}" for name, value in members.items()]
    return f"{{{','.join(parts)}}}".encode()


def plain(value: Any) -> Any:
    """The value as it comes back after having been sent: tuples are lists, and so on. Raises as `written` does."""
    return read(_dumped(value).encode())


def _dumped(value: Any) -> str:
    if isinstance(value, RawJson):
        return value.text
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _integer(text: str) -> Any:
    return int(text) if len(text) <= _LONGEST_INT else Decimal(text)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _number(text: str) -> Any:
    number = float(text)
    return number if math.isfinite(number) else Decimal(text)
