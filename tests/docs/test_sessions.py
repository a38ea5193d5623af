"""Every console session of the documents is run against a server of its own and gives the printed answers."""

import os
import sys
from pathlib import Path

import pytest

from tests.docs.console import disagreements, steps
from tests.house.tree import ROOT, keeps, tracked
from tests.real.server import RunningServer

SESSIONS = [
    path.as_posix()
    for path in tracked(ROOT)
    if path.suffix == ".md" and path.name != "CHANGELOG.md" and steps((ROOT / path).read_text(encoding="utf-8"))
]


@pytest.mark.real
@pytest.mark.parametrize("document", SESSIONS)
def test_the_session_gives_the_printed_answers(document: str, tmp_path: Path) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    programs = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {"PATH": programs, "HOME": str(tmp_path), "LC_ALL": "C.UTF-8"}
    with RunningServer(test_mode=False) as server:
        keeps(disagreements(text, server.url, tmp_path, environment))


@pytest.mark.real
def test_the_page_of_the_command_can_be_followed_again_on_the_same_server(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "command.md").read_text(encoding="utf-8")
    programs = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {"PATH": programs, "HOME": str(tmp_path), "LC_ALL": "C.UTF-8"}
    with RunningServer(test_mode=False) as server:
        for _ in range(2):
            keeps(disagreements(text, server.url, tmp_path, environment))


def test_the_readme_has_a_session() -> None:
    assert "README.md" in SESSIONS
