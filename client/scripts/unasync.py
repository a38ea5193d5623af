"""Make the sync half of the client from the async one: `python client/scripts/unasync.py [--check]`.

Everything is written once, in src/fencepost/_async; the files in _sync are made by these replacements, put in shape
by ruff, and never edited.
"""

import re
import subprocess
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
    (r"\bAsyncIterator\b", "Iterator"),
    (r"httpx\.AsyncClient", "httpx.Client"),
    (r"\baclose\(", "close("),
    (r"\baiter_bytes\(", "iter_bytes("),
    (r"\bAsync([A-Z]\w+)", r"\1"),
    (r"fencepost\._async\b", "fencepost._sync"),
    (r"\basyncio\.sleep", "time.sleep"),
    (r"^import asyncio$", "import time"),
    (r"The client, async. Written here once; `_sync` is made from it.", "The client, sync: made from `_async`."),
]


def made(text: str, target: Path) -> str:
    """The sync text of an async file."""
    for pattern, by in REPLACEMENTS:
        text = re.sub(pattern, by, text, flags=re.MULTILINE)
    text = _ruff(NOTICE + text, "check", "--quiet", "--fix", "--select", "I", "--stdin-filename", str(target), "-")
    return _ruff(text, "format", "--quiet", "--stdin-filename", str(target), "-")


def _ruff(text: str, *arguments: str) -> str:
    command = [sys.executable, "-m", "ruff", *arguments]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def main(check: bool) -> int:
    """Write the files, or say which are not as they would be written."""
    sources = {file.name for file in (SOURCE / "_async").glob("*.py")}
    stale = [file.name for file in (SOURCE / "_sync").glob("*.py") if file.name not in sources]
    for name in sorted(sources):
        target = SOURCE / "_sync" / name
        text = made((SOURCE / "_async" / name).read_text(encoding="utf-8"), target)
        if not target.exists() or target.read_text(encoding="utf-8") != text:
            if check:
                stale.append(name)
            else:
                target.write_text(text, encoding="utf-8")
    if stale:
        sys.stderr.write(f"not as made from _async: {', '.join(stale)}; run client/scripts/unasync.py\n")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv))
