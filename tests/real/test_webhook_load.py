"""Sixty receivers that hang, drip and flood, sixty names whose server is dead: callers must not notice."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.tree import ROOT


@pytest.mark.long
@pytest.mark.real
def test_moves_keep_their_pace_and_memory_stays_flat_among_hostile_receivers(tmp_path: Path) -> None:
    command = ["unshare", "--net", "--mount", sys.executable, "-m", "tests.real.hostile", str(tmp_path)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=300, text=True)
    assert ran.returncode == 0, f"needs root and iproute2 (apt-get install iproute2)\n{ran.stderr}"
    told = json.loads(ran.stdout)
    assert told["moves"] > 100, told
    assert told["among_p50_ms"] < 5 * told["quiet_p50_ms"] + 20, told
    assert told["among_p99_ms"] < 5 * told["quiet_p99_ms"] + 100, told
    assert told["retries"] > 300, told
    assert told["memory_grown_kib"] < 2_000, told
