"""A file that is not what was left is told at start, and nothing of it is served or changed."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from app.clock import ManualClock, SteadyClock
from app.storage import fence, sqlite_custody
from app.storage.sqlite import SqliteEngine
from app.storage.sqlite_file import DatabaseRefused
from app.storage.sqlite_restore import put_in_place
from tests.storage import shelf
from tests.storage.shelf import Open

ROOT = Path(__file__).parents[2]
FILES = ("fencepost.db", "fencepost.db-wal", "fencepost.db-shm", "fencepost.db.lock")


def killed(folder: Path, writes: int = 40) -> None:
    """Somebody wrote here and was killed."""
    command = [sys.executable, "-m", "tests.storage.child", "write", str(folder / "fencepost.db")]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        for _ in range(writes):
            assert child.stdout.readline()
        os.kill(child.pid, signal.SIGKILL)


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as a killed process leaves it; tests copy it."""
    folder = tmp_path_factory.mktemp("left")
    killed(folder)
    return folder


def copied(left: Path, target: Path, *names: str) -> Path:
    for name in names or FILES:
        shutil.copyfile(left / name, target / name)
    return target / "fencepost.db"


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in FILES[:2] if (folder / name).exists()}


def refused(file: Path, why: str) -> None:
    """It is, twice, and nothing was changed."""
    before = bytes_of(file.parent)
    for _ in range(2):
        with pytest.raises(DatabaseRefused, match=why):
            SqliteEngine(file, clock=SteadyClock())
        assert bytes_of(file.parent) == before


def test_what_a_killed_process_left_is_served(left: Path, tmp_path: Path) -> None:
    engine = SqliteEngine(copied(left, tmp_path), clock=SteadyClock())
    assert len(shelf.names(engine)) >= 40
    engine.close()


def test_the_same_without_the_index_or_the_folders_note(left: Path, tmp_path: Path) -> None:
    SqliteEngine(copied(left, tmp_path, *FILES[:2]), clock=SteadyClock()).close()


def test_a_bare_copy_of_a_served_file_is_told(left: Path, tmp_path: Path) -> None:
    refused(copied(left, tmp_path, FILES[0]), "its log fencepost.db-wal is missing")


def test_a_log_without_its_database_is_told(left: Path, tmp_path: Path) -> None:
    copied(left, tmp_path, FILES[1])
    refused(tmp_path / "fencepost.db", "is the log of a database that is missing")


# Not near its end: after a checkpoint the tail of the file is what an earlier round left there, and no loss.
@pytest.mark.parametrize("kept", [0.0, 0.3])
def test_a_log_that_was_cut_is_told(left: Path, tmp_path: Path, kept: float) -> None:
    file = copied(left, tmp_path)
    log = tmp_path / FILES[1]
    os.truncate(log, int(log.stat().st_size * kept))
    refused(file, "was cut or damaged")


@pytest.mark.parametrize("at", [0.2, 0.5, 0.8])
def test_one_flipped_byte_in_the_log_is_told(left: Path, tmp_path: Path, at: float) -> None:
    file = copied(left, tmp_path)
    log = bytearray((tmp_path / FILES[1]).read_bytes())
    log[int(len(log) * at)] ^= 1
    (tmp_path / FILES[1]).write_bytes(log)
    refused(file, "was cut or damaged")


def closed_after(file: Path, count: int) -> None:
    engine = SqliteEngine(file, clock=SteadyClock())
    for n in range(count):
        engine.run(lambda tx, n=n: shelf.put(tx, f"more{n}"))  # type: ignore[misc]
    engine.close()


def test_an_old_log_beside_a_newer_file_is_told(left: Path, tmp_path: Path) -> None:
    file = copied(left, tmp_path)
    closed_after(file, 3)
    copied(left, tmp_path, FILES[1])
    refused(file, "do not belong together|older than the database|rounds older")


def test_a_new_log_beside_an_older_file_is_told(tmp_path: Path) -> None:
    older, newer = tmp_path / "older", tmp_path / "newer"
    older.mkdir()
    newer.mkdir()
    closed_after(older / FILES[0], 1)
    shutil.copyfile(older / FILES[0], newer / FILES[0])
    killed(newer)
    shutil.copyfile(older / FILES[0], newer / FILES[0])
    refused(newer / FILES[0], "do not belong together")


def test_the_log_of_another_database_is_told(left: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    killed(other)
    file = copied(left, tmp_path)
    shutil.copyfile(other / FILES[1], tmp_path / FILES[1])
    (tmp_path / FILES[2]).unlink()
    refused(file, "do not belong together|older than the database")


def test_an_older_file_put_in_place_of_a_newer_one_is_told(left: Path, tmp_path: Path) -> None:
    file = copied(left, tmp_path)
    closed_after(file, 1)
    shutil.copyfile(file, tmp_path / "old.db")
    for _ in range(2):
        closed_after(file, 0)
    shutil.copyfile(tmp_path / "old.db", file)
    refused(file, "another file than this folder had before")


def test_a_damaged_page_is_told(tmp_path: Path) -> None:
    file = tmp_path / "fencepost.db"
    closed_after(file, 200)
    pages = bytearray(file.read_bytes())
    for at in range(4096 * 2, len(pages), 4096):
        pages[at] ^= 0xFF
    file.write_bytes(pages)
    refused(file, "is damaged")


def test_a_file_that_is_no_database_is_told(tmp_path: Path) -> None:
    (tmp_path / "fencepost.db").write_bytes(b"no database at all, but long enough to look like one" * 100)
    refused(tmp_path / "fencepost.db", "is damaged")


def test_a_disk_with_no_room_is_told_as_that_and_not_as_damage(left: Path, tmp_path: Path) -> None:
    file = copied(left, tmp_path, *FILES[:2])
    before = bytes_of(tmp_path)
    program = (
        "import resource, sys; from pathlib import Path; from tests.storage import child; "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY)); child.once(Path(sys.argv[1]))"
    )
    done = subprocess.run([sys.executable, "-c", program, str(file)], cwd=ROOT, capture_output=True, text=True)
    assert "its disk is full or failing" in done.stderr
    assert "damaged" not in done.stderr
    assert bytes_of(tmp_path) == before
    (tmp_path / "fencepost.db-shm").unlink(missing_ok=True)
    SqliteEngine(file, clock=SteadyClock()).close()


@pytest.mark.parametrize("step", ["before the mark is copied", "before it is settled"])
def test_a_start_that_was_killed_half_way_is_no_reason_to_refuse(
    tmp_path: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "fencepost.db"
    closed_after(file, 1)

    class Killed(BaseException):
        pass

    write, calls = sqlite_custody._write, list[int]()
    last = 1 if step == "before the mark is copied" else 2

    def dying(connection: sqlite3.Connection, numbers: dict[str, int]) -> None:
        calls.append(1)
        if len(calls) == 1 or (last == 2 and len(calls) < 2):
            write(connection, numbers)
        if len(calls) == last:
            for name in FILES:
                shutil.copyfile(tmp_path / name, tmp_path / "then" / name)
            raise Killed

    (tmp_path / "then").mkdir()
    monkeypatch.setattr(sqlite_custody, "_write", dying)
    with pytest.raises(Killed):
        SqliteEngine(file, clock=SteadyClock())
    monkeypatch.undo()
    engine = SqliteEngine(tmp_path / "then" / "fencepost.db", clock=SteadyClock())
    assert shelf.names(engine) == ["more0"]
    engine.close()


def test_a_backup_put_in_place_by_hand_goes_on_in_a_new_epoch(open_engine: Open, tmp_path: Path) -> None:
    engine = open_engine()
    engine.run(lambda tx: tx.next_fence())
    engine.backup(tmp_path / "copy.db")
    granted = [engine.run(lambda tx: tx.next_fence()) for _ in range(3)]
    engine.close()
    shutil.copyfile(tmp_path / "copy.db", tmp_path / "fencepost.db")
    again = open_engine()
    assert again.run(lambda tx: tx.next_fence()) > max(granted)


def restored(source: Path, target: Path, **more: int) -> Callable[[], int]:
    """Restore and draw a fence."""
    put_in_place(source, target, **more)  # type: ignore[arg-type]

    def draw() -> int:
        engine = SqliteEngine(target, clock=ManualClock())
        drawn = engine.run(lambda tx: tx.next_fence())
        engine.close()
        return drawn

    return draw


def test_fences_of_one_backup_restored_again_and_again_in_a_folder_never_repeat(
    open_engine: Open, tmp_path: Path
) -> None:
    engine = open_engine()
    engine.backup(tmp_path / "copy.db")
    engine.close()
    drawn = []
    for _ in range(3):
        target = tmp_path / "fencepost.db"
        target.unlink()
        drawn.append(restored(tmp_path / "copy.db", target)())
    assert drawn == [fence.fence(epoch, 1) for epoch in (1, 2, 3)]
    target.unlink()
    assert restored(tmp_path / "copy.db", target, above_epoch=70)() == fence.fence(71, 1)


def test_a_restore_overwrites_nothing_and_takes_no_file_of_a_running_server(left: Path, tmp_path: Path) -> None:
    file = copied(left, tmp_path)
    before = bytes_of(tmp_path)
    with pytest.raises(DatabaseRefused, match="nothing is overwritten"):
        put_in_place(file, file)
    elsewhere = tmp_path / "elsewhere" / "fencepost.db"
    with pytest.raises(DatabaseRefused, match="has a log beside it"):
        put_in_place(file, elsewhere)
    (tmp_path / FILES[1]).unlink()
    with pytest.raises(DatabaseRefused, match="copied while it was served"):
        put_in_place(file, elsewhere)
    assert not elsewhere.exists()
    assert file.read_bytes() == before[FILES[0]]
    assert restored(file, elsewhere, without_log=True)() == fence.fence(1, 1)


def test_a_restore_refuses_what_is_damaged_and_leaves_nothing(open_engine: Open, tmp_path: Path) -> None:
    engine = open_engine()
    engine.backup(tmp_path / "copy.db")
    pages = bytearray((tmp_path / "copy.db").read_bytes())
    for at in range(4096 * 2, len(pages), 4096):
        pages[at] ^= 0xFF
    (tmp_path / "copy.db").write_bytes(pages)
    target = tmp_path / "new" / "fencepost.db"
    with pytest.raises(DatabaseRefused, match="damaged"):
        put_in_place(tmp_path / "copy.db", target)
    assert [file.name for file in target.parent.iterdir()] == ["fencepost.db.lock"]
