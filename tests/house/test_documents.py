"""Documents that cannot fall behind: commands exist, links lead somewhere, every knob and failpoint is told."""

import re
from pathlib import Path

import pytest

from tests.house.tree import ROOT, documents, keeps, plant, tracked

_TARGET = re.compile(r"^([a-z][a-z-]*):", re.MULTILINE)
_MAKE = re.compile(r"(?:`|^|\$ )make ((?:[a-z][a-z-]*)(?: [a-z][a-z-]*)*)(?= *(?:`|$|#|[A-Z]+=))", re.MULTILINE)
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)#\s]+)(#[^)\s]*)?\)|!\[[^\]]*\]\(([^)\s]+)\)")
LONGEST_ARCHITECTURE = 200


def targets(root: Path) -> set[str]:
    """What `make` can make here."""
    return set(_TARGET.findall((root / "Makefile").read_text(encoding="utf-8")))


def dead_commands(root: Path) -> list[str]:
    """`make` commands in the documents that the Makefile does not know."""
    known, found = targets(root), []
    for path in documents(root):
        for match in _MAKE.findall((root / path).read_text(encoding="utf-8")):
            found += [f"{path}: make {word}" for word in match.split() if word not in known]
    return found


def untold_commands(root: Path) -> list[str]:
    """Targets of the Makefile that neither the README nor CONTRIBUTING tells of."""
    told = "".join((root / name).read_text(encoding="utf-8") for name in ("README.md", "CONTRIBUTING.md"))
    return sorted(name for name in targets(root) if not re.search(rf"\bmake {name}\b(?!-)", told))


def dead_links(root: Path) -> list[str]:
    """Links and pictures of the documents that lead to no file of the project."""
    here, found = {path.as_posix() for path in tracked(root)}, []
    for path in documents(root):
        for match in _LINK.finditer((root / path).read_text(encoding="utf-8")):
            target = match.group(1) or match.group(3)
            if re.match(r"[a-z]+:", target):
                continue
            place = (root / path.parent / target).resolve()
            inside = place.is_relative_to(root.resolve()) and place.relative_to(root.resolve()).as_posix()
            if not inside or (inside not in here and not any(name.startswith(f"{inside}/") for name in here)):
                found.append(f"{path}: {target}")
    return found


def unreachable(root: Path) -> list[str]:
    """Pages of docs/ that no other document links to."""
    linked = set()
    for path in documents(root):
        for match in _LINK.finditer((root / path).read_text(encoding="utf-8")):
            if match.group(1) and not re.match(r"[a-z]+:", match.group(1)):
                linked.add((root / path.parent / match.group(1)).resolve())
    pages = [path for path in documents(root) if path.parts[0] == "docs" and path.as_posix() != "docs/index.md"]
    return [str(path) for path in pages if (root / path).resolve() not in linked]


def untold(root: Path, words: list[str], page: str) -> list[str]:
    """Words that a page does not have in backticks."""
    text = (root / page).read_text(encoding="utf-8")
    return [f"{page}: {word}" for word in words if f"`{word}`" not in text]


def unplaced_rooms(root: Path) -> list[str]:
    """Rooms that ARCHITECTURE.md does not name."""
    text = (root / "ARCHITECTURE.md").read_text(encoding="utf-8")
    rooms = {path.parts[1] for path in tracked(root) if path.parts[0] == "app" and len(path.parts) > 2}
    return sorted(f"ARCHITECTURE.md: {room}/" for room in rooms if f"{room}/" not in text)


def test_every_make_command_in_the_documents_exists_and_every_target_is_told() -> None:
    keeps(dead_commands(ROOT))
    keeps(untold_commands(ROOT))


def test_every_link_leads_somewhere_and_every_page_is_reached() -> None:
    keeps(dead_links(ROOT))
    keeps(unreachable(ROOT))


def test_the_architecture_is_short_and_names_every_room() -> None:
    assert (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").count("\n") <= LONGEST_ARCHITECTURE
    keeps(unplaced_rooms(ROOT))


def test_the_changelog_has_a_place_for_what_comes_next() -> None:
    headings = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert headings[0] == "Unreleased"


def test_every_failpoint_is_told() -> None:
    from app.testmode import POINTS

    keeps(untold(ROOT, list(POINTS), "docs/testing.md"))


def test_the_readme_begins_with_the_two_commands() -> None:
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()[:20]
    assert [line.split(" #")[0].strip() for line in lines if line.startswith("make ")] == ["make run", "make test"]


SMALL = {
    "Makefile": "run: ## serve\n\t@true\ntest:\n\t@true\n",
    "README.md": "`make run` and\n\n```sh\nmake test\n```\nand [pages](docs/index.md)\n",
    "CONTRIBUTING.md": "",
    "ARCHITECTURE.md": "app/core/ decides\n",
    "app/core/__init__.py": "",
    "docs/index.md": "[one](one.md) [out](https://example.org) [up](../README.md)\n",
    "docs/one.md": "`after-lock`\n",
}


def complaints(root: Path) -> list[str]:
    """Everything at once, for the small trees."""
    rules = (dead_commands, untold_commands, dead_links, unreachable, unplaced_rooms)
    return [line for rule in rules for line in rule(root)] + untold(root, ["after-lock"], "docs/one.md")


def test_a_small_tree_in_order_passes(tmp_path: Path) -> None:
    assert complaints(plant(tmp_path, SMALL)) == []


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"README.md": "`make run` `make test` `make coffee`"}, "README.md: make coffee"),
        ({"README.md": "```sh\nmake run\nmake test coffee\n```\n"}, "README.md: make coffee"),
        ({"README.md": "```sh\nmake test PORT=1\n```\n"}, "run"),
        ({"docs/index.md": "[one](one.md) [two](two.md)"}, "docs/index.md: two.md"),
        ({"docs/index.md": "[one](one.md) ![picture](two.png)"}, "docs/index.md: two.png"),
        ({"docs/index.md": "[one](one.md) [out](../../secret)"}, "docs/index.md: ../../secret"),
        ({"docs/index.md": "nothing"}, "docs/one.md"),
        ({"docs/one.md": "after-lock in prose"}, "docs/one.md: after-lock"),
        ({"ARCHITECTURE.md": "nothing"}, "ARCHITECTURE.md: core/"),
    ],
)
def test_a_document_that_fell_behind_goes_red(tmp_path: Path, changed: dict[str, str], complaint: str) -> None:
    assert complaints(plant(tmp_path, SMALL | changed)) == [complaint]
