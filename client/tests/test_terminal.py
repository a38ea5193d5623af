"""The terminal belongs to the command while it runs: it reads from it, Ctrl-C reaches it, Ctrl-Z stops both."""

import os
import pty
import select
import signal
import subprocess
import time
from pathlib import Path
from typing import Self

import pytest
from client.tests.commands import WORDS, environment
from client.tests.waiting import until


class Terminal:
    """The command in the foreground of a terminal of its own, with a shell around it as people have."""

    def __init__(self, words: list[str], env: dict[str, str]) -> None:
        self._ours, theirs = pty.openpty()
        self.shown = b""
        login = "import fcntl, os, sys, termios; os.setsid(); fcntl.ioctl(0, termios.TIOCSCTTY, 0)"
        login += "; os.execvp(sys.argv[1], sys.argv[1:])"
        words = [WORDS[0], "-c", login, *words]
        self.process = subprocess.Popen(words, env=env, stdin=theirs, stdout=theirs, stderr=theirs)
        os.close(theirs)

    def type(self, text: str) -> None:
        """Keys."""
        os.write(self._ours, text.encode())

    def shows(self, text: str) -> bool:
        """Whether this has been written to it."""
        while select.select([self._ours], [], [], 0)[0]:
            try:
                self.shown += os.read(self._ours, 4096)
            except OSError:  # its last process has gone
                break
        return text.encode() in self.shown

    def close(self) -> int:
        """Wait for the end; the exit code."""
        return self.process.wait(30)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *fault: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._ours)


@pytest.fixture
def env(url: str, tmp_path: Path, ns: str) -> dict[str, str]:
    """An environment with a namespace."""
    return environment(url, tmp_path, FENCEPOST_NAMESPACE=ns)


def test_the_command_reads_from_the_terminal(env: dict[str, str]) -> None:
    script = "test -t 0 && test -t 1 && echo ready; read line; echo got $line"
    with Terminal([*WORDS, "run", "k", "--", "sh", "-c", script], env) as terminal:
        until(lambda: terminal.shows("ready"))
        terminal.type("hello\n")
        until(lambda: terminal.shows("got hello"))
        assert terminal.close() == 0


def test_ctrl_c_reaches_the_command(env: dict[str, str]) -> None:
    script = "trap 'echo caught; exit 4' INT; echo ready; read x"
    with Terminal([*WORDS, "run", "k", "--", "sh", "-c", script], env) as terminal:
        until(lambda: terminal.shows("ready"))
        terminal.type("\x03")
        until(lambda: terminal.shows("caught"))
        assert terminal.close() == 4


def test_ctrl_z_stops_both_and_fg_goes_on(env: dict[str, str]) -> None:
    words = " ".join([*WORDS, "run", "k", "--ttl", "30"])
    shell = f"set -m; {words} -- sh -c 'echo ready; read x; echo got $x'; echo stopped; fg; echo end"
    with Terminal(["bash", "--norc", "-c", shell], env) as terminal:
        until(lambda: terminal.shows("ready"))
        time.sleep(0.3)
        terminal.type("\x1a")
        until(lambda: terminal.shows("stopped"))
        terminal.type("more\n")
        until(lambda: terminal.shows("got more"))
        until(lambda: terminal.shows("end"))
        assert terminal.close() == 0


def test_in_the_background_it_leaves_the_terminal_alone(env: dict[str, str]) -> None:
    shell = "set -m; " + " ".join(WORDS) + " run k -- sleep 1 & read line; echo mine $line; wait"
    with Terminal(["bash", "--norc", "-c", shell], env) as terminal:
        terminal.type("hello\n")
        until(lambda: terminal.shows("mine hello"))
        assert terminal.close() == 0
        assert terminal.process.returncode != -signal.SIGTTOU
