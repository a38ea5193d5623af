"""The tree under judgement: its tracked files, its Python modules, and small broken trees to try a rule on.

Every rule of the house is a function from a root folder to a list of complaints. The house passes when the list for
the repository is empty; the rule itself passes when a tree broken on purpose gives the complaint.
"""

import ast
import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def tracked(root: Path) -> list[Path]:
    """Every file that belongs to the project, relative to the root: tracked by git, or all where there is no git."""
    if (root / ".git").exists():
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=root,
            capture_output=True,
            check=True,
        )
        names = [Path(name) for name in listed.stdout.decode().split("\0") if name]
        return sorted(name for name in names if (root / name).is_file())
    return sorted(path.relative_to(root) for path in root.rglob("*") if path.is_file())


def documents(root: Path) -> list[Path]:
    """Every Markdown file of the project."""
    return [path for path in tracked(root) if path.suffix == ".md"]


def python_files(root: Path, *folders: str) -> Iterator[tuple[Path, ast.Module]]:
    """The parsed modules under these folders (everywhere when none is named), with their relative paths."""
    for path in tracked(root):
        if path.suffix == ".py" and (not folders or path.parts[0] in folders):
            yield path, ast.parse((root / path).read_text(encoding="utf-8"), filename=str(path))


def plant(root: Path, files: dict[str, str]) -> Path:
    """Write a small tree."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def keeps(complaints: list[str]) -> None:
    """Fail with every complaint, each on a line of its own."""
    assert not complaints, "\n" + "\n".join(complaints)
