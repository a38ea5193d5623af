"""Knowing that it is lost: with the network gone, the process paused, the loop blocked, the process forked."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from client.tests.commands import environment
from client.tests.proxy import FaultyProxy, Relay
from client.tests.waiting import until
from client.tests.worlds import World
from tests.real.server import RunningServer

import fencepost
from fencepost import Granted, LeaseLost
from fencepost._certainty import Certainty
from fencepost._clock import steady

SLACK = 2.0
"""For a busy machine: a thread that is due may run late, but never early."""


def test_in_a_black_hole_the_loss_is_told_by_the_last_good_renewal_plus_the_ttl(
    server: RunningServer, world: World, ns: str
) -> None:
    with Relay(server.port) as relay:
        fp = world.client(relay.url, retry_seconds=1)
        with pytest.raises(LeaseLost) as told:
            _fall_silent(fp, relay, ns)
        assert told.value.reason == "expired"
        with fencepost.Client(server.url) as rival:
            assert isinstance(rival.leases.acquire("k", namespace=ns, wait=20), Granted)


def _fall_silent(fp: Any, relay: Relay, ns: str) -> None:
    with fp.lease("k", namespace=ns, ttl=4) as lease:
        time.sleep(2)
        lease.check()
        relay.is_silent.set()
        silent_at = steady()
        certain_until = silent_at + lease.seconds_certain
        assert certain_until <= silent_at + 4
        assert lease.lost.wait(10)
        assert steady() <= certain_until + SLACK
        with pytest.raises(LeaseLost):
            lease.check()


def test_three_busy_answers_do_not_lose_a_lease_and_neither_does_a_bad_network(
    server: RunningServer, world: World, ns: str
) -> None:
    """L-R6, L-C1."""
    with FaultyProxy(server.port, 7, rate=0.0, faults=("busy", "drop", "reset")) as proxy:
        fp = world.client(proxy.url, retry_seconds=60)
        with fp.lease("k", namespace=ns, ttl=6) as lease:
            proxy.rate = 0.6
            until(lambda: lease.failed_renewals >= 3 or lease.lost.is_set(), 60)
            lease.check()


def test_a_fault_in_a_renewal_does_not_end_the_thread(url: str, ns: str, caplog: pytest.LogCaptureFixture) -> None:
    with fencepost.Client(url) as fp, fp.lease("k", namespace=ns, ttl=2) as lease:
        transport = fp._renewals._transport
        assert transport is not None
        good, faults = transport.attempt, [RuntimeError("odd"), ConnectionError("odd"), KeyError("odd")]

        def attempt(*arguments: Any) -> Any:
            if faults:
                raise faults.pop()
            return good(*arguments)

        transport.attempt = attempt  # type: ignore[method-assign,assignment]
        time.sleep(3)
        lease.check()
        assert not faults
        assert lease.failed_renewals >= 3
    assert "will be tried again" in caplog.text


def test_a_blocked_loop_keeps_its_lease(url: str, ns: str) -> None:
    """L-C3."""

    async def main() -> None:
        async with fencepost.AsyncClient(url) as fp, fp.lease("k", namespace=ns, ttl=2) as lease:
            time.sleep(5)
            lease.check()

    asyncio.run(main())


def test_an_async_block_is_cancelled_at_its_loss_and_says_why(url: str, ns: str) -> None:
    """L-C4."""

    async def main() -> str:
        async with fencepost.AsyncClient(url) as fp:
            try:
                async with fp.lease("k", namespace=ns, ttl=3) as lease:
                    await fp.leases.release("k", lease._owner_token, namespace=ns)
                    await asyncio.sleep(60)
            except LeaseLost as lost:
                await asyncio.sleep(0)  # the task goes on, and is cancelled no more
                return lost.reason
        return "not told"

    assert asyncio.run(main()) == "lost"


def test_a_cancellation_from_outside_stays_one(url: str, ns: str) -> None:
    async def main() -> None:
        async with fencepost.AsyncClient(url) as fp:

            async def hold() -> None:
                async with fp.lease("k", namespace=ns):
                    await asyncio.sleep(60)

            task = asyncio.create_task(hold())
            while (await fp.leases.status("k", namespace=ns))["status"] != "held":
                await asyncio.sleep(0.05)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert isinstance(await fp.leases.acquire("k", namespace=ns), Granted)

    asyncio.run(main())


def test_whoever_was_paused_past_the_ttl_learns_it_at_the_next_step(
    server: RunningServer, ns: str, tmp_path: Path
) -> None:
    program = (
        "import sys, fencepost\n"
        "with fencepost.Client() as fp, fp.lease('k', namespace=sys.argv[1], ttl=2) as lease:\n"
        "    print('held', flush=True)\n"
        "    sys.stdin.readline()\n"
        "    try:\n"
        "        lease.check()\n"
        "    except fencepost.LeaseLost as lost:\n"
        "        print(lost.reason, flush=True)\n"
        "    raise SystemExit(0)\n"
    )
    paused = subprocess.Popen(
        [sys.executable, "-c", program, ns],
        env=environment(server.url, tmp_path),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert paused.stdin is not None
    assert paused.stdout is not None
    assert paused.stdout.readline() == "held\n"
    paused.send_signal(signal.SIGSTOP)
    with fencepost.Client(server.url) as rival:
        outcome = rival.leases.acquire("k", namespace=ns, wait=20, ttl=60)
        assert isinstance(outcome, Granted)
        paused.send_signal(signal.SIGCONT)
        out, _ = paused.communicate("go\n", timeout=30)
        assert out in {"expired\n", "lost\n"}
        assert rival.leases.verify("k", outcome.fencing_token, namespace=ns)


def test_a_grant_that_came_too_late_is_not_handed_out(server: RunningServer, world: World, ns: str) -> None:
    """L-C9: the answer is held back for longer than the TTL."""
    with SlowAnswers(server.port, 2.5) as slow:
        fp = world.client(slow.url)
        with pytest.raises((LeaseLost, fencepost.NotGranted)), fp.lease("k", namespace=ns, ttl=2):
            raise AssertionError("the block must not run")
    with fencepost.Client(server.url) as rival:
        assert isinstance(rival.leases.acquire("k", namespace=ns, wait=10), Granted)


class SlowAnswers(FaultyProxy):
    """Lets each request through at once and holds its answer back."""

    def __init__(self, port: int, seconds: float) -> None:
        super().__init__(port, 0, rate=0.0)
        self._seconds = seconds

    def _treat(self, caller: Any, server: Any, request: Any) -> bool:
        class Late:
            """The caller's connection, written to later."""

            @staticmethod
            def sendall(content: bytes) -> None:
                time.sleep(self._seconds)
                caller.sendall(content)

        return super()._treat(Late, server, request)  # type: ignore[arg-type]


def test_a_child_of_a_fork_neither_renews_nor_releases(server: RunningServer, ns: str, tmp_path: Path) -> None:
    """L-C13."""
    program = (
        "import os, sys, threading, fencepost\n"
        "fp = fencepost.Client()\n"
        "with fp.lease('k', namespace=sys.argv[1], ttl=60) as lease:\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        names = sorted(thread.name for thread in threading.enumerate())\n"
        "        try:\n"
        "            lease.check()\n"
        "        except fencepost.LeaseLost as lost:\n"
        "            print(lost.reason, names, flush=True)\n"
        "    else:\n"
        "        os.waitpid(child, 0)\n"
        "        lease.check()\n"
        "        print(fp.leases.status('k', namespace=sys.argv[1])['status'], flush=True)\n"
        "if child == 0:\n"
        "    print(fp.leases.status('k', namespace=sys.argv[1])['status'], flush=True)\n"
        "    os._exit(0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, ns],
        env=environment(server.url, tmp_path),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.splitlines() == ["forked ['MainThread']", "held", "held"]


@pytest.mark.parametrize("rounds", [40, pytest.param(10_000, marks=[pytest.mark.long, pytest.mark.timeout(3600)])])
def test_a_renewal_that_races_a_release_revives_nothing(url: str, ns: str, rounds: int) -> None:
    before = threading.active_count()
    with fencepost.Client(url) as fp:
        for turn in range(rounds):
            with fp.lease("k", namespace=ns, ttl=30, wait=30) as lease:
                racer = threading.Thread(target=lease._renewal._renew, args=(steady(),))
                racer.start()
            with pytest.raises(LeaseLost):
                lease.check()
            racer.join()
            with pytest.raises(LeaseLost):
                lease.check()
            assert not lease.lost.is_set()
            assert fp.leases.status("k", namespace=ns)["status"] == "free", turn
    until(lambda: threading.active_count() <= before + 1)


def test_no_renewer_is_left_behind(url: str, ns: str) -> None:
    with fencepost.Client(url) as fp:
        for turn in range(5):
            with fp.lease(f"k{turn}", namespace=ns):
                assert any(thread.name == "fencepost-renewal" for thread in threading.enumerate())
    until(lambda: not any(thread.name == "fencepost-renewal" for thread in threading.enumerate()))


def test_certainty_never_goes_beyond_the_end_of_what_it_is_part_of() -> None:
    now = steady()
    short, long = Certainty(now, 60, now + 20), Certainty(now, 10, now + 20)
    long.extend(now, 60)
    for certainty in (short, long):
        assert certainty.left() <= 20
    assert Certainty(now, 60, now).is_over


def test_certainty_ends_once_and_nothing_revives_it() -> None:
    told: list[int] = []
    certainty = Certainty(steady(), 0.2)
    certainty.watch(lambda: told.append(1))
    certainty.extend(steady(), 0.5)
    assert certainty.lost.wait(10)
    certainty.extend(steady(), 60)
    with pytest.raises(LeaseLost):
        certainty.check()
    certainty.watch(lambda: told.append(2))
    assert told == [1, 2]
    quiet = Certainty(steady(), 60)
    quiet.end("released")
    quiet.extend(steady(), 60)
    quiet.lose("lost")
    with pytest.raises(LeaseLost) as reason:
        quiet.check()
    assert reason.value.reason == "released"
    assert not quiet.lost.is_set()


def test_a_killed_holder_is_gone_by_its_ttl_and_an_interrupted_one_at_once(
    server: RunningServer, ns: str, tmp_path: Path
) -> None:
    """L-C13."""
    program = (
        "import sys, time, fencepost\n"
        "with fencepost.Client() as fp, fp.lease(sys.argv[2], namespace=sys.argv[1], ttl=3):\n"
        "    print('held', flush=True)\n"
        "    time.sleep(60)\n"
    )
    with fencepost.Client(server.url) as rival:
        for number, key in ((signal.SIGKILL, "killed"), (signal.SIGINT, "interrupted")):
            holder = subprocess.Popen(
                [sys.executable, "-c", program, ns, key],
                env=environment(server.url, tmp_path),
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"held\n"
            os.kill(holder.pid, number)
            holder.wait()
            holder.stdout.close()
            outcome = rival.leases.acquire(key, namespace=ns, wait=15 if number == signal.SIGKILL else 0)
            assert isinstance(outcome, Granted), outcome
