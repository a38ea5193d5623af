"""A command in a process group of its own: attended while it runs, ended as a whole when it must end.

The terminal is the command's while it runs; signals that we get are passed on to all of its group. A guardian process
knows until when the group may run: it ends it when this process is killed, stopped, or too late. On Linux the command
also gets SIGTERM by the kernel when this process dies.
"""

import ctypes
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from fencepost._clock import steady
from fencepost.command import guardian, show

_PASSED_ON = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGWINCH")
_LOOK_SECONDS = 0.2
_LARGEST_OUTPUT = 64 * 1024
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class Ending:
    """How a command ended: its exit code (128 + n for signal n), whether it was ended because its time was up."""

    code: int
    was_ended: bool = False
    output: bytes = field(default=b"", repr=False)
    is_output_whole: bool = True
    is_output_passed_on: bool = True


class Attended:
    """One command. `seconds_certain` says how long it may go on (None: for ever), `is_lost` that it must end now."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        *,
        grace_seconds: float,
        seconds_certain: Callable[[], float] | None = None,
        is_lost: Callable[[], bool] = lambda: False,
        captures: bool = False,
    ) -> None:
        self._command = command
        self._environment = dict(environment)
        self._grace = grace_seconds
        self._seconds_certain = seconds_certain
        self._is_lost = is_lost
        self._captures = captures
        self._terminal = _foreground_terminal()

    def run(self) -> Ending:
        """Start it, attend to it, and see that all of its group is gone. Raises OSError when it cannot be started."""
        guard = _Guardian(self._grace)
        child: subprocess.Popen[bytes] | None = None
        try:
            with _Signals() as signals:
                self._tell_time(guard)
                child = self._start(guard.ear)
                guard.group = child.pid
                signals.go_to(child.pid)
                tee = _Tee(child) if self._captures else None
                code = self._attend(child, guard, signals.woken)
        finally:
            if child is not None:
                self._end_what_is_left(child)
            self._take_terminal_back()
            was_ended = guard.quit()
        if tee is None:
            return Ending(code, was_ended)
        output, is_whole = tee.result()
        return Ending(code, was_ended, output, is_whole, tee.is_passing_on)

    def _start(self, ear: int) -> "subprocess.Popen[bytes]":
        """Start the command. It makes itself known to the guardian before it is what it will be: no moment between."""
        libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
        parent, terminal = os.getpid(), self._terminal

        def in_the_child() -> None:
            os.setpgid(0, 0)
            os.write(ear, b"group %d\n" % os.getpid())
            if terminal is not None:
                signal.signal(signal.SIGTTOU, signal.SIG_IGN)
                os.tcsetpgrp(terminal, os.getpgrp())
                signal.signal(signal.SIGTTOU, signal.SIG_DFL)
            if libc is not None:
                libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
                if os.getppid() != parent:
                    os._exit(1)

        return subprocess.Popen(
            list(self._command),
            env=self._environment,
            stdout=subprocess.PIPE if self._captures else None,
            preexec_fn=in_the_child,
        )

    def _attend(self, child: "subprocess.Popen[bytes]", guard: "_Guardian", woken: int) -> int:
        while True:
            pid, status = os.waitpid(child.pid, os.WNOHANG | os.WUNTRACED)
            if pid and os.WIFSTOPPED(status):
                self._stop_with(child.pid)
            elif pid:
                code = os.waitstatus_to_exitcode(status)
                child.returncode = code
                return code if code >= 0 else 128 - code
            self._tell_time(guard)
            if self._is_lost():
                guard.say("lost")
            readable, _, _ = select.select([woken], [], [], _LOOK_SECONDS)
            if readable:
                os.read(woken, 1024)

    def _tell_time(self, guard: "_Guardian") -> None:
        if self._seconds_certain is not None:
            guard.say(f"until {steady() + self._seconds_certain():.3f}")

    def _stop_with(self, group: int) -> None:
        """The command was stopped, as by Ctrl-Z: stop too, so that the shell has the terminal, and go on together."""
        if self._terminal is None:
            return
        self._take_terminal_back()
        os.kill(os.getpid(), signal.SIGSTOP)
        if not self._is_lost():
            with suppress(OSError):
                os.tcsetpgrp(self._terminal, group)
            guardian.send(group, signal.SIGCONT)

    def _end_what_is_left(self, child: "subprocess.Popen[bytes]") -> None:
        """What the command left running in its group is guarded work too: end it before the lease is given up."""
        for number in (signal.SIGTERM, signal.SIGCONT):
            guardian.send(child.pid, number)
        kill_at = steady() + self._grace
        while guardian.is_alive(child.pid) and steady() < kill_at:
            child.poll()  # a zombie of ours would count as alive
            time.sleep(0.02)
        guardian.send(child.pid, signal.SIGKILL)
        child.wait()

    def _take_terminal_back(self) -> None:
        if self._terminal is not None:
            before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
            with suppress(OSError):
                os.tcsetpgrp(self._terminal, os.getpgrp())
            signal.signal(signal.SIGTTOU, before)


class _Guardian:
    """The guardian process; a new one is started should it be killed."""

    def __init__(self, grace_seconds: float) -> None:
        self._grace = grace_seconds
        self._said: dict[str, str] = {}
        self.group: int | None = None
        """What a successor would watch."""
        self._start()

    def _start(self) -> None:
        words = [str(Path(guardian.__file__)), f"{self._grace:.3f}", *([str(self.group)] if self.group else [])]
        self._it = subprocess.Popen(
            [sys.executable, "-I", "-S", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={},
            cwd="/",
            start_new_session=True,
        )

    @property
    def ear(self) -> int:
        """The file descriptor that it listens to."""
        assert self._it.stdin is not None
        return self._it.stdin.fileno()

    def say(self, line: str) -> None:
        """Tell it, and remember for a successor."""
        word = line.partition(" ")[0]
        if self._said.get(word) == line:
            return
        self._said[word] = line
        if not self._write(line) and self._it.poll() not in (None, 0):
            self._start()
            for known in self._said.values():
                self._write(known)

    def quit(self) -> bool:
        """It is not needed any more; whether it had to end the group."""
        self._write("quit")
        assert self._it.stdin is not None
        assert self._it.stdout is not None
        with suppress(OSError):
            self._it.stdin.close()
        told = self._it.stdout.read()
        self._it.stdout.close()
        self._it.wait()
        return b"ended" in told

    def _write(self, line: str) -> bool:
        assert self._it.stdin is not None
        try:
            self._it.stdin.write(f"{line}\n".encode("ascii"))
            self._it.stdin.flush()
        except OSError:
            return False
        return True


class _Tee:
    """Copies a command's output to ours and keeps the beginning of it.

    When ours takes no more (a closed pipe, a full disk), what can be a result is still read, and told nobody; then the
    command's pipe is closed, and the command ends as it would have ended at ours. It is never left to fill a pipe.
    """

    def __init__(self, child: "subprocess.Popen[bytes]") -> None:
        assert child.stdout is not None
        self._source = child.stdout
        self._kept = bytearray()
        self.is_passing_on = True
        self._thread = threading.Thread(target=self._copy, name="fencepost-output", daemon=True)
        self._thread.start()

    def _copy(self) -> None:
        while chunk := os.read(self._source.fileno(), 1 << 16):
            self._kept += chunk[: _LARGEST_OUTPUT - len(self._kept) + 1]
            if self.is_passing_on:
                try:
                    sys.stdout.buffer.write(chunk)
                    sys.stdout.buffer.flush()
                except OSError:
                    self.is_passing_on = False
                    show.write_no_more(sys.stdout)
            elif len(self._kept) > _LARGEST_OUTPUT:
                break
        self._source.close()

    def result(self) -> tuple[bytes, bool]:
        """What was kept, and whether that is all."""
        self._thread.join(5.0)
        return bytes(self._kept[:_LARGEST_OUTPUT]), len(self._kept) <= _LARGEST_OUTPUT


class _Signals:
    """While the block runs, signals go to the group; those that come before there is one are kept for it."""

    def __init__(self) -> None:
        self._group: int | None = None
        self._early: list[int] = []

    def __enter__(self) -> "_Signals":
        self.woken, self._writing = os.pipe()
        os.set_blocking(self._writing, False)
        self._wakeup_before = signal.set_wakeup_fd(self._writing, warn_on_full_buffer=False)
        numbers = [getattr(signal, name) for name in _PASSED_ON if hasattr(signal, name)]
        self._before = {number: signal.signal(number, self._pass_on) for number in numbers}
        self._before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda *_: None)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._wakeup_before)
        os.close(self.woken)
        os.close(self._writing)

    def go_to(self, group: int) -> None:
        """From now on, and all that came before."""
        self._group = group
        while self._early:
            guardian.send(group, self._early.pop(0))

    def _pass_on(self, number: int, _: FrameType | None) -> None:
        if self._group is None:
            self._early.append(number)
        else:
            guardian.send(self._group, number)


def _foreground_terminal() -> int | None:
    """The terminal on standard input, if we are in its foreground; a command in the background must not take it."""
    try:
        return 0 if os.isatty(0) and os.tcgetpgrp(0) == os.getpgrp() else None
    except OSError:
        return None
