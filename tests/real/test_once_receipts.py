"""Receipts of a real server: verified by a stranger, broken by one byte, valid after restart and rotation."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.real.api import Answer, Api
from tests.real.oncecalls import Once, stranger_verifies
from tests.real.server import ROOT, RunningServer

pytestmark = pytest.mark.real

KEYS = "/.well-known/fencepost-keys.json"
StartServer = Callable[..., RunningServer]


def one_of_each(once: Once) -> list[Answer]:
    """An answer of every kind that is 2xx."""
    made = [once.claim(lease_ttl=60), once.claim(), once.claim("held"), once.claim("held")]
    made.append(once.once("renew", claim_token=made[0]["claim_token"], lease_ttl=60))
    made += [once.complete_raw('{"n": 1e400, "s": "\\u0041é"}'), once.complete_raw("1"), once.claim()]
    made += [once.once("status"), once.once("status", "never"), once.once("release", "held")]
    made += [once.claim("bound", payload_sha256="a"), once.claim("bound", payload_sha256="b")]
    made += [once.claim('"result":1,"has_result":', namespace_token="wrong"), once.once("rotate-token")]
    once.token = made[-1]["namespace_token"]
    words = [answer["status"] for answer in made]
    assert words[:6] == ["claimed", "in_progress", "claimed", "held", "claimed", "completed"]
    assert words[6:9] == ["already_completed", "duplicate", "completed"]
    assert words[9:] == ["free", "released", "claimed", "conflict", "forbidden", "rotated"]
    return made


def all_verify(port: int, answers: list[Answer]) -> None:
    with Api(port) as api:
        jwks = api.get(KEYS).body
        for answer in answers:
            assert stranger_verifies(answer.raw, jwks), answer
            assert api.text("/receipts/verify", answer.raw.decode()).raw == b'{"valid":true}'


def test_a_stranger_verifies_every_kind_of_answer_with_public_libraries(server: RunningServer) -> None:
    with Once(server.port) as once:
        all_verify(server.port, one_of_each(once))


def test_one_changed_byte_fails(server: RunningServer) -> None:
    with Once(server.port) as once:
        once.claim(ttl=1_000)
        once.complete_raw("[1e2]")
        raw = once.claim().raw
        for prefix in ("", "/services/v1"):
            assert once.text(f"{prefix}/receipts/verify", raw.decode()).raw == b'{"valid":true}'
        for place in range(0, len(raw), 3):
            changed = raw[:place] + bytes([raw[place] ^ 1]) + raw[place + 1 :]
            verdict = once.text("/receipts/verify", changed.decode())
            assert verdict.status == 400 or verdict.raw == b'{"valid":false}', changed


def test_keys_are_a_jwk_set_of_public_ed25519_keys(server: RunningServer) -> None:
    with Api(server.port) as api:
        answer = api.get(KEYS)
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    (key,) = answer["keys"]
    assert (key["kty"], key["crv"], "d" in key) == ("OKP", "Ed25519", False)


def test_a_restart_keeps_receipts_valid(server: RunningServer) -> None:
    with Once(server.port) as once:
        made = one_of_each(once)
    server.kill9()
    server.start()
    all_verify(server.port, made)


def test_a_rotation_keeps_old_receipts_valid_and_signs_with_another_key(
    tmp_path: Path, start_server: StartServer
) -> None:
    file = tmp_path / "receipts.json"
    folder = tmp_path / "server"
    folder.mkdir()
    first = start_server(data_dir=folder)
    made = [_one_claim(first, "before")]
    first.terminate()
    for action in ("after", "after again"):
        rotate(first, file)
        server = start_server(data_dir=folder, environment={"FENCEPOST_RECEIPT_KEY_FILE": str(file)})
        made.append(_one_claim(server, action, made[0]["namespace_token"]))
        all_verify(server.port, made)
        server.terminate()
    assert len({answer["receipt"].split(":")[1] for answer in made}) == 3


def test_a_key_file_that_is_none_stops_the_start(tmp_path: Path) -> None:
    file = tmp_path / "receipts.json"
    file.write_text(json.dumps({"keys": []}))
    server = RunningServer(data_dir=tmp_path, environment={"FENCEPOST_RECEIPT_KEY_FILE": str(file)})
    server.start(await_answer=False)
    try:
        assert server.wait() == 78
        assert "FENCEPOST_RECEIPT_KEY_FILE" in server.stderr
    finally:
        server.close()


def _one_claim(server: RunningServer, action: str, token: str | None = None) -> Answer:
    with Once(server.port, token=token) as once:
        return once.claim(action)


def rotate(server: RunningServer, file: Path) -> None:
    environment = {
        **os.environ,
        "FENCEPOST_DATA_DIR": str(server.data_dir),
        "FENCEPOST_RECEIPT_KEY_FILE": str(file),
        "PYTHONPATH": str(ROOT),
    }
    command = [sys.executable, "-m", "app.cli.main", "rotate-receipt-key"]
    subprocess.run(command, env=environment, cwd=server.folder, check=True, capture_output=True)
