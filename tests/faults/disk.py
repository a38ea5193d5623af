"""Power cuts and broken disks under SQLite, by strace.

A recording is every write, truncation and sync of the database's files by the server's engine, in their order, and
between them the instants at which callers were told. From it follow all the disks that a power cut could have left:
what was synced is there; of what was written since, any part, down to single sectors of 512 bytes. A process that dies
takes nothing with it that was written, so its image is the recording up to there.

An image must be sound to SQLite, hold every grant that was told before the cut, and no fence above the count from which
the next one is drawn.
"""

import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from app.clock import SteadyClock
from app.services.lease import key_hash
from app.storage.sqlite import SqliteEngine

ROOT = Path(__file__).resolve().parents[2]
SECTOR = 512
NAME = "fencepost.db"
QUIET_SECONDS = 1.3
"""The engine copies its log into the database when it had nothing to do for a second."""
FILES = (NAME, NAME + "-wal")
_CALL = re.compile(r"^(\d+) +(\w+)\((?:\d+)<([^>]*)>(.*)$")
_RESUMED = re.compile(r"^(\d+) +<\.\.\. (\w+) resumed>(.*)$")
_DATA = re.compile(r'^, "((?:\\x[0-9a-f]{2})*)"(?:, (\d+)(?:, (\d+))?)?')


@dataclass(frozen=True, slots=True)
class Event:
    """One step. `covers` of a sync: how many events had happened when it began."""

    what: Literal["write", "truncate", "sync", "told"]
    file: str
    offset: int = 0
    data: bytes = b""
    covers: int = 0


@dataclass
class Recording:
    """All steps of a process."""

    events: list[Event] = field(default_factory=list)

    @property
    def first_told(self) -> int:
        """The first step at which somebody was told something: before, there is nothing to lose."""
        return next(index for index, event in enumerate(self.events) if event.what == "told")

    def told(self, until: int) -> dict[str, int]:
        """Keys and fences that somebody was told of before this step."""
        lines = b"".join(event.data for event in self.events[:until] if event.what == "told").decode().splitlines()
        return {key: int(fence) for kind, key, fence in map(str.split, _whole(lines)) if kind == "granted"}

    def cuts(self) -> list[int]:
        """The steps before and after which the power may go: every sync, and the telling after it."""
        syncs = [index for index, event in enumerate(self.events) if event.what == "sync" and index > self.first_told]
        return sorted({place for index in syncs for place in (index, index + 1)})


def _whole(lines: list[str]) -> list[str]:
    return [line for line in lines if line.count(" ") == 2]


def record(folder: Path, keys: int, mutant: str | None = None) -> Recording:
    """Run the child under strace and read what it did."""
    log = folder / "trace"
    traced = "trace=pwrite64,write,ftruncate,fdatasync,fsync"
    strace = ["strace", "-f", "-y", "-xx", "-s", "1000000", "-e", "signal=none", "-e", traced, "-o", str(log)]
    done = _child(strace, folder, keys, mutant)
    assert done.returncode == 0, done.stderr
    with log.open(encoding="ascii") as lines:
        return Recording(list(_events(lines)))


def _child(
    strace: list[str], folder: Path, keys: int, mutant: str | None = None, quiet_seconds: float = QUIET_SECONDS
) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-m", "tests.faults.disk_child"]
    command = [*strace, *program, str(folder / NAME), str(keys), str(quiet_seconds)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "MUTANT": mutant or ""}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)


def _events(lines: Iterator[str]) -> Iterator[Event]:
    """Writes count from when they begin, a sync from when it ends, over what had begun before it."""
    count = 0
    syncing: dict[str, tuple[str, int]] = {}
    for line in lines:
        resumed = _RESUMED.match(line)
        if resumed and resumed[2] in ("fdatasync", "fsync"):
            file, covers = syncing.pop(resumed[1], ("", 0))
            if file:
                count += 1
                yield Event("sync", file, covers=covers)
            continue
        call = _CALL.match(line)
        if call is None:
            continue
        pid, name, path, rest = call.groups()
        file = _plain(path)
        if name == "write" and (path.startswith("pipe:") or "pipe" in file):
            found = _DATA.match(rest)
            if found:
                count += 1
                yield Event("told", "", data=_bytes(found[1]))
        elif Path(file).name not in FILES:
            continue
        elif name in ("fdatasync", "fsync"):
            if "unfinished" in rest:
                syncing[pid] = (Path(file).name, count)
            else:
                count += 1
                yield Event("sync", Path(file).name, covers=count - 1)
        elif name == "ftruncate":
            count += 1
            yield Event("truncate", Path(file).name, int(re.findall(r"\d+", rest)[0]))
        elif name == "pwrite64":
            found = _DATA.match(rest)
            assert found is not None, line[:200]
            assert found[3] is not None, line[:200]
            count += 1
            yield Event("write", Path(file).name, int(found[3]), _bytes(found[1]))


def _plain(path: str) -> str:
    return _bytes(path).decode() if path.startswith("\\x") else path


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text.replace("\\x", ""))


def image(recording: Recording, cut: int, rng: random.Random | None) -> dict[str, bytes]:
    """What the files hold if the power went before step `cut`; without `rng`, if only the process ended there."""
    files: dict[str, bytearray] = {name: bytearray() for name in FILES}
    synced = dict.fromkeys(FILES, 0)
    for event in recording.events[:cut]:
        if event.what == "sync":
            synced[event.file] = max(synced[event.file], event.covers)
    keep = 1.0 if rng is None else rng.choice([0.0, 0.2, 0.5, 0.8, 0.95])
    for index, event in enumerate(recording.events[:cut]):
        if event.what not in ("write", "truncate"):
            continue
        is_safe = rng is None or index < synced[event.file]
        if event.what == "truncate":
            if is_safe or (rng is not None and rng.random() < keep):
                del files[event.file][event.offset :]
        elif is_safe:
            _write(files[event.file], event.offset, event.data)
        elif rng is not None:
            _write_torn(files[event.file], event, rng, keep)
    return {name: bytes(content) for name, content in files.items()}


def _write(content: bytearray, offset: int, data: bytes) -> None:
    if len(content) < offset:
        content.extend(bytes(offset - len(content)))
    content[offset : offset + len(data)] = data


def _write_torn(content: bytearray, event: Event, rng: random.Random, keep: float) -> None:
    """Whole, not at all, or some of its sectors."""
    fate = rng.random()
    if fate < 0.6:
        if rng.random() < keep:
            _write(content, event.offset, event.data)
        return
    for start in range(0, len(event.data), SECTOR):
        if rng.random() < keep:
            _write(content, event.offset + start, event.data[start : start + SECTOR])


def faults(folder: Path, files: dict[str, bytes], told: dict[str, int], *, opens: bool = False) -> list[str]:
    """What is wrong with an image; with `opens` the engine itself starts on it and draws a fence."""
    _lay_out(folder, files)
    found = stored_faults(folder / NAME, told)
    if opens and not found:
        _lay_out(folder, files)
        engine = SqliteEngine(folder / NAME, clock=SteadyClock())
        try:
            fence = engine.run(lambda tx: tx.next_fence())
        finally:
            engine.close()
        if fence <= max(told.values(), default=0):
            found.append(f"after the start fence {fence} was drawn, {max(told.values())} had been told")
    return found


def _lay_out(folder: Path, files: dict[str, bytes]) -> None:
    for left in folder.glob(NAME + "*"):
        left.unlink()
    for name, content in files.items():
        (folder / name).write_bytes(content)


def stored_faults(database: Path, told: dict[str, int]) -> list[str]:
    """What a database lacks of what was told, as SQLite reads it."""
    connection = sqlite3.connect(database)
    try:
        found = [str(row[0]) for row in connection.execute("PRAGMA integrity_check") if row[0] != "ok"]
        rows = dict(connection.execute("SELECT key_hash, fence FROM lease").fetchall())
        (drawn,) = connection.execute("SELECT number FROM meta WHERE name = 'fence_count'").fetchone()
    except sqlite3.Error as fault:
        return [f"SQLite: {fault}"]
    finally:
        connection.close()
    lost = [(key, fence) for key, fence in told.items() if rows.get(key_hash(key, None)) != fence]
    found += [f"{key} with fence {fence} is lost" for key, fence in lost]
    if max([*rows.values(), 0]) > drawn:
        found.append(f"fence {max(rows.values())} stands, and only {drawn} are counted as drawn")
    return found


def power_cuts(recording: Recording, folder: Path, images: int, seed: int) -> Iterator[list[str]]:
    """Cut the power so many times, at every sync in turn: what was wrong with each image."""
    rng = random.Random(seed)
    cuts = recording.cuts()
    for number in range(images):
        cut = cuts[number % len(cuts)] if number % 3 else rng.randrange(cuts[0], len(recording.events))
        yield faults(folder, image(recording, cut, rng), recording.told(cut), opens=number % 100 == 0)


def deaths(recording: Recording, folder: Path) -> Iterator[list[str]]:
    """Let the process die after each of its steps in turn."""
    for cut in range(recording.first_told, len(recording.events) + 1):
        yield faults(folder, image(recording, cut, None), recording.told(cut))


def prepare(folder: Path) -> None:
    """A database that is migrated and empty, so that a fault strikes at a grant and not at the first start."""
    done = _child([], folder, 0)
    assert done.returncode == 0, done.stderr


def injected(prepared: Path, folder: Path, call: str, what: str, when: str, keys: int = 36) -> tuple[list[str], str]:
    """Run the child with strace's `inject` (`when` counts in each thread), and look at what it left.

    What is wrong with it, and all that the child said.
    """
    for file in prepared.glob(NAME + "*"):
        shutil.copy(file, folder)
    paths = [part for name in FILES for part in ("-P", str(folder / name))]
    strace = ["strace", "-f", "-qq", *paths, "-e", f"trace={call}", "-e", "signal=none", "-o", "/dev/null"]
    done = _child([*strace, "-e", f"inject={call}:{what}:when={when}"], folder, keys, quiet_seconds=0.0)
    lines = [line.split() for line in _whole(done.stdout.splitlines())]
    told = {key: int(fence) for kind, key, fence in lines if kind == "granted"}
    return stored_faults(folder / NAME, told), done.stdout
