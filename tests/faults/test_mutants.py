"""Every mutant server is found, by the checker that is named for it and within five minutes."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.faults.mutants import HISTORIES, TESTS
from tests.faults.run import run

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.real, pytest.mark.postgres]
MOST_SECONDS = 300
QUICK = {"leases_end_early", "moves_from_anywhere", "handoffs_cached"}


def always_or_long(mutant):
    marks = [] if mutant.__name__ in QUICK else [pytest.mark.long]
    return pytest.param(mutant, marks=marks, id=mutant.__name__)


@pytest.mark.timeout(MOST_SECONDS + 60)
@pytest.mark.parametrize("mutant", [always_or_long(mutant) for mutant in HISTORIES])
def test_a_wrong_server_is_found_by_a_rule(mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUTANT", mutant.__name__)
    hunt, began, seed = HISTORIES[mutant], time.monotonic(), 0
    while time.monotonic() - began < MOST_SECONDS:
        seed += 1
        report = run(hunt.schedule(seed, 5.0 * seed))
        if hunt.rules & {fault.rule for fault in report.faults}:
            return
    raise AssertionError(f"{mutant.__name__} was not found in {seed} runs: {report.line()}")


@pytest.mark.long
@pytest.mark.timeout(MOST_SECONDS)
@pytest.mark.parametrize("mutant", TESTS, ids=lambda mutant: mutant.__name__)
def test_a_wrong_server_turns_a_test_red(mutant) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "tests.faults.mutant_plugin", TESTS[mutant]]
    environment = {**os.environ, "MUTANT": mutant.__name__}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=MOST_SECONDS)
    assert done.returncode == 1, done.stdout[-2000:]
    assert " failed" in done.stdout, done.stdout[-2000:]


def test_there_are_enough_mutants() -> None:
    assert len(HISTORIES) + len(TESTS) >= 24
