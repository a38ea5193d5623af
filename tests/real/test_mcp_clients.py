"""The server as strangers see it: the official clients of three generations and two languages, and the official judges.

`scripts/mcp-clients` installs them, once; `make test` has done so before. Stories and suites run in processes of their
own, with the interpreter that they need.
"""

import fcntl
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.real.server import ROOT, RunningServer

MCP = ROOT / "tests/mcp"
NODE = MCP / "node"
PACKAGES = NODE / "node_modules/@modelcontextprotocol"
INSTALL_SECONDS = 600
STORY_SECONDS = 90
FIXTURE_APP = "tests.mcp.fixture_app:application"
JUDGED = ("2026-07-28", "2025-11-25")


@pytest.fixture(scope="module")
def node():
    """The Node that the packages brought, or the system's where they have none for it. Installs what is missing."""
    (ROOT / ".venvs").mkdir(exist_ok=True)
    with (ROOT / ".venvs/.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        subprocess.run([ROOT / "scripts/mcp-clients"], check=True, timeout=INSTALL_SECONDS, stdin=subprocess.DEVNULL)
    brought = list(NODE.glob("node_modules/node-linux-*/bin/node"))
    return str(brought[0]) if brought else "node"


@pytest.fixture(scope="module")
def server():
    with RunningServer(environment={"FENCEPOST_LIMITS": "off"}) as running:
        yield running


@pytest.fixture(scope="module")
def fixture_server():
    with RunningServer(application=FIXTURE_APP) as running:
        yield running


def run(*command: object, cwd: Path = ROOT, home: Path | None = None) -> subprocess.CompletedProcess[str]:
    """In a folder, with nothing to read and a home of its own."""
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(home or cwd), "NO_COLOR": "1"}
    return subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=STORY_SECONDS,
        check=False,
    )


def told(done: subprocess.CompletedProcess[str]) -> str:
    """The last line of a story that came to its end."""
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip().splitlines()[-1]


@pytest.mark.timeout(INSTALL_SECONDS)
@pytest.mark.parametrize(
    ("interpreter", "mode", "ending"),
    [
        (sys.executable, "auto", "told by 2.3.0 in 2026-07-28"),
        (sys.executable, "legacy", "told by 2.3.0 in 2025-11-25"),
        (ROOT / ".venvs/mcp-1.26/bin/python", "-", "told by 1.26.0 in 2025-11-25"),
        (ROOT / ".venvs/mcp-1.8/bin/python", "-", "told by 1.8.1 in 2024-11-05"),
    ],
    ids=["2.3 new era", "2.3 old era", "1.26", "1.8"],
)
def test_the_python_clients_of_three_generations_tell_the_story(node, server, interpreter, mode, ending) -> None:
    assert told(run(interpreter, MCP / "story_client.py", f"{server.url}/mcp", mode)) == ending


@pytest.mark.timeout(INSTALL_SECONDS)
@pytest.mark.parametrize(
    ("story", "mode", "ending"),
    [
        ("story-sdk.mjs", "-", "told by sdk in 2025-11-25"),
        ("story-client.mjs", "auto", "told by client in 2026-07-28"),
        ("story-client.mjs", "default", "told by client in 2025-11-25"),
    ],
)
def test_the_typescript_clients_tell_the_story(node, server, story, mode, ending) -> None:
    assert told(run(node, NODE / story, f"{server.url}/mcp", mode)) == ending


def conformance(node: str, server: RunningServer, revision: str, folder: Path, *more: str):
    """One run of the suite: its exit code and what it printed."""
    failures = MCP / f"expected-failures-{revision}.yml"
    suite = PACKAGES / "conformance/dist/index.js"
    return run(node, suite, "server", "--url", f"{server.url}/mcp", "--requirements", revision,
               "--expected-failures", failures, "-o", folder, *more, cwd=folder)  # fmt: skip


@pytest.mark.timeout(INSTALL_SECONDS)
@pytest.mark.parametrize("revision", JUDGED)
def test_the_conformance_suite_finds_only_what_is_not_offered(node, fixture_server, tmp_path, revision) -> None:
    done = conformance(node, fixture_server, revision, tmp_path)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    assert "Stale" not in done.stdout
    assert "Traceback" not in fixture_server.stderr


@pytest.mark.timeout(INSTALL_SECONDS)
@pytest.mark.parametrize("revision", JUDGED)
def test_the_conformance_suite_goes_red_when_a_tool_is_broken(node, tmp_path, revision) -> None:
    broken = {"MCP_BROKEN_TOOL": "test_simple_text"}
    with RunningServer(application=FIXTURE_APP, environment=broken) as server:
        done = conformance(node, server, revision, tmp_path)
    assert done.returncode == 1
    assert "tools-call-simple-text" in done.stdout.split("Unexpected failures")[1]


def test_what_may_fail_is_only_what_a_server_of_tools_does_not_offer() -> None:
    not_offered = ("completion", "progress", "resources", "resource-not-found", "prompts", "sampling", "elicitation",
                   "logging", "input-required", "tasks", "custom-header", "sse-multiple-streams")  # fmt: skip
    for revision in JUDGED:
        lines = (MCP / f"expected-failures-{revision}.yml").read_text(encoding="utf-8").splitlines()
        entries = [line.strip("- ").split("#")[0].strip() for line in lines if line.startswith("  - ")]
        assert entries
        assert [entry for entry in entries if not any(word in entry for word in not_offered)] == []


def inspector(node: str, server: RunningServer, home: Path, era: str, *more: str) -> subprocess.CompletedProcess[str]:
    """The inspector's command line."""
    launcher = PACKAGES / "inspector/clients/launcher/build/index.js"
    return run(
        node, launcher, "--cli", f"{server.url}/mcp", "--transport", "http", "--protocol-era", era, *more, home=home
    )


@pytest.mark.timeout(INSTALL_SECONDS)
@pytest.mark.parametrize("era", ["modern", "legacy"])
def test_the_inspector_finds_no_fault_in_our_schemas(node, server, tmp_path, era) -> None:
    done = inspector(node, server, tmp_path, era, "--method", "tools/list", "--strict")
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["tools"]) == 13
    assert "warning" not in done.stderr.lower(), done.stderr


@pytest.mark.timeout(INSTALL_SECONDS)
def test_the_inspector_calls_a_tool_and_tells_an_error_by_its_exit_code(node, server, tmp_path) -> None:
    call = ["--method", "tools/call", "--tool-name"]
    done = inspector(node, server, tmp_path, "modern", *call, "create_lease_namespace")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["structuredContent"]["ok"] is True
    done = inspector(node, server, tmp_path, "modern", *call, "acquire_lease", "--tool-args-json", '{"key":"short"}')
    assert done.returncode == 5, done.stderr
