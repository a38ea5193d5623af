"""Real files, real threads; only the clock is manual."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.clock import ManualClock
from app.storage.sqlite import SqliteEngine
from tests.storage.shelf import PATIENT, Open


@pytest.fixture
def open_engine(tmp_path: Path) -> Iterator[Open]:
    """Opens engines on `fencepost.db`; those still open at the end are closed."""
    engines: list[SqliteEngine] = []

    def open_(path: Path = tmp_path / "fencepost.db", **settings: Any) -> SqliteEngine:
        settings.setdefault("clock", ManualClock())
        engine = SqliteEngine(path, **(PATIENT | settings))
        engines.append(engine)
        return engine

    yield open_
    for engine in reversed(engines):
        engine.close()
