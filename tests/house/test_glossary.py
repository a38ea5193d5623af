"""One word, one meaning: every public class of core is a word of docs/glossary.md."""

import ast
from pathlib import Path

import pytest

from tests.house.tree import ROOT, keeps, plant, python_files


def missing_words(root: Path) -> list[str]:
    """Public classes of core that no row of the glossary has as its word or names in backticks."""
    glossary = (root / "docs/glossary.md").read_text(encoding="utf-8")
    rows = [line for line in glossary.splitlines() if line.startswith("| ")]
    found = []
    for path, module in python_files(root, "app"):
        if path.parts[1] != "core":
            continue
        for node in module.body:
            if not isinstance(node, ast.ClassDef) or node.name.startswith("_"):
                continue
            if not any(f"`{node.name}`" in row or row.startswith(f"| {node.name} |") for row in rows):
                found.append(f"{path}:{node.lineno}: {node.name} has no line in docs/glossary.md")
    return found


def double_words(root: Path) -> list[str]:
    """Words that have two rows."""
    glossary = (root / "docs/glossary.md").read_text(encoding="utf-8")
    words = [line.split("|")[1].strip() for line in glossary.splitlines() if line.startswith("| ")]
    return sorted({word for word in words if words.count(word) > 1})


def test_every_public_class_of_core_is_a_word_of_the_glossary() -> None:
    keeps(missing_words(ROOT))


def test_no_word_has_two_meanings() -> None:
    keeps(double_words(ROOT))


@pytest.mark.parametrize(
    ("glossary", "red"),
    [
        ("| granted (`Granted`) | the caller holds it |\n", False),
        ("| Granted | the caller holds it |\n", False),
        ("", True),
        ("Prose about `Granted`.\n", True),
        ("| GrantedTwice | another word |\n", True),
    ],
)
def test_a_class_without_a_line_goes_red(tmp_path: Path, glossary: str, red: bool) -> None:
    plant(tmp_path, {"app/core/lease.py": "class Granted: ...\nclass _Inner: ...\n", "docs/glossary.md": glossary})
    assert bool(missing_words(tmp_path)) is red


def test_a_word_with_two_meanings_goes_red(tmp_path: Path) -> None:
    plant(tmp_path, {"docs/glossary.md": "| fence | one |\n| fence | two |\n"})
    assert double_words(tmp_path) == ["fence"]
