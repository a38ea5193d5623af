"""What nobody may call: the clock and the dice outside their module, mocks and skips anywhere.

Ruff enforces the first kind in the server (`banned-api` in pyproject.toml). Tests may read real clocks, so the second
kind is looked for in their syntax.
"""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.tree import ROOT, keeps, plant, python_files

BANNED_IMPORTS = {"mock", "unittest.mock", "pytest_mock", "freezegun", "time_machine"}
BANNED_ATTRIBUTES = {"skip", "skipif", "xfail", "importorskip"}
REAL = {"bench", "browser", "crash", "faults", "long", "load", "real", "selftest"}


def ruff(source: str, filename: str) -> str:
    """The rules that this source breaks as the file of that name."""
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--output-format=concise", "--stdin-filename", filename, "-"],
        cwd=ROOT,
        input=source,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout


def dotted(node: ast.expr) -> str:
    """`a.b.c` for such an expression, else the last attribute or nothing."""
    match node:
        case ast.Name(name):
            return name
        case ast.Attribute(value, attribute):
            return f"{dotted(value)}.{attribute}"
    return ""


def imported(node: ast.AST) -> list[str]:
    """The modules and names that an import statement brings in."""
    match node:
        case ast.Import(names):
            return [alias.name for alias in names]
        case ast.ImportFrom(module, names):
            return [str(module), *(f"{module}.{alias.name}" for alias in names)]
    return []


def evasions(root: Path) -> list[str]:
    """Mocks, skips and expected failures in tests; sleeps in tests that start no server."""
    found = []
    for path, module in python_files(root, "tests", "client"):
        for node in ast.walk(module):
            if BANNED_IMPORTS.intersection(imported(node)):
                found.append(f"{path}:{node.lineno}: a mock")  # type: ignore[attr-defined]
            if isinstance(node, ast.Attribute):
                name = dotted(node)
                if name.startswith("pytest.") and node.attr in BANNED_ATTRIBUTES:
                    found.append(f"{path}:{node.lineno}: {name}")
                if name == "time.sleep" and path.parts[0] == "tests" and not REAL.intersection(path.parts):
                    found.append(f"{path}:{node.lineno}: a sleep in a unit test")
    return found


def test_no_test_is_mocked_skipped_or_asleep() -> None:
    keeps(evasions(ROOT))


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ("from unittest import mock\n", "a mock"),
        ("import unittest.mock\n", "a mock"),
        ("from unittest.mock import patch\n", "a mock"),
        ("import pytest\n@pytest.mark.skip\ndef test(): ...\n", "pytest.mark.skip"),
        ("import pytest\n@pytest.mark.skipif(True, reason='x')\ndef test(): ...\n", "pytest.mark.skipif"),
        ("import pytest\n@pytest.mark.xfail\ndef test(): ...\n", "pytest.mark.xfail"),
        ("import pytest\ndef test(): pytest.skip('x')\n", "pytest.skip"),
        ("import time\ndef test(): time.sleep(1)\n", "a sleep in a unit test"),
    ],
)
def test_an_evasion_goes_red(tmp_path: Path, source: str, complaint: str) -> None:
    plant(tmp_path, {"tests/core/test_lease.py": source})
    assert [line.split(": ", 1)[1] for line in evasions(tmp_path)] == [complaint]


@pytest.mark.parametrize(
    "source",
    [
        "import time\n\nNOW = time.time()\n",
        "import time\n\nNOW = time.time_ns()\n",
        "from time import monotonic\n\nNOW = monotonic()\n",
        "from datetime import datetime\n\nNOW = datetime.now()\n",
        "import datetime\n\nNOW = datetime.datetime.utcnow()\n",
        "import secrets\n\nTOKEN = secrets.token_hex()\n",
        "import random\n\nDICE = random.random()\n",
        "import os\n\nDICE = os.urandom(4)\n",
        "import uuid\n\nNAME = uuid.uuid4()\n",
        "from unittest import mock\n\nFAKE = mock.Mock()\n",
        "from unittest.mock import patch\n\nFAKE = patch\n",
    ],
)
def test_a_banned_call_goes_red_in_the_server(source: str) -> None:
    assert "TID251" in ruff(source, "app/services/lease.py")


def test_the_two_readers_may_read() -> None:
    assert ruff("import time\n\nNOW = time.time()\n", "app/clock.py") == "All checks passed!\n"
    assert ruff("import secrets\n\nTOKEN = secrets.token_hex()\n", "app/tokens.py") == "All checks passed!\n"


@pytest.mark.parametrize(
    ("source", "rule"),
    [
        ("try:\n    work = 1\nexcept Exception:\n    pass\n", "S110"),
        ("try:\n    work = 1\nexcept Exception:\n    work = 2\n", "BLE001"),
        ("try:\n    work = 1\nexcept:\n    work = 2\n", "E722"),
        ("print('debug')\n", "T201"),
        ("from .lease import acquire\n\nacquire()\n", "TID252"),
    ],
)
def test_a_swallowed_exception_or_leftover_goes_red(source: str, rule: str) -> None:
    assert rule in ruff(source, "app/services/lease.py")
