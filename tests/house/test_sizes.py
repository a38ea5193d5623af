"""Small enough to be read: a module of 400 lines is a wall, a function fits on a screen."""

import ast
from pathlib import Path

import pytest

from tests.house.tree import ROOT, keeps, plant, python_files, tracked

WALL = 400
SCREEN = 60
SOURCE = {".py", ".js", ".css", ".html"}
Function = ast.FunctionDef | ast.AsyncFunctionDef
FOLDERS = ("app", "client", "migrations", "static", "templates")


def own_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """The lines of a function without those of the functions in it: each of them is read by itself."""
    inner = [node for node in function.body if isinstance(node, Function)]
    return span(function) - sum(span(node) for node in inner)


def span(node: ast.stmt) -> int:
    """From the first line to the last."""
    return (node.end_lineno or node.lineno) - node.lineno + 1


def oversized(root: Path) -> list[str]:
    """Source files over the wall and functions over a screen."""
    found = []
    for path in tracked(root):
        if path.suffix in SOURCE and path.parts[0] in FOLDERS and "tests" not in path.parts:
            lines = (root / path).read_text(encoding="utf-8").count("\n")
            if lines > WALL:
                found.append(f"{path}: {lines} lines")
    for path, module in python_files(root, "app", "client", "migrations"):
        for node in ast.walk(module):
            if isinstance(node, Function) and (lines := own_lines(node)) > SCREEN:
                found.append(f"{path}:{node.lineno}: {node.name} has {lines} lines")
    return found


def test_every_file_and_function_is_small_enough() -> None:
    keeps(oversized(ROOT))


@pytest.mark.parametrize(("lines", "red"), [(WALL - 1, False), (WALL, False), (WALL + 1, True)])
def test_the_wall_stands_at_400_lines(tmp_path: Path, lines: int, red: bool) -> None:
    plant(tmp_path, {"app/core/lease.py": "\n" * lines})
    assert bool(oversized(tmp_path)) is red


@pytest.mark.parametrize(("lines", "red"), [(SCREEN - 1, False), (SCREEN, False), (SCREEN + 1, True)])
def test_a_function_fits_on_a_screen(tmp_path: Path, lines: int, red: bool) -> None:
    plant(tmp_path, {"app/core/lease.py": "def acquire():\n" + "    work = 1\n" * (lines - 1)})
    assert bool(oversized(tmp_path)) is red
