"""Words that say nothing are not names. What a thing is called is what it does, in the words of docs/glossary.md."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house.tree import ROOT, keeps, plant, python_files

EMPTY_WORDS = {"manager", "helper", "util", "common", "base", "data", "info", "process", "handle"}
# Names that are not ours to choose: a setting of the contract, and what libraries call back by name.
GIVEN = {
    "data_dir",
    "DATA_DIR",
    "handle_request",
    "handle_error",
    "handle_exit",
    "handle_quit",
    "handle_ttin",
    "handle_usr2",
    "process_headers",
}
_PARTS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")


def words(name: str) -> set[str]:
    """The words a name is made of, lower case, singular: `LeaseManagers` is lease and manager."""
    parts = {part.lower() for part in _PARTS.findall(name)}
    return parts | {part.removesuffix("s") for part in parts}


def defined(module: ast.Module) -> Iterator[tuple[int, str]]:
    """The names this module gives to classes, functions and constants, and to parameters as a whole."""
    for node in ast.walk(module):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield node.lineno, name
            case ast.arg(name) if name in EMPTY_WORDS:
                yield node.lineno, name
            case ast.Name(name, ast.Store()) if name.lower() in EMPTY_WORDS:
                yield node.lineno, name


def empty_names(root: Path) -> list[str]:
    """Modules, classes, functions, parameters and variables called by a word that says nothing."""
    found = []
    for path, module in python_files(root, "app", "client"):
        if words(path.stem) & EMPTY_WORDS:
            found.append(f"{path}: the module")
        for line, name in defined(module):
            if name not in GIVEN and words(name) & EMPTY_WORDS:
                found.append(f"{path}:{line}: {name}")
    return found


def test_no_name_is_an_empty_word() -> None:
    keeps(empty_names(ROOT))


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("app/core/utils.py", ""),
        ("app/core/lease_helper.py", ""),
        ("app/core/lease.py", "class LeaseManager: ...\n"),
        ("app/core/lease.py", "class BaseLease: ...\n"),
        ("app/core/lease.py", "def process_lease(): ...\n"),
        ("app/core/lease.py", "async def get_info(): ...\n"),
        ("app/core/lease.py", "def acquire(data): ...\n"),
        ("app/core/lease.py", "def acquire():\n    info = 1\n"),
    ],
)
def test_an_empty_word_goes_red(tmp_path: Path, path: str, source: str) -> None:
    assert empty_names(plant(tmp_path, {path: source})) != []


def test_words_that_only_look_alike_pass(tmp_path: Path) -> None:
    source = "class Database: ...\ndef processed(): ...\ndef informed(): ...\nclass Basement: ...\n"
    assert empty_names(plant(tmp_path, {"app/storage/database.py": source})) == []
