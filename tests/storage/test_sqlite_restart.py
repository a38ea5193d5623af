"""What a restart keeps: every acknowledged write, the count of fences, and how late it was."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from app.clock import ManualClock
from app.storage import fence
from app.storage.engine import Transaction
from app.storage.sqlite_file import DatabaseRefused, filesystem_of, refuse_network_filesystem
from tests.storage import shelf
from tests.storage.shelf import Open

CHILD = "tests.storage.child"
ROOT = Path(__file__).parents[2]


def _child(*arguments: object, **settings: object) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", CHILD, *map(str, arguments)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_fences_rise_across_a_restart_and_rolled_back_ones_are_not_used_again(open_engine: Open) -> None:
    engine = open_engine()
    drawn = [engine.run(lambda tx: tx.next_fence()) for _ in range(3)]
    assert drawn == [1, 2, 3]

    def fail(tx: Transaction) -> None:
        tx.next_fence()
        raise KeyError("rolled back")

    with pytest.raises(KeyError):
        engine.run(fail)
    engine.close()
    assert open_engine().run(lambda tx: tx.next_fence()) > 3


@pytest.mark.parametrize(("epoch", "count"), [(0, 1), (0, 2**40 - 1), (1, 1), (2**13 - 1, 2**40 - 1)])
def test_a_fence_is_epoch_and_count_and_fits_a_json_number(epoch: int, count: int) -> None:
    assert fence.fence(epoch, count) == epoch * 2**40 + count <= 2**53 - 1


@pytest.mark.parametrize(("epoch", "count"), [(0, 2**40), (2**13, 1), (0, 0), (-1, 1)])
def test_fences_end_where_they_would_wrap(epoch: int, count: int) -> None:
    with pytest.raises(fence.FencesUsedUp):
        fence.fence(epoch, count)


def test_the_clock_begins_where_the_last_decision_was(open_engine: Open) -> None:
    clock = ManualClock()
    engine = open_engine(clock=clock)
    clock.advance(3600)

    def decide(tx: Transaction) -> int:
        shelf.put(tx, "decided")
        return tx.now()

    decided_at = engine.run(decide)
    engine.close()
    stepped_back = ManualClock(clock.now() - 7_200_000_000)
    engine = open_engine(clock=stepped_back)
    assert engine.run(lambda tx: tx.now()) == decided_at


def test_an_instant_that_was_first_only_read_still_counts_once_it_decides(open_engine: Open) -> None:
    clock = ManualClock()
    engine = open_engine(clock=clock)
    clock.advance(3600)
    read_at = engine.run(lambda tx: tx.now())
    engine.run(lambda tx: (tx.now(), shelf.put(tx, "decided")))
    engine.close()
    engine = open_engine(clock=ManualClock(read_at - 7_200_000_000))
    assert engine.run(lambda tx: tx.now()) == read_at


def test_a_group_that_changed_nothing_writes_nothing(open_engine: Open, tmp_path: Path) -> None:
    clock = ManualClock()
    engine = open_engine(clock=clock)
    engine.run(lambda tx: shelf.put(tx, "a"))
    log = tmp_path / "fencepost.db-wal"
    size = log.stat().st_size
    for _ in range(10):
        clock.advance(1)
        engine.run(lambda tx: (tx.now(), shelf.number(tx, "a")))
    assert log.stat().st_size == size > 0


def test_a_second_process_is_refused_with_a_sentence(open_engine: Open, tmp_path: Path) -> None:
    open_engine()
    second = _child("once", tmp_path / "fencepost.db")
    _, error = second.communicate(timeout=30)
    assert second.returncode != 0
    assert f"Another process (pid {os.getpid()}) serves" in error


def test_a_second_engine_of_this_process_is_refused_until_the_first_is_closed(open_engine: Open) -> None:
    engine = open_engine()
    with pytest.raises(DatabaseRefused):
        open_engine()
    engine.close()
    assert shelf.names(open_engine()) == []


@pytest.mark.parametrize("patched", ["plain", "patched"])
@pytest.mark.parametrize("after", [1, 40, 300])
def test_what_was_acknowledged_before_a_kill_is_there_after_it(
    open_engine: Open, tmp_path: Path, patched: str, after: int
) -> None:
    child = _child("write", tmp_path / "fencepost.db", patched)
    assert child.stdout is not None
    acknowledged = [child.stdout.readline().split() for _ in range(after)]
    child.send_signal(signal.SIGKILL)
    rest, _ = child.communicate(timeout=30)
    acknowledged += [line.split() for line in rest.splitlines() if line.endswith(".")]
    engine = open_engine()
    stored = set(shelf.names(engine))
    assert {name for name, _, _ in acknowledged} <= stored
    fences = [int(number) for _, number, _ in acknowledged]
    assert len(set(fences)) == len(fences)
    assert engine.run(lambda tx: tx.next_fence()) > max(fences)


def test_an_input_output_error_at_the_commit_ends_all_acknowledging(open_engine: Open, tmp_path: Path) -> None:
    child = _child("io-error", tmp_path / "fencepost.db")
    output, error = child.communicate(timeout=30)
    lines = output.splitlines()
    assert "fatal: SQLite: disk I/O error" in lines, error
    assert [line for line in lines if not line.startswith("fatal")] == [
        "small stored",
        "large unknown",
        "after no",
        "problems: SQLite: disk I/O error",
    ]
    assert shelf.names(open_engine()) == ["small"]


def test_a_network_file_system_is_refused(tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    folder = tmp_path / "with space"
    folder.mkdir()
    spelled = str(folder).replace(" ", "\\040")
    mounts.write_text(f"/dev/sda / ext4 rw 0 0\nserver:/x {spelled} nfs4 rw 0 0\n", encoding="utf-8")
    with pytest.raises(DatabaseRefused, match="network file system \\(nfs4\\)"):
        refuse_network_filesystem(folder / "deeper", mounts)
    refuse_network_filesystem(tmp_path, mounts)
    mounts.write_text("/dev/sda / ext4 rw 0 0\nsshfs /mnt fuse.sshfs rw 0 0\n", encoding="utf-8")
    assert filesystem_of(Path("/mnt/a"), mounts) == "fuse.sshfs"
    assert filesystem_of(Path("/mnta"), mounts) == "ext4"


def test_a_data_folder_of_another_user_is_refused_with_a_sentence(tmp_path: Path) -> None:
    """As root nothing is forbidden, so the start is made as nobody where this runs as root."""
    (tmp_path / "fencepost.db.lock").touch(mode=0o400)
    tmp_path.chmod(0o555)
    program = (
        "import os, sys; from pathlib import Path; from app.storage.sqlite_file import FileLock, DatabaseRefused\n"
        "if os.geteuid() == 0:\n    os.chown(sys.argv[1] + '/fencepost.db.lock', 0, 0); os.chdir(sys.argv[1])\n"
        "    os.setuid(65534)\nelse:\n    os.chdir(sys.argv[1])\n"
        "try:\n    FileLock(Path('fencepost.db'))\nexcept DatabaseRefused as refused:\n    print(refused)"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert said.startswith("fencepost.db.lock cannot be written by this user")
