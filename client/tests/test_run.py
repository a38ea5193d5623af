"""`fencepost run`: exit codes, the whole group ended in time, whoever is killed, stopped or cut off."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from client.tests.commands import WORDS, environment, is_running
from client.tests.commands import fencepost as command
from client.tests.proxy import Relay
from client.tests.waiting import until
from tests.real.server import RunningServer

import fencepost
from fencepost import Granted

TTL = 6
Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts the command; what still runs at the end is killed."""
    running: list[subprocess.Popen[bytes]] = []

    def begin(*words: str, env: dict[str, str]) -> "subprocess.Popen[bytes]":
        running.append(subprocess.Popen([*WORDS, *words], env=env, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        return running[-1]

    yield begin
    for wrapper in running:
        wrapper.kill()
        wrapper.wait()


@pytest.fixture
def env(url: str, tmp_path: Path, ns: str) -> dict[str, str]:
    """An environment with a namespace."""
    return environment(url, tmp_path, FENCEPOST_NAMESPACE=ns)


@pytest.mark.parametrize("code", [0, 7, 75, 255])
def test_the_exit_code_is_the_commands(env: dict[str, str], code: int) -> None:
    """L-X3."""
    assert command("run", "k", "--", "sh", "-c", f"exit {code}", env=env).returncode == code


def test_a_command_ended_by_a_signal_ends_like_in_a_shell(env: dict[str, str]) -> None:
    assert command("run", "k", "--", "sh", "-c", "kill -KILL $$", env=env).returncode == 128 + signal.SIGKILL


def test_what_cannot_be_run_is_said_and_the_lease_is_free_at_once(env: dict[str, str], tmp_path: Path) -> None:
    assert command("run", "k", "--", "no-such-command", env=env).returncode == 127
    assert command("run", "k", "--", str(tmp_path), env=env).returncode == 126
    assert command("run", "k", "--", "true", env=env).returncode == 0


def test_flags_of_the_command_are_its_own(env: dict[str, str]) -> None:
    words = ["--ttl", "5", "--json", "--", "-x", "--help", "", "a b"]
    done = command("run", "k", "--", "printf", "<%s>", *words, env=env)
    assert done.stdout == "".join(f"<{word}>" for word in words)
    assert command("run", "k", "true", env=env).returncode == 2
    assert command("run", "k", "--", env=env).returncode == 2


def test_the_child_gets_key_and_fence_and_no_token(env: dict[str, str]) -> None:
    env |= {"FENCEPOST_OWNER_TOKEN": "own_x", "FENCEPOST_CLAIM_TOKEN": "clm_x"}
    done = command("run", "k", "--", "env", env=env)
    told = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
    assert told["FENCEPOST_KEY"] == "k"
    assert int(told["FENCEPOST_FENCE"]) >= 1
    assert "own_" not in done.stdout
    assert "clm_" not in done.stdout


def test_a_held_lease_is_waited_for_and_then_given_up(env: dict[str, str], url: str, ns: str) -> None:
    with fencepost.Client(url) as fp:
        with fp.lease("k", namespace=ns, holder="ada\x1b[31m"):
            done = command("run", "k", "--wait", "1", "--", "echo", "ran", env=env)
        assert (done.returncode, done.stdout) == (75, "")
        assert "ada\\x1b" in done.stderr
        fp.leases.acquire("k", namespace=ns, ttl=2)
    done = command("run", "k", "--wait", "20", "--", "echo", "ran", env=env)
    assert (done.returncode, done.stdout) == (0, "ran\n")


def test_a_signal_ends_the_wait_for_a_server_that_does_not_answer(start: Start, env: dict[str, str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        env |= {"FENCEPOST_URL": f"http://127.0.0.1:{silent.getsockname()[1]}"}
        wrapper = start("run", "k", "--", "true", env=env)
        silent.settimeout(30)
        caller, _ = silent.accept()
        wrapper.send_signal(signal.SIGTERM)
        assert wrapper.wait(30) == 128 + signal.SIGTERM
        caller.close()


def test_output_becomes_the_result_and_the_work_is_skipped_from_then_on(env: dict[str, str]) -> None:
    options = ["--complete-with-stdout", "--skip-if-completed"]
    first = command("run", "k", *options, "--", "echo", '{"n": 1.50}', env=env)
    assert (first.returncode, first.stdout) == (0, '{"n": 1.50}\n')
    again = command("run", "k", *options, "--", "echo", "again", env=env)
    assert (again.returncode, again.stdout) == (0, '{"n": 1.5}\n')
    assert command("run", "k", "--", "echo", "again", env=env).returncode == 75
    text = command("run", "t", *options, "--", "echo", "plain text", env=env)
    assert text.stdout == command("run", "t", *options, "--", "false", env=env).stdout == "plain text\n"
    failed = command("run", "f", *options, "--", "sh", "-c", "echo half; exit 3", env=env)
    assert (failed.returncode, failed.stdout) == (3, "half\n")
    assert command("run", "f", *options, "--", "echo", "whole", env=env).stdout == "whole\n"


def test_output_too_long_to_record_is_told(env: dict[str, str]) -> None:
    for size in (40_000, 400_000):
        done = command("run", "k", "--complete-with-stdout", "--", "head", "-c", str(size), "/dev/zero", env=env)
        assert done.returncode == 73
        assert len(done.stdout) == size
    assert command("run", "k", "--", "true", env=env).returncode == 0


def test_who_reads_no_more_ends_an_endless_command_and_loses_no_short_result(env: dict[str, str]) -> None:
    run = ["run", "k", "--complete-with-stdout", "--"]
    for target in ("| head -c 1", ">/dev/full", ">&-"):
        shell = f'{{ "$@"; echo $? >&2; }} {target}'
        words = ["sh", "-c", shell, "sh", *WORDS, *run, "yes"]
        done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=60, check=False)
        assert done.stderr.splitlines()[-1] == str(128 + signal.SIGPIPE), done.stderr
        assert "Traceback" not in done.stderr
    words = ["sh", "-c", '"$@" >/dev/full', "sh", *WORDS, *run, "echo", "42"]
    done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 74
    assert command(*run[:3], "--skip-if-completed", "--", "false", env=env).stdout == '{"result": 42}\n'


def _sleeper(folder: Path) -> tuple[list[str], Path]:
    """A shell with a child of its own, and the file that names both."""
    file = folder / "pids"
    return ["sh", "-c", f"sleep 999 & echo $$ $! >{file}.new; mv {file}.new {file}; wait"], file


def _pids(file: Path) -> list[int]:
    until(file.exists)
    return [int(word) for word in file.read_text(encoding="ascii").split()]


def test_a_lost_lease_ends_the_whole_group_and_acts_once(
    start: Start, own_server: RunningServer, tmp_path: Path, ns: str
) -> None:
    """L-X1, L-X4, L-X7."""
    env = environment(own_server.url, tmp_path, FENCEPOST_NAMESPACE=ns)
    words, file = _sleeper(tmp_path)
    on_lost = f"echo $FENCEPOST_KEY $FENCEPOST_REASON >>{tmp_path}/lost"
    wrapper = start("run", "k", "--ttl", "3", "--on-lost", on_lost, "--", *words, env=env)
    pids = _pids(file)
    own_server.set_clock(3600)
    assert wrapper.wait(30) == 76
    assert not any(map(is_running, pids))
    assert (tmp_path / "lost").read_text(encoding="ascii") == "k lost\n"


@pytest.mark.parametrize("stubborn", [False, True])
def test_cut_off_the_group_is_gone_before_the_server_grants_to_another(
    start: Start, server: RunningServer, tmp_path: Path, ns: str, stubborn: bool
) -> None:
    words, file = _sleeper(tmp_path)
    if stubborn:
        words[2] = f"trap '' TERM; {words[2]}"
    with Relay(server.port) as relay, fencepost.Client(server.url) as rival:
        env = environment(relay.url, tmp_path, FENCEPOST_NAMESPACE=ns)
        wrapper = start("run", "k", "--ttl", str(TTL), "--", *words, env=env)
        pids = _pids(file)
        time.sleep(TTL / 2)
        assert all(map(is_running, pids))
        relay.is_silent.set()
        outcome = rival.leases.acquire("k", namespace=ns, wait=60)
        assert isinstance(outcome, Granted)
        assert not any(map(is_running, pids))
        assert wrapper.wait(30) == 76


def test_a_killed_wrapper_takes_its_command_along(start: Start, server: RunningServer, tmp_path: Path, ns: str) -> None:
    """L-X6."""
    env = environment(server.url, tmp_path, FENCEPOST_NAMESPACE=ns)
    words, file = _sleeper(tmp_path)
    wrapper = start("run", "k", "--ttl", "3", "--", *words, env=env)
    pids = _pids(file)
    wrapper.kill()
    wrapper.wait()
    until(lambda: not any(map(is_running, pids)))
    with fencepost.Client(server.url) as rival:
        assert isinstance(rival.leases.acquire("k", namespace=ns, wait=20), Granted)


def test_a_stopped_wrapper_cannot_leave_its_command_unguarded(
    start: Start, server: RunningServer, tmp_path: Path, ns: str
) -> None:
    env = environment(server.url, tmp_path, FENCEPOST_NAMESPACE=ns)
    words, file = _sleeper(tmp_path)
    wrapper = start("run", "k", "--ttl", str(TTL), "--", *words, env=env)
    pids = _pids(file)
    wrapper.send_signal(signal.SIGSTOP)
    with fencepost.Client(server.url) as rival:
        assert isinstance(rival.leases.acquire("k", namespace=ns, wait=60), Granted)
    assert not any(map(is_running, pids))
    wrapper.send_signal(signal.SIGCONT)
    assert wrapper.wait(30) == 76


def test_a_killed_guardian_is_replaced(start: Start, server: RunningServer, tmp_path: Path, ns: str) -> None:
    env = environment(server.url, tmp_path, FENCEPOST_NAMESPACE=ns)
    words, file = _sleeper(tmp_path)
    wrapper = start("run", "k", "--ttl", "3", "--", *words, env=env)
    pids = _pids(file)
    first = _guardian(wrapper.pid)
    os.kill(first, signal.SIGKILL)
    until(lambda: _guardian(wrapper.pid) not in (0, first))
    wrapper.kill()
    wrapper.wait()
    until(lambda: not any(map(is_running, pids)))


def _guardian(wrapper: int) -> int:
    for task in Path(f"/proc/{wrapper}/task").iterdir():
        for pid in (task / "children").read_text(encoding="ascii").split():
            if is_running(int(pid)) and b"guardian.py" in Path(f"/proc/{pid}/cmdline").read_bytes():
                return int(pid)
    return 0


@pytest.mark.parametrize("name", ["TERM", "INT", "HUP", "USR1"])
def test_signals_are_passed_on_and_the_lease_is_released_after_the_work_has_stopped(
    start: Start, env: dict[str, str], tmp_path: Path, name: str, url: str, ns: str
) -> None:
    """L-C12, L-C13."""
    act = f"trap 'sleep 0.3; echo stopped >{tmp_path}/log; exit 9' {name}"
    script = f"{act}; touch {tmp_path}/up; while :; do sleep 0.1; done"
    wrapper = start("run", "k", "--", "sh", "-c", script, env=env)
    until((tmp_path / "up").exists)
    wrapper.send_signal(getattr(signal, f"SIG{name}"))
    with fencepost.Client(url) as rival:
        assert isinstance(rival.leases.acquire("k", namespace=ns, wait=20), Granted)
    assert (tmp_path / "log").exists()
    assert wrapper.wait(20) == 9


def test_what_the_command_left_behind_is_ended_before_the_release(env: dict[str, str], tmp_path: Path) -> None:
    done = command("run", "k", "--", "sh", "-c", f"sleep 999 & echo $! >{tmp_path}/pid", env=env)
    assert done.returncode == 0
    assert not is_running(int((tmp_path / "pid").read_text(encoding="ascii")))
