"""Who may know whom. The contracts are in pyproject.toml; each is broken here once, in a small house of its own."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.house.tree import ROOT, plant

ROOMS = ("cli", "web", "mcp", "dashboard", "wire", "services", "push", "storage", "core")
MODULES = ("factory", "background", "clock", "settings", "tokens", "testmode")


def lint(root: Path, *contracts: str) -> str:
    """What import-linter says of the house under `root`; empty when every contract is kept."""
    script = "import sys; sys.path.insert(0, '.'); from importlinter.cli import lint_imports_command; "
    chosen = [argument for contract in contracts for argument in ("--contract", contract)]
    done = subprocess.run(
        [sys.executable, "-c", script + "lint_imports_command()", "--no-logo", "--no-cache", *chosen],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    return "" if done.returncode == 0 else done.stdout + done.stderr


def small_house(root: Path, files: dict[str, str]) -> Path:
    """A house with every room, under the contracts of this one, and these files in it."""
    empty = {f"app/{room}/__init__.py": "" for room in ROOMS} | {f"app/{name}.py": "" for name in MODULES}
    rules = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    empty |= {"app/__init__.py": "", "app/core/instants.py": "", "pyproject.toml": rules}
    return plant(root, empty | files)


def test_the_house_keeps_every_contract() -> None:
    assert lint(ROOT) == ""


def test_a_small_house_that_breaks_nothing_passes(tmp_path: Path) -> None:
    files = {
        "app/factory.py": "import flask\nimport app.web.lease\n",
        "app/web/lease.py": "import flask\nimport app.services.lease\nimport app.wire\n",
        "app/services/lease.py": "import app.storage.lease\nimport app.core.lease\n",
        "app/storage/lease.py": "import sqlalchemy\nimport app.core.lease\n",
        "app/core/lease.py": "import dataclasses\nimport app.core.redaction\n",
        "app/core/redaction.py": "",
    }
    assert lint(small_house(tmp_path, files)) == ""


@pytest.mark.parametrize(
    ("contract", "files"),
    [
        pytest.param("layers", {"app/core/lease.py": "import app.storage\n"}, id="core-knows-storage"),
        pytest.param("layers", {"app/core/lease.py": "import app.clock\n"}, id="core-knows-the-clock"),
        pytest.param("layers", {"app/services/lease.py": "import app.push\n"}, id="services-know-push"),
        pytest.param("layers", {"app/wire/lease.py": "import app.services\n"}, id="wire-knows-services"),
        pytest.param("layers", {"app/web/lease.py": "import app.mcp\n"}, id="a-surface-knows-another"),
        pytest.param("layers", {"app/storage/lease.py": "import app.services\n"}, id="storage-knows-services"),
        pytest.param("layers", {"app/background.py": "import app.factory\n"}, id="background-knows-the-factory"),
        pytest.param("layers", {"app/cellar/__init__.py": ""}, id="a-new-room-without-a-place"),
        pytest.param(
            "concepts",
            {"app/core/lease.py": "import app.core.handoff\n", "app/core/handoff.py": ""},
            id="a-concept-knows-another",
        ),
        pytest.param("concepts", {"app/core/novelty.py": ""}, id="a-new-concept-without-a-place"),
        pytest.param("pure", {"app/core/lease.py": "import time\n"}, id="core-reads-time"),
        pytest.param("pure", {"app/core/lease.py": "from os import environ\n"}, id="core-reads-the-environment"),
        pytest.param("pure", {"app/core/lease.py": "import random\n"}, id="core-throws-dice"),
        pytest.param("pure", {"app/core/lease.py": "import logging\n"}, id="core-logs"),
        pytest.param("pure", {"app/core/lease.py": "import pydantic\n"}, id="core-uses-a-library"),
        pytest.param("sqlalchemy", {"app/services/lease.py": "import sqlalchemy\n"}, id="services-know-sqlalchemy"),
        pytest.param("sqlalchemy", {"app/web/lease.py": "from psycopg import sql\n"}, id="web-knows-a-driver"),
        pytest.param("flask", {"app/wire/lease.py": "from flask import request\n"}, id="wire-knows-flask"),
        pytest.param("flask", {"app/push/hub.py": "import werkzeug\n"}, id="push-knows-werkzeug"),
        pytest.param("surfaces", {"app/web/lease.py": "import app.storage\n"}, id="web-reaches-into-storage"),
        pytest.param("surfaces", {"app/mcp/tools.py": "import app.storage\n"}, id="mcp-reaches-in"),
        pytest.param(
            "cycles",
            {"app/push/hub.py": "import app.push.guard\n", "app/push/guard.py": "import app.push.hub\n"},
            id="two-modules-in-a-circle",
        ),
    ],
)
def test_a_broken_wall_goes_red(tmp_path: Path, contract: str, files: dict[str, str]) -> None:
    assert "BROKEN" in lint(small_house(tmp_path, files), contract)


def test_every_contract_is_broken_once_here() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    here = Path(__file__).read_text(encoding="utf-8")
    assert [contract["id"] for contract in contracts if f'"{contract["id"]}",' not in here] == []
