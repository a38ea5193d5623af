"""The command's other nouns: exit codes to branch on, JSON for programs, secrets only where they were asked for."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from client.tests.commands import WORDS, environment
from client.tests.commands import fencepost as command

import fencepost
from fencepost import keys


@pytest.fixture
def env(url: str, tmp_path: Path, ns: str) -> dict[str, str]:
    """An environment with a namespace and a once secret."""
    return environment(url, tmp_path, FENCEPOST_NAMESPACE=ns, FENCEPOST_ONCE_SECRET="s" * 20)


def test_a_lease_from_acquire_to_completion(env: dict[str, str], tmp_path: Path) -> None:
    token = str(tmp_path / "token")
    first = command("lease", "acquire", "k", "--token-file", token, "--holder", "ada", "--json", env=env)
    assert first.returncode == 0
    fence = json.loads(first.stdout)["fencing_token"]
    assert stat.S_IMODE(os.stat(token).st_mode) == 0o600
    assert "own_" not in first.stdout + first.stderr
    assert command("lease", "acquire", "k", "--token-file", token, "--json", env=env).returncode == 0
    held = command("lease", "acquire", "k", "--show-token", "--json", env=env)
    assert held.returncode == 75
    assert json.loads(held.stdout)["holder"] == "ada"
    assert json.loads(command("lease", "status", "k", "--json", env=env).stdout)["status"] == "held"
    assert command("lease", "verify", "k", str(fence), env=env).returncode == 0
    assert command("lease", "verify", "k", env={**env, "FENCEPOST_FENCE": str(fence)}).returncode == 0
    assert command("lease", "renew", "k", "--token-file", token, "--ttl", "9", env=env).returncode == 0
    done = command("lease", "complete", "k", "--token-file", token, env=env, stdin='{"n": 1.50}')
    assert done.returncode == 0
    later = command("lease", "acquire", "k", "--show-token", "--json", env=env)
    assert later.returncode == 3
    assert json.loads(later.stdout)["result"] == {"n": 1.5}
    assert command("lease", "release", "k", "--token-file", token, env=env).returncode == 76
    assert command("lease", "verify", "k", str(fence), env=env).returncode == 1


def test_a_token_is_brought_by_the_environment_or_standard_input(env: dict[str, str]) -> None:
    token = keys.mint_owner_token()
    with_token = {**env, "FENCEPOST_OWNER_TOKEN": token}
    taken = command("lease", "acquire", "k", env=with_token)
    assert taken.returncode == 0
    assert token not in taken.stdout
    assert command("lease", "release", "k", "--token-file", "-", env=env, stdin=f"{token}\n").returncode == 0
    shown = command("lease", "acquire", "k", "--show-token", "--json", env=env)
    assert json.loads(shown.stdout)["owner_token"].startswith("own_")


def test_a_token_file_that_others_can_read_is_not_written(env: dict[str, str], tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.touch(mode=0o644)
    refused = command("lease", "acquire", "k", "--token-file", str(token), env=env)
    assert refused.returncode == 2
    assert "read by others" in refused.stderr


def test_without_a_namespace_a_key_in_the_arguments_is_refused(url: str, tmp_path: Path) -> None:
    env = environment(url, tmp_path)
    refused = command("lease", "status", "k", env=env)
    assert refused.returncode == 2
    assert "namespace new" in refused.stderr
    secret = {**env, "FENCEPOST_KEY": keys.mint_namespace()}
    assert command("lease", "status", "-", env=secret).returncode == 0


def test_a_namespace_is_printed_when_asked_or_kept(url: str, tmp_path: Path) -> None:
    env = environment(url, tmp_path)
    assert command("namespace", "new", env=env).stdout.startswith("ns_")
    saved = command("namespace", "new", "--save", env=env)
    kept = tmp_path / ".config" / "fencepost" / "namespace"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert "ns_" not in saved.stdout
    assert command("namespace", "new", "--save", env=env).returncode == 2
    assert command("lease", "status", "k", env=env).returncode == 0


def test_once_from_claim_to_completion(env: dict[str, str], tmp_path: Path) -> None:
    app, file = f"app-{keys.mint_nonce()}", str(tmp_path / "claim")
    claimed = command("once", "claim", app, "k", "--claim-file", file, "--json", env=env)
    assert (claimed.returncode, json.loads(claimed.stdout)["status"]) == (0, "claimed")
    assert "clm_" not in claimed.stdout
    assert command("once", "claim", app, "k", "--show-token", env=env).returncode == 75
    assert command("once", "complete", app, "k", "--claim-file", file, env=env, stdin='"done"').returncode == 0
    again = command("once", "claim", app, "k", "--show-token", "--json", env=env)
    assert (again.returncode, json.loads(again.stdout)["result"]) == (3, "done")
    command("once", "claim", app, "other", "--claim-file", str(tmp_path / "b"), env=env)
    assert command("once", "release", app, "other", "--claim-file", str(tmp_path / "b"), env=env).returncode == 0
    stranger = {**env, "FENCEPOST_ONCE_SECRET": "t" * 20}
    assert command("once", "claim", app, "k", "--show-token", env=stranger).returncode == 1


def test_a_command_runs_once(env: dict[str, str], tmp_path: Path) -> None:
    app = f"app-{keys.mint_nonce()}"
    words = ["--", "sh", "-c", f"echo ran >>{tmp_path}/log; echo out --json"]
    failed = command("once", "run", app, "k", "--", "sh", "-c", "exit 5", env=env)
    assert failed.returncode == 5
    for _ in range(3):
        done = command("once", "run", app, "k", *words, env=env)
        assert (done.returncode, done.stdout) == (0, "out --json\n")
    assert (tmp_path / "log").read_text(encoding="ascii") == "ran\n"
    leased = command("once", "run", app, "l", "--lease-ttl", "2", "--", "sh", "-c", "sleep 3; echo x", env=env)
    assert (leased.returncode, leased.stdout) == (0, "x\n")


def _create(env: dict[str, str], tmp_path: Path) -> tuple[str, str, str]:
    owner, receiver = str(tmp_path / "owner"), str(tmp_path / "receiver")
    words = ["--states", "open,done,dropped", "--final", "done,dropped", "--note", "look\x1b[2J", "--json"]
    words += ["--token-file", owner, "--receiver-file", receiver]
    made = command("handoff", "create", *words, env=env, stdin='{"draft": 1.50}')
    assert made.returncode == 0, made.stderr
    assert "howner_" not in made.stdout
    return json.loads(made.stdout)["handoff_id"], owner, receiver


def test_a_handoff_from_creation_to_its_end(env: dict[str, str], tmp_path: Path) -> None:
    handoff_id, owner, receiver = _create(env, tmp_path)
    shown = command("handoff", "show", handoff_id, "--token-file", receiver, env=env)
    assert "receiver" in shown.stdout
    assert "\x1b" not in shown.stdout
    waiting = subprocess.Popen(
        [*WORDS, "handoff", "wait", handoff_id, "done", "--token-file", owner, "--json"],
        env=env,
        stdout=subprocess.PIPE,
    )
    assert (
        command("handoff", "wait", handoff_id, "done", "--timeout", "0.2", "--token-file", owner, env=env).returncode
        == 75
    )
    moved = command("handoff", "move", handoff_id, "done", "--note", "ok", "--token-file", receiver, env=env)
    assert moved.returncode == 0
    out, _ = waiting.communicate(timeout=60)
    assert json.loads(out) == {"state": "done", "reached": True}
    watched = command("handoff", "watch", handoff_id, "--token-file", owner, "--json", env=env)
    assert [json.loads(line)["state"] for line in watched.stdout.splitlines()] == ["open", "done"]
    late = command("handoff", "move", handoff_id, "dropped", "--from", "open", "--token-file", owner, env=env)
    assert late.returncode == 1
    assert "state_mismatch" in late.stderr or "transition" in late.stderr


def test_a_review_is_decided_and_its_link_does_not_stay_in_the_arguments(
    env: dict[str, str], tmp_path: Path, url: str
) -> None:
    with fencepost.Client(url) as fp:
        made = fp.handoffs.create({"a": 1}, states=["open", "done"], audience="person")
        looked = command("review", made.review_url, env=env)
        assert looked.returncode == 0, looked.stderr
        assert "open" in looked.stdout
        waiting = subprocess.Popen(
            [*WORDS, "review", made.review_url, "--link-file", "-", "--decide", "done"], env=env, stdin=subprocess.PIPE
        )
        assert waiting.stdin is not None
        while made.receiver_token.encode() in Path(f"/proc/{waiting.pid}/cmdline").read_bytes():
            assert waiting.poll() is None
        waiting.communicate(made.review_url.encode() + b"\n", timeout=60)
        assert waiting.returncode == 0
        assert made.wait_until("done", timeout=10).state == "done"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_every_word(env: dict[str, str], shell: str, tmp_path: Path) -> None:
    script = command("completion", shell, env=env).stdout
    for word in ("run", "acquire", "claim", "watch", "review", "namespace"):
        assert word in script
    if shell == "bash":
        file = tmp_path / "completion"
        file.write_text(script, encoding="utf-8")
        ask = "COMP_WORDS=(fencepost lease re); COMP_CWORD=2; _fencepost; echo ${COMPREPLY[@]}"
        done = subprocess.run(
            ["bash", "-c", f". {file}; {ask}"], capture_output=True, text=True, check=True, env=dict(env)
        )
        assert set(done.stdout.split()) == {"renew", "release"}


def test_an_unreachable_server_has_its_own_code(env: dict[str, str]) -> None:
    program = (
        "import sys, fencepost; from fencepost.command.main import main; "
        "given = fencepost.Client.__init__; "
        "fencepost.Client.__init__ = lambda self, url=None: given(self, url, retry_seconds=1); "
        "sys.exit(main(['lease', 'status', 'k']))"
    )
    gone = {**env, "FENCEPOST_URL": "http://127.0.0.1:1"}
    done = subprocess.run([sys.executable, "-c", program], env=gone, capture_output=True, text=True, check=False)
    assert done.returncode == 69, done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("words", [["lease", "status", "k"], ["lease", "status", "k", "--json"], ["namespace", "new"]])
def test_an_output_that_takes_nothing_has_its_own_code(env: dict[str, str], words: list[str]) -> None:
    """A full disk, and an output that was closed before we began."""
    for shell in ('"$@" >/dev/full', '"$@" >&-', '"$@" >&- <&-'):
        done = subprocess.run(
            ["sh", "-c", shell, "sh", *WORDS, *words], env=env, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 74, done
        assert done.stderr.startswith("fencepost: the output cannot be written"), done.stderr
        assert done.stderr.count("\n") == 1
    mute = subprocess.run(["sh", "-c", '"$@" >/dev/full 2>&1', "sh", *WORDS, *words], env=env, timeout=60, check=False)
    assert mute.returncode == 74


def test_a_closed_input_is_told(env: dict[str, str]) -> None:
    words = ["lease", "complete", "k", "--token-file", "-"]
    done = subprocess.run(
        ["sh", "-c", '"$@" <&-', "sh", *WORDS, *words], env=env, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "cannot be read" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_output_that_lacks_a_letter_shows_it_escaped(env: dict[str, str], url: str) -> None:
    with fencepost.Client(url) as fp, fp.lease("k", namespace=env["FENCEPOST_NAMESPACE"], holder="zo\u00eb"):
        done = command("lease", "status", "k", env={**env, "PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0
    assert "zo\\xeb" in done.stdout


@pytest.mark.parametrize("wrong", ["http://", "http://[::1", "http://ada:s3cret@host", "http://host:99999", "nonsense"])
def test_a_wrong_address_is_one_sentence(env: dict[str, str], wrong: str) -> None:
    for words in (["lease", "status", "k"], ["run", "k", "--", "true"]):
        done = command(*words, env={**env, "FENCEPOST_URL": wrong})
        assert done.returncode == 1
        assert done.stderr.startswith("fencepost: the server's URL")
        assert "s3cret" not in done.stderr
