"""Who may know whom. The contracts are in pyproject.toml; each is broken here once, in a small house of its own."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.house.tree import ROOT, plant

ROOMS = ("cli", "web", "mcp", "dashboard", "wire", "services", "push", "storage", "core")
MODULES = ("factory", "background", "clock", "settings", "tokens", "testmode")


BROKEN = {
    "core-knows-storage": ("layers", {"app/core/lease.py": "import app.storage\n"}),
    "core-knows-the-clock": ("layers", {"app/core/lease.py": "import app.clock\n"}),
    "services-know-push": ("layers", {"app/services/lease.py": "import app.push\n"}),
    "wire-knows-services": ("layers", {"app/wire/lease.py": "import app.services\n"}),
    "a-surface-knows-another": ("layers", {"app/web/lease.py": "import app.mcp\n"}),
    "storage-knows-services": ("layers", {"app/storage/lease.py": "import app.services\n"}),
    "background-knows-the-factory": ("layers", {"app/background.py": "import app.factory\n"}),
    "a-new-room-without-a-place": ("layers", {"app/cellar/__init__.py": ""}),
    "a-concept-knows-another": (
        "concepts",
        {"app/core/lease.py": "import app.core.handoff\n", "app/core/handoff.py": ""},
    ),
    "a-new-concept-without-a-place": ("concepts", {"app/core/novelty.py": ""}),
    "core-reads-time": ("pure", {"app/core/lease.py": "import time\n"}),
    "core-reads-the-environment": ("pure", {"app/core/lease.py": "from os import environ\n"}),
    "core-throws-dice": ("pure", {"app/core/lease.py": "import random\n"}),
    "core-logs": ("pure", {"app/core/lease.py": "import logging\n"}),
    "core-uses-a-library": ("pure", {"app/core/lease.py": "import pydantic\n"}),
    "services-know-sqlalchemy": ("sqlalchemy", {"app/services/lease.py": "import sqlalchemy\n"}),
    "web-knows-a-driver": ("sqlalchemy", {"app/web/lease.py": "from psycopg import sql\n"}),
    "wire-knows-flask": ("flask", {"app/wire/lease.py": "from flask import request\n"}),
    "push-knows-werkzeug": ("flask", {"app/push/hub.py": "import werkzeug\n"}),
    "web-reaches-into-storage": ("surfaces", {"app/web/lease.py": "import app.storage\n"}),
    "mcp-reaches-in": ("surfaces", {"app/mcp/tools.py": "import app.storage\n"}),
    "two-modules-in-a-circle": (
        "cycles",
        {"app/push/hub.py": "import app.push.guard\n", "app/push/guard.py": "import app.push.hub\n"},
    ),
}


def verdicts_on(*houses: str) -> list[str]:
    """What import-linter says of each house (`ROOT`, or `ROOT=CONTRACT`); empty when the contracts are kept."""
    command = [sys.executable, str(ROOT / "tests/house/import_judge.py"), *houses]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: list[str] = json.loads(done.stdout)
    return found


def small_house(root: Path, files: dict[str, str]) -> Path:
    """A house with every room, under the contracts of this one, and these files in it."""
    empty = {f"app/{room}/__init__.py": "" for room in ROOMS} | {f"app/{name}.py": "" for name in MODULES}
    rules = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    empty |= {"app/__init__.py": "", "app/core/instants.py": "", "pyproject.toml": rules}
    return plant(root, empty | files)


def test_the_house_keeps_every_contract() -> None:
    assert verdicts_on(str(ROOT)) == [""]


def test_a_small_house_that_breaks_nothing_passes(tmp_path: Path) -> None:
    files = {
        "app/factory.py": "import flask\nimport app.web.lease\n",
        "app/web/lease.py": "import flask\nimport app.services.lease\nimport app.wire\n",
        "app/services/lease.py": "import app.storage.lease\nimport app.core.lease\n",
        "app/storage/lease.py": "import sqlalchemy\nimport app.core.lease\n",
        "app/core/lease.py": "import dataclasses\nimport app.core.redaction\n",
        "app/core/redaction.py": "",
    }
    assert verdicts_on(str(small_house(tmp_path, files))) == [""]


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The verdict on each broken house, under the contract that it breaks."""
    folder = tmp_path_factory.mktemp("houses")
    houses = [f"{small_house(folder / name, files)}={contract}" for name, (contract, files) in BROKEN.items()]
    return dict(zip(BROKEN, verdicts_on(*houses), strict=True))


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_wall_goes_red(verdicts: dict[str, str], name: str) -> None:
    assert "BROKEN" in verdicts[name]


def test_every_contract_is_broken_once_here() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    assert {contract["id"] for contract in contracts} == {contract for contract, _ in BROKEN.values()}
