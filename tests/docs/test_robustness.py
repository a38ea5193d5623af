"""docs/robustness.md names only tests that exist, and enough of them."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROW = re.compile(r"^\| .+ \| .+ \| `([^`]+)` \|$", re.MULTILINE)
NEMESIS = re.compile(r"^\| `(\w+)` \|", re.MULTILINE)
PAGE = (ROOT / "docs" / "robustness.md").read_text(encoding="utf-8")


def is_there(test: str) -> bool:
    file, _, name = test.partition("::")
    path = ROOT / file
    return path.exists() and (not name or f"def {name}(" in path.read_text(encoding="utf-8"))


def test_every_defect_of_the_table_has_a_test_that_exists() -> None:
    rows = ROW.findall(PAGE)
    assert [row for row in rows if not is_there(row)] == []
    assert len(rows) >= 60


def test_every_nemesis_is_told_and_every_one_told_exists() -> None:
    from tests.faults.nemesis import NEMESES

    assert set(NEMESIS.findall(PAGE)) == set(NEMESES)
