"""No secret in arguments, logs, reprs or tracebacks; and every Python that is to be had."""

import logging
import os
import shutil
import subprocess
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from client.tests.commands import SOURCE, WORDS, environment
from client.tests.waiting import until
from client.tests.worlds import World
from tests.real.server import RunningServer

import fencepost
from fencepost import Granted, keys

PREFIXES = ("ns_", "own_", "clm_", "nst_", "howner_", "hrecv_")
KEYLESS = "a-secret-key-without-a-namespace-0123456789"


def leaks(text: str, *more: str) -> list[str]:
    """The kinds of secrets that stand in a text."""
    return [mark for mark in (*PREFIXES, KEYLESS, *more) if mark in text]


@pytest.fixture
def everything_logged(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """All loggers at their most talkative, httpx and httpcore included."""
    with caplog.at_level(logging.DEBUG):
        yield caplog


def test_logs_reprs_and_tracebacks_hold_no_secret(
    server: RunningServer, world: World, ns: str, everything_logged: pytest.LogCaptureFixture
) -> None:
    seen: list[str] = []
    fp = world.client(server.url, once_secret="s" * 24)
    for fault in _faults(fp, ns):
        seen += [str(fault), repr(fault), "".join(traceback.format_exception(fault))]
    granted = fp.leases.acquire("shown", namespace=ns)
    handoff = fp.handoffs.create({"a": "payload-of-ours"})
    with fp.lease("block", namespace=ns) as lease:
        seen += [repr(lease), repr(fp), repr(granted), repr(handoff), repr(fp.onces.tokens)]
    fp.once(f"app-{keys.mint_nonce()}", "k", world.action(lambda: 1))
    list(handoff.changes(after=1)) if handoff.ended else handoff.move("done")
    assert isinstance(granted, Granted)
    seen += [repr(fp.onces.tokens), *(record.getMessage() for record in everything_logged.records)]
    assert leaks("\n".join(seen), "payload-of-ours", "s" * 24) == []


def _faults(fp: Any, ns: str) -> list[BaseException]:
    calls = [
        lambda: fp.leases.acquire(KEYLESS, ttl=0),
        lambda: fp.leases.acquire("not a key!", namespace=ns),
        lambda: fp.leases.complete(KEYLESS, keys.mint_owner_token(), 1),
        lambda: fp.handoffs.open("0" * 32, keys.mint_handoff_tokens()[0]).read(),
        lambda: list(fp.handoffs.open("0" * 32, keys.mint_handoff_tokens()[0]).changes()),
        lambda: fp.lease(KEYLESS, ttl=99_999_999).__enter__(),
        lambda: fp.onces.complete("nobody-s-namespace", "k", 1, claim_token=keys.mint_claim_token()),
    ]
    found: list[BaseException] = []
    for call in calls:
        with pytest.raises(Exception) as told:
            call()
        found.append(told.value)
    assert all(isinstance(fault, fencepost.FencepostError) for fault in found), found
    return found


def test_nothing_that_the_command_starts_shows_a_secret(server: RunningServer, tmp_path: Path, ns: str) -> None:
    env = environment(server.url, tmp_path, FENCEPOST_NAMESPACE=ns)
    log = tmp_path / "log"
    with log.open("wb") as out:
        wrapper = subprocess.Popen(
            [*WORDS, "run", "k", "--", "sh", "-c", f"touch {tmp_path}/up; sleep 999"], env=env, stdout=out, stderr=out
        )
    try:
        until((tmp_path / "up").exists)
        lines = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and str(tmp_path).encode() in _read(entry / "environ") + _read(entry / "cmdline"):
                lines.append(_read(entry / "cmdline").decode())
        assert len(lines) >= 2
        assert leaks("\n".join(lines), ns) == []
    finally:
        wrapper.terminate()
        wrapper.wait(30)
    assert leaks(log.read_text(encoding="utf-8")) == []


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""


def pythons() -> list[str]:
    """Each Python from 3.10 to 3.13 that is installed here, our own among them."""
    found = {f"{sys.version_info.major}.{sys.version_info.minor}": sys.executable}
    for version in ("3.10", "3.11", "3.12", "3.13"):
        places = [
            shutil.which(f"python{version}"),
            *map(str, (Path.home() / ".pyenv/versions").glob(f"{version}.*/bin/python")),
        ]
        for place in places:
            if place and _answers(place, version):
                found.setdefault(version, place)
    return list(found.values())


def _answers(place: str, version: str) -> bool:
    ask = "import sys; print('%d.%d' % sys.version_info[:2])"
    done = subprocess.run([place, "-c", ask], capture_output=True, text=True, check=False, env=dict(os.environ))
    return done.stdout.strip() == version


PROGRAM = """
import asyncio, sys, fencepost
from fencepost import command
ns = sys.argv[1]
with fencepost.Client(once_secret="s" * 20) as fp:
    with fp.lease("k" + sys.version.split()[0], namespace=ns, ttl=5) as lease:
        lease.complete({"n": 1})
    assert fp.once("app" + fencepost.keys.mint_nonce(), "k", lambda: 7) == 7
    made = fp.handoffs.create({"a": 1}, states=["a", "b"])
    made.move("b")
    assert [change.state for change in made.changes()] == ["a", "b"]

async def main():
    async with fencepost.AsyncClient() as fp:
        made = await fp.handoffs.create({"a": 1}, states=["a", "b"])
        await made.move("b")
        assert [change.state async for change in made.changes()] == ["a", "b"]
        try:
            async with fp.lease("a" + sys.version.split()[0], namespace=ns, ttl=2) as lease:
                await fp.leases.release(lease.key, lease._owner_token, namespace=ns)
                await asyncio.sleep(30)
        except fencepost.LeaseLost:
            print("well")

asyncio.run(main())
"""


@pytest.mark.parametrize("python", pythons())
def test_every_python_that_is_here(python: str, url: str, tmp_path: Path, ns: str) -> None:
    """httpx and what it needs are plain Python and come from our own environment."""
    env = environment(url, tmp_path)
    libraries = str(Path(pytest.__file__).parents[1])
    env["PYTHONPATH"] = f"{SOURCE}:{libraries}"
    done = subprocess.run([python, "-c", PROGRAM, ns], env=env, capture_output=True, text=True, timeout=90, check=False)
    assert done.stdout == "well\n", done.stderr
