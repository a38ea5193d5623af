"""What is tracked belongs to everybody: no path of one machine, no address of one network, no secret."""

import re
from pathlib import Path

import pytest

from tests.house.tree import ROOT, keeps, plant, tracked

# Folders where one person's or one machine's files live. Written as words, so that this file passes its own rule.
PRIVATE_FOLDERS = ("home", "root", "Users", "work", "farm")
ALLOWED = ("/home/linuxbrew",)
_PATH = re.compile(rf"(?<![\w.:/<>-])/(?:{'|'.join(PRIVATE_FOLDERS)})/[\w.-]+")
_HOST = re.compile(r"index-url|find-links|trusted-host|\"resolved\":|https?://registry|file://|@ https?://")
_KEY = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----")
TEXT = {".py", ".md", ".toml", ".txt", ".yml", ".yaml", ".sh", ".js", ".css", ".html", ".json", ".service", ".conf", ""}


def is_lock(path: Path) -> bool:
    """Whether a file pins what is downloaded: it names what, never where from."""
    return path.parts[0] == "requirements" or path.name == "package-lock.json"


def traces(root: Path) -> list[str]:
    """Lines of tracked files that give away where they were written."""
    found = []
    for path in tracked(root):
        if path.suffix not in TEXT:
            continue
        for number, line in enumerate((root / path).read_text(encoding="utf-8").splitlines(), start=1):
            private = [match for match in _PATH.findall(line) if not match.startswith(ALLOWED)]
            if private or (is_lock(path) and _HOST.search(line)) or _KEY.search(line):
                found.append(f"{path}:{number}: {line.strip()[:100]}")
    return found


def test_nothing_tracked_names_a_machine_a_registry_or_a_key() -> None:
    keeps(traces(ROOT))


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("docs/index.md", "see /" + "home/ada/notes"),
        ("scripts/venv", "cd /" + "root/project"),
        ("README.md", "cd /" + "Users/ada/fencepost"),
        ("requirements/run.txt", "--extra-index-url simple"),
        ("requirements/run.txt", "flask @ https://example.org/flask.whl"),
        ("tests/mcp/package-lock.json", '"resolved": "https://registry.example/is-number.tgz"'),
        ("tests/key.txt", "-----BEGIN " + "PRIVATE KEY-----"),
    ],
)
def test_a_trace_goes_red(tmp_path: Path, path: str, line: str) -> None:
    assert traces(plant(tmp_path, {path: line + "\n"})) != []
