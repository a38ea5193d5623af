"""The client's own house rules: one source for two worlds, alone in the world, one class for each refusal."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.house.tree import ROOT, keeps

from fencepost import errors, refusals

CLIENT = ROOT / "client"
SOURCES = sorted((CLIENT / "src").rglob("*.py"))
MAY_IMPORT = {"fencepost", "httpx"} | sys.stdlib_module_names


def imported(file: Path) -> set[str]:
    """The packages that a file imports."""
    names = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(str(node.module))
    return {name.partition(".")[0] for name in names}


def test_the_sync_half_is_as_made_from_the_async_one() -> None:
    script = CLIENT / "scripts" / "unasync.py"
    done = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_client_knows_httpx_and_nothing_of_the_server() -> None:
    keeps([f"{file.name}: {name}" for file in SOURCES for name in sorted(imported(file) - MAY_IMPORT)])


def test_every_code_of_the_server_has_its_class() -> None:
    page = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    codes = re.findall(r"^\| `([a-z_]+)` \| \d", page, flags=re.MULTILINE)
    assert len(codes) > 30
    assert refusals.NotFound.code == "not_found"
    keeps([code for code in codes if not errors.has_class(code)])


def test_every_module_says_what_it_is_for() -> None:
    keeps([str(file) for file in SOURCES if ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) is None])


@pytest.mark.parametrize("version", ["3.10", "3.13"])
def test_the_types_hold_for_the_oldest_and_the_newest_python(version: str) -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "mypy",
            "--python-version",
            version,
            "--cache-dir",
            f".mypy_cache/{version}",
            "client/src",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
