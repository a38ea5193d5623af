"""Make the sync half of the client from the async one: `python scripts/unasync.py [--check]`.

Everything is written once, in src/fencepost/_async; the files in _sync are made by these replacements and never edited.
"""

import re
import sys
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "fencepost"
NOTICE = "# Made by scripts/unasync.py from _async. Do not edit.\n"
REPLACEMENTS = [
    (r"\basync def\b", "def"),
    (r"\basync with\b", "with"),
    (r"\basync for\b", "for"),
    (r"\bawait ", ""),
    (r"__aenter__", "__enter__"),
    (r"__aexit__", "__exit__"),
    (r"__aiter__", "__iter__"),
    (r"__anext__", "__next__"),
    (r"StopAsyncIteration", "StopIteration"),
    (r"\bAsyncIterator\b", "Iterator"),
    (r"\bAwaitable\[(\w+)\]", r"\1"),
    (r"httpx\.AsyncClient", "httpx.Client"),
    (r"\baclose\(", "close("),
    (r"\bAsync([A-Z]\w+)", r"\1"),
    (r"fencepost\._async\b", "fencepost._sync"),
    (r"^import asyncio\nimport json$", "import json\nimport time"),
    (r"asyncio\.sleep", "time.sleep"),
]


def made(text: str) -> str:
    """The sync text of an async file."""
    for pattern, by in REPLACEMENTS:
        text = re.sub(pattern, by, text, flags=re.MULTILINE)
    return NOTICE + text


def main(check: bool) -> int:
    """Write the files, or say which are not as they would be written."""
    stale = []
    for file in sorted((SOURCE / "_async").glob("*.py")):
        target = SOURCE / "_sync" / file.name
        text = made(file.read_text(encoding="utf-8"))
        if not target.exists() or target.read_text(encoding="utf-8") != text:
            stale.append(target.name)
            if not check:
                target.write_text(text, encoding="utf-8")
    if check and stale:
        sys.stderr.write(f"not as made from _async: {', '.join(stale)}; run scripts/unasync.py\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv))
