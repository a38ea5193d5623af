"""SQLite through power cuts, deaths at every step and disks that fail: nothing that was told is lost or made up."""

import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.disk import deaths, injected, power_cuts, prepare, record

KEYS = 60
ALWAYS = [
    ("fdatasync", "error=EIO", "8"),
    ("pwrite64", "error=ENOSPC", "14+"),
    ("pwrite64", "error=EIO", "24"),
    ("pwrite64", "signal=KILL", "20"),
    ("fdatasync", "signal=KILL", "8"),
]


@pytest.fixture
def folder() -> Iterator[Path]:
    """In memory where there is room for it: an image is written, read once and thrown away."""
    shared = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else None) as made:
        yield Path(made)


def images(folder: Path) -> Path:
    place = folder / "images"
    place.mkdir()
    return place


@pytest.mark.parametrize(
    ("seed", "count"), [(0, 600), *(pytest.param(seed, 700, marks=pytest.mark.long) for seed in range(1, 9))]
)
def test_no_power_cut_and_no_death_loses_what_was_told(folder: Path, seed: int, count: int) -> None:
    recording = record(folder, KEYS)
    assert len(recording.told(len(recording.events))) == KEYS
    kinds = Counter(event.what for event in recording.events)
    assert kinds["sync"] > 20, kinds
    assert kinds["write"] > 200, kinds
    place = images(folder)
    assert [found for found in power_cuts(recording, place, count, seed) if found] == []
    assert [found for found in deaths(recording, place) if found] == []


def test_a_server_that_does_not_sync_its_commits_is_found_by_power_cuts(folder: Path) -> None:
    recording = record(folder, KEYS, mutant="commits_without_a_sync")
    found = [fault for image in power_cuts(recording, images(folder), 200, 0) for fault in image]
    assert any("is lost" in fault for fault in found)


@pytest.mark.parametrize(("call", "what", "when"), ALWAYS)
def test_a_disk_that_fails_and_a_death_at_a_call_lose_nothing(folder: Path, call: str, what: str, when: str) -> None:
    prepared = folder / "prepared"
    prepared.mkdir()
    prepare(prepared)
    found, said = injected(prepared, images(folder), call, what, when)
    assert found == [], said
    assert "granted" in said, said
    assert "refused" in said or "KILL" in what, said


@pytest.mark.long
@pytest.mark.parametrize("what", ["error=EIO", "error=ENOSPC", "signal=KILL"])
@pytest.mark.parametrize(("call", "last"), [("fdatasync", 14), ("pwrite64", 70)])
def test_every_call_fails_or_is_the_last_one_in_turn(folder: Path, call: str, last: int, what: str) -> None:
    prepared, place = folder / "prepared", images(folder)
    prepared.mkdir()
    prepare(prepared)
    for nth in range(1, last + 1):
        for left in place.iterdir():
            left.unlink()
        found, said = injected(prepared, place, call, what, str(nth))
        assert found == [], (nth, said)
