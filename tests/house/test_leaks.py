"""The promise in tests/conftest.py is kept by looking: a test that leaves something running fails."""

import os
import subprocess
import sys
from pathlib import Path

from tests.house.tree import ROOT, plant

LEAKS = """
import subprocess
import threading

def test_a_thread(request):
    ended = threading.Event()
    threading.Thread(target=ended.wait, args=(3,), name="left-thread").start()

def test_a_process():
    test_a_process.child = subprocess.Popen(["sleep", "3"])

def test_nothing():
    with subprocess.Popen(["true"]):
        pass
"""


def test_what_is_left_running_fails_its_test(tmp_path: Path) -> None:
    shared = (ROOT / "tests/conftest.py").read_text(encoding="utf-8")
    plant(
        tmp_path, {"conftest.py": shared.replace("= 10.0", "= 0.2"), "test_leaks.py": LEAKS, "pytest.ini": "[pytest]\n"}
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "."],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "left running: thread left-thread" in done.stdout
    assert "left running: process " in done.stdout
    assert "3 passed, 2 errors" in done.stdout
