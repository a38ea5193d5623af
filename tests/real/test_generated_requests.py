"""Requests that schemathesis makes up from our own OpenAPI document, well-formed and not.

No answer is a fault, and every answer is as the document says. One check is left out: that a body which fits its schema
is accepted. Some rules cannot be said in JSON Schema (a token needs sixteen distinct characters; 60.0 is an integer
there and none here), and tests of ours ask for those.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.real.server import ENGINES, RunningServer

pytestmark = pytest.mark.real
_OPEN = {"FENCEPOST_LIMITS": "off", "FENCEPOST_LIMIT_LIVE_HANDOFFS": "10000000"}


def made_up(server: RunningServer, folder: Path, examples: int) -> tuple[int, str]:
    """Ask with so many examples for each route and phase; how many requests that were, and what was found."""
    command = [sys.executable, "-m", "schemathesis.cli", "run", f"{server.url}/openapi.json", "--no-color"]
    command += ["--exclude-checks", "positive_data_acceptance", "--warnings", "off", "--seed", str(examples)]
    command += ["--generation-database", "none", "--max-examples", str(examples), "--continue-on-failure"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    count = re.search(r"(\d+) generated", done.stdout)
    assert count, done.stdout + done.stderr
    return int(count.group(1)), "" if done.returncode == 0 else done.stdout


def test_a_share_of_made_up_requests_finds_nothing(tmp_path: Path) -> None:
    with RunningServer(environment=_OPEN) as server:
        asked, found = made_up(server, tmp_path, 20)
        assert not found, found
        assert asked > 1_000


@pytest.mark.long
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("engine", ENGINES)
def test_100_000_made_up_requests_find_nothing(engine: str, tmp_path: Path) -> None:
    with RunningServer(engine=engine, environment=_OPEN) as server:
        asked, found = made_up(server, tmp_path, 2_000)
        assert not found, found
        assert asked > 100_000
