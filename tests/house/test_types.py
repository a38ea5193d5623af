"""mypy is strict, and finds the case of an outcome that a surface forgot."""

import subprocess
import sys

import pytest

from tests.house.tree import ROOT, plant

OUTCOMES = """
from dataclasses import dataclass
from typing import assert_never


@dataclass(frozen=True, slots=True)
class Granted:
    fence: int


@dataclass(frozen=True, slots=True)
class Held:
    left: int


def status(outcome: Granted | Held) -> int:
    match outcome:
        case Granted():
            return 201
"""
BROKEN = {
    "a_forgotten_case.py": (OUTCOMES + "    assert_never(outcome)\n", "assert_never"),
    "untyped.py": ("def acquire(key):\n    return key\n", "no-untyped-def"),
    "any_returned.py": ("import json\n\n\ndef read(text: str) -> int:\n    return json.loads(text)\n", "no-any-return"),
    "bare_ignore.py": ("FENCE: int = 'x'  # type: ignore\n", "ignore-without-code"),
    "unreachable.py": (
        "def f(x: int) -> int:\n    if isinstance(x, str):\n        return 1\n    return x\n",
        "unreachable",
    ),
}


@pytest.fixture(scope="module")
def verdict(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What mypy says of all the broken modules, and of one that is whole, under the settings of this project."""
    whole = {"whole.py": OUTCOMES + "        case Held():\n            return 409\n    assert_never(outcome)\n"}
    root = plant(tmp_path_factory.mktemp("types"), {name: source for name, (source, _) in BROKEN.items()} | whole)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), "--show-error-codes", "."],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_type_goes_red(verdict: str, name: str) -> None:
    lines = [line for line in verdict.splitlines() if line.startswith(f"{name}:")]
    assert any(BROKEN[name][1] in line for line in lines), verdict


def test_the_whole_one_passes(verdict: str) -> None:
    assert "whole.py" not in verdict
