"""The command as a person meets it: a process of its own, found by the environment alone."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.house.tree import ROOT

SOURCE = ROOT / "client" / "src"
WORDS = [sys.executable, "-m", "fencepost.command.main"]


def environment(url: str, folder: Path, **more: str) -> dict[str, str]:
    """Nothing but what the command needs; its home is the test's folder."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL") if name in os.environ}
    return {**kept, "HOME": str(folder), "PYTHONPATH": str(SOURCE), "FENCEPOST_URL": url, **more}


def fencepost(
    *words: str, env: Mapping[str, str], stdin: str = "", seconds: float = 60, **more: Any
) -> subprocess.CompletedProcess[str]:
    """Run it to its end."""
    return subprocess.run(
        [*WORDS, *words],
        env=dict(env),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
        **more,
    )


def is_running(pid: int) -> bool:
    """Whether this process runs, and is no mere entry of one that ended."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in {"Z", "X"}
