"""The `.env` file: NAME=VALUE lines, `#` comments, an optional `export`, single or double quotes.

Names without our prefix belong to others (compose reads the same file) and are passed over.
"""

import re
from pathlib import Path

_LINE = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)", re.ASCII)


def read(file: Path) -> tuple[dict[str, str], list[str]]:
    """The variables of the file, and a sentence for each line that cannot be read. A missing file is empty."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return {}, []
    except (OSError, UnicodeDecodeError) as fault:
        return {}, [f"{file} cannot be read: {type(fault).__name__}."]
    found: dict[str, str] = {}
    faults: list[str] = []
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        match = _LINE.fullmatch(text)
        value = _value(match[2]) if match else None
        if match is None or value is None:
            faults.append(f"{file} line {number} is not NAME=VALUE.")
        else:
            found[match[1]] = value
    return found, faults


def _value(text: str) -> str | None:
    """The value without its quotes or its comment; None when a quote does not close."""
    if text[:1] in ("'", '"'):
        end = text.find(text[0], 1)
        rest = text[end + 1 :].strip()
        return text[1:end] if end > 0 and (not rest or rest.startswith("#")) else None
    return re.split(r"\s+#", text, maxsplit=1)[0].strip()
