"""What is imported is declared, what is declared is pinned with hashes, and each has its reason in the docs."""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from tests.house.tree import ROOT, keeps, plant, python_files

_PIN = re.compile(r"^([a-z0-9][a-z0-9._-]*)==([^ ;]+)((?: ;[^\\]*)?) \\$")
OPTIONAL = ("traces",)
"""Extras of the server, whose libraries are imported only where they are asked for."""
# The client is ours and is no dependency: only the self-test imports it, when it runs, and says how to install it.
OURS = {"app", "wsgi", "migrations", "fencepost"}
# Interfaces that come with a declared library and are part of how it is used.
COMPANIONS = {
    "werkzeug": "flask",
    "markupsafe": "jinja2",
    "pydantic_core": "pydantic",
    "typing_extensions": "pydantic",
    "greenlet": "gevent",
}
_NAME = re.compile(r"^[A-Za-z0-9._-]+")


def plain(name: str) -> str:
    """A distribution's name as the index writes it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def declared(root: Path, *extras: str) -> set[str]:
    """The distributions that pyproject.toml asks for, with those of the extras."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = list(project["dependencies"])
    for extra in extras:
        lines += project.get("optional-dependencies", {}).get(extra, [])
    return {plain(match.group()) for line in lines if (match := _NAME.match(line))}


def loose(lock: str) -> list[str]:
    """Lines of a lock that pin nothing, and pins without a hash."""
    found, hashes, pinned = [], 0, ""
    for line in [*lock.splitlines(), "end==0 \\"]:
        text = line.strip()
        if match := _PIN.match(line):
            if pinned and not hashes:
                found.append(f"{pinned}: no hash")
            pinned, hashes = match.group(1), 0
        elif text.startswith("--hash=sha256:"):
            hashes += 1
        elif text and not text.startswith("#"):
            found.append(text)
    return found


def pinned(lock: str) -> dict[str, str]:
    """Distribution to version."""
    return {match.group(1): match.group(2) for line in lock.splitlines() if (match := _PIN.match(line))}


def undeclared(root: Path, distributions: dict[str, list[str]]) -> list[str]:
    """Imports of the server that come from no declared distribution."""
    names, found = declared(root, *OPTIONAL), set()
    for path, module in python_files(root, "app", "wsgi.py", "migrations"):
        for node in ast.walk(module):
            tops: list[str] = []
            if isinstance(node, ast.Import):
                tops = [alias.name.split(".")[0] for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                tops = [str(node.module).split(".")[0]]
            for top in tops:
                origins = {plain(name) for name in distributions.get(top, [])} | {COMPANIONS.get(top, top)}
                if top not in sys.stdlib_module_names | OURS and not names & origins:
                    found.add(f"{path}: {top}")
    return sorted(found)


def without_reason(root: Path) -> list[str]:
    """Declared distributions that docs/dependencies.md gives no row."""
    text = (root / "docs/dependencies.md").read_text(encoding="utf-8")
    rows = {plain(name) for name in re.findall(r"^\| `([^`]+)` \| [^|]{10,}", text, flags=re.MULTILINE)}
    return sorted(declared(root, "build", *OPTIONAL, "test", "dev") - rows)


def test_every_import_of_the_server_is_declared() -> None:
    keeps(undeclared(ROOT, dict(packages_distributions())))


@pytest.mark.parametrize(("lock", "extras"), [("run", ["build"]), ("dev", ["build", *OPTIONAL, "test", "dev"])])
def test_every_dependency_is_pinned_with_hashes(lock: str, extras: list[str]) -> None:
    text = (ROOT / f"requirements/{lock}.txt").read_text(encoding="utf-8")
    assert loose(text) == []
    assert declared(ROOT, *extras) - pinned(text).keys() == set()


def test_both_locks_pin_the_same_versions() -> None:
    run, dev = (pinned((ROOT / f"requirements/{name}.txt").read_text(encoding="utf-8")) for name in ("run", "dev"))
    assert run.items() - dev.items() == set()


def test_every_dependency_has_a_reason() -> None:
    keeps(without_reason(ROOT))


PROJECT = '[project]\ndependencies = ["Flask>=3"]\n'


def test_an_undeclared_import_goes_red(tmp_path: Path) -> None:
    plant(tmp_path, {"pyproject.toml": PROJECT, "app/web/lease.py": "import flask\nimport requests.sessions\n"})
    distributions = {"flask": ["Flask"], "requests": ["requests"]}
    assert undeclared(tmp_path, distributions) == ["app/web/lease.py: requests"]


@pytest.mark.parametrize(
    ("lock", "complaint"),
    [
        ("flask>=3\n", "flask>=3"),
        ("flask==3.1.3 \\\n    # via x\n", "flask: no hash"),
        ("-e .\n", "-e ."),
        ("--index-url x\n", "--index-url x"),
    ],
)
def test_a_loose_pin_goes_red(lock: str, complaint: str) -> None:
    assert loose(lock) == [complaint]


def test_a_dependency_without_a_reason_goes_red(tmp_path: Path) -> None:
    plant(tmp_path, {"pyproject.toml": PROJECT, "docs/dependencies.md": "| `redis` | signals between processes |\n"})
    assert without_reason(tmp_path) == ["flask"]
