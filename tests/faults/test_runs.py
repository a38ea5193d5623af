"""Runs of a real server under faults, judged: a share that always runs, and as much again as a machine has time for."""

from pathlib import Path

import pytest

from tests.faults.__main__ import main
from tests.faults.nemesis import NEMESES, ONLY_POSTGRESQL
from tests.faults.run import run
from tests.faults.schedule import Schedule
from tests.real.server import ENGINES

pytestmark = [pytest.mark.real, pytest.mark.postgres]
SHARE = [
    ("sqlite", "everything"),
    ("sqlite", "kill"),
    ("sqlite", "clock"),
    ("postgresql", "everything"),
    ("postgresql", "backends"),
    ("postgresql", "line"),
]
ALL = [(engine, name) for name in NEMESES for engine in ENGINES if engine != "sqlite" or name not in ONLY_POSTGRESQL]
FEWEST_OPERATIONS = 30


@pytest.mark.parametrize(("engine", "nemesis"), SHARE)
def test_a_short_run_breaks_no_rule(engine: str, nemesis: str, tmp_path: Path) -> None:
    report = run(Schedule(engine, nemesis, seed=12, seconds=4.0), keep=tmp_path / "history")
    assert report.faults == [], report.line()
    assert report.operations > FEWEST_OPERATIONS, report.line()


@pytest.mark.long
@pytest.mark.parametrize(("engine", "nemesis"), ALL)
def test_a_minute_of_work_breaks_no_rule(engine: str, nemesis: str, tmp_path: Path) -> None:
    report = run(Schedule(engine, nemesis, seed=1_000, seconds=60.0), keep=tmp_path / "history")
    assert report.faults == [], report.line()


def test_a_run_is_reported_once_and_its_history_can_be_judged_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["--engine", "sqlite", "--nemesis", "line", "--seconds", "1", "--into", str(tmp_path)]
    assert main(asked) == 0
    assert "sqlite-line-1: " in capsys.readouterr().out
    assert main(asked) == 0
    assert "sqlite-line-1: " not in capsys.readouterr().out
    run(Schedule("sqlite", "quiet", seed=3, seconds=1.0), keep=tmp_path / "kept")
    assert main(["--judge", str(tmp_path / "kept")]) == 0
    assert "no rule was broken" in capsys.readouterr().out
