"""Each room says in its first lines what kind of work is done there; each module opens with what it is for."""

import ast
from pathlib import Path

import pytest

from tests.house.tree import ROOT, keeps, plant, python_files

LEAST, MOST = 2, 10


def uncharted(root: Path) -> list[str]:
    """Rooms without a charter of a few lines, modules and public classes without a docstring."""
    found = []
    for path, module in python_files(root, "app"):
        docstring = ast.get_docstring(module)
        if docstring is None:
            found.append(f"{path}: no docstring")
        elif path.name == "__init__.py" and not LEAST <= docstring.count("\n") + 1 <= MOST:
            found.append(f"{path}: a charter has {LEAST} to {MOST} lines")
        for node in module.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and ast.get_docstring(node) is None:
                found.append(f"{path}:{node.lineno}: {node.name} has no docstring")
    return found


def test_every_room_has_a_charter_and_every_module_a_theory() -> None:
    keeps(uncharted(ROOT))


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("app/cellar/__init__.py", ""),
        ("app/cellar/__init__.py", '"""Short."""\n'),
        ("app/cellar/__init__.py", '"""' + "A line.\n" * 20 + '"""\n'),
        ("app/cellar/wine.py", "BOTTLES = 99\n"),
        ("app/cellar/wine.py", '"""Wine."""\n\n\nclass Bottle:\n    full = True\n'),
    ],
)
def test_a_room_without_a_charter_goes_red(tmp_path: Path, path: str, source: str) -> None:
    assert uncharted(plant(tmp_path, {path: source})) != []
