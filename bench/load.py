"""wrk, and what it measured."""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
_UNITS = {"us": 1e-3, "ms": 1.0, "s": 1e3}


@dataclass(frozen=True)
class Load:
    """One run of the generator: requests per second, and latencies in milliseconds."""

    rate: float
    median_ms: float
    p99_ms: float


def run(url: str, script: str, *arguments: str, connections: int, seconds: float) -> Load:
    """Load the URL for so long. Raises AssertionError when an answer was no success."""
    done = subprocess.run(
        [
            *("wrk", "--threads", "1", "--connections", str(connections), "--duration", f"{seconds:g}s", "--latency"),
            *("--script", str(HERE / script), url, "--", *arguments),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "Non-2xx" not in done.stdout, done.stdout
    return Load(
        rate=float(_found(r"Requests/sec:\s+([\d.]+)", done.stdout)),
        median_ms=_milliseconds(_found(r"\n\s+50%\s+(\S+)", done.stdout)),
        p99_ms=_milliseconds(_found(r"\n\s+99%\s+(\S+)", done.stdout)),
    )


def _found(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    assert found is not None, text
    return found.group(1)


def _milliseconds(text: str) -> float:
    number, unit = re.fullmatch(r"([\d.]+)(us|ms|s)", text).groups()  # type: ignore[union-attr]
    return float(number) * _UNITS[unit]
