"""What stands in deploy/ is true of this server: its figures, its settings, its programs."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from app.settings.table import BY_VARIABLE
from tests.house.tree import ROOT

DEPLOY = ROOT / "deploy"
FILES = [*DEPLOY.iterdir(), ROOT / "compose.yaml", ROOT / "Dockerfile"]


def told() -> set[str]:
    """Every figure that docs/metrics.md tells of."""
    return set(re.findall(r"`((?:fencepost|process|python)_[a-z_]+)", (ROOT / "docs/metrics.md").read_text("utf-8")))


def asked(text: str) -> set[str]:
    """Every figure that an expression asks for."""
    names = re.findall(r"\b(?:fencepost|process)_[a-z_]+", text)
    return {re.sub(r"_(bucket|sum|count)$", "", name) for name in names}


def program(name: str, package: str) -> str:
    found = shutil.which(name)
    assert found is not None, f"{name} is not installed: scripts/need {package}"
    return found


def test_the_alert_rules_pass_prometheus_own_check_and_ask_for_what_there_is() -> None:
    rules = DEPLOY / "prometheus-rules.yml"
    done = subprocess.run(
        [program("promtool", "prometheus"), "check", "rules", str(rules)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert asked(rules.read_text("utf-8")) - told() == set()


def test_the_dashboard_asks_for_what_there_is_and_shows_every_figure_of_ours() -> None:
    board: dict[str, Any] = json.loads((DEPLOY / "grafana-dashboard.json").read_text("utf-8"))
    expressions = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    variables = [variable["query"]["query"] for variable in board["templating"]["list"] if variable["type"] == "query"]
    assert asked(" ".join(expressions + variables)) - told() == set()
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
    assert all(panel["datasource"]["uid"] == "${source}" for panel in board["panels"])


def test_every_expression_of_the_dashboard_can_be_read(tmp_path: Path) -> None:
    board = json.loads((DEPLOY / "grafana-dashboard.json").read_text("utf-8"))
    expressions = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    plain = [text.replace("$__rate_interval", "5m").replace("$instance", ".*") for text in expressions]
    rules = [{"record": f"r{number}", "expr": text} for number, text in enumerate(plain)]
    (tmp_path / "rules.yml").write_text(json.dumps({"groups": [{"name": "g", "rules": rules}]}))
    command = [program("promtool", "prometheus"), "check", "rules", str(tmp_path / "rules.yml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


if sys.platform == "linux":

    def test_the_systemd_unit_passes_systemds_own_check(tmp_path: Path) -> None:
        text = (DEPLOY / "fencepost.service").read_text("utf-8")
        unit = tmp_path / "fencepost.service"
        unit.write_text(text.replace("/opt/fencepost/bin/fencepost-server", "/bin/true"))
        done = subprocess.run(
            [program("systemd-analyze", "systemd"), "verify", "--man=no", str(unit)],
            capture_output=True,
            text=True,
            check=False,
        )
        ours = [line for line in (done.stdout + done.stderr).splitlines() if "fencepost" in line]
        assert (done.returncode, ours) == (0, [])


def test_every_setting_named_in_deploy_exists() -> None:
    named = {name for file in FILES for name in re.findall(r"FENCEPOST_[A-Z_]+", file.read_text("utf-8"))}
    assert named - set(BY_VARIABLE) == set()


def test_the_containers_are_not_root_and_their_file_systems_read_only() -> None:
    image = (ROOT / "Dockerfile").read_text("utf-8")
    assert re.search(r"^USER 10001:10001$", image, flags=re.MULTILINE)
    assert "HEALTHCHECK" in image
    assert "--require-hashes" in image
    services = (ROOT / "compose.yaml").read_text("utf-8")
    names = re.findall(r"^  ([a-z0-9-]+):$", services.partition("\nservices:\n")[2], flags=re.MULTILINE)
    assert names == ["database", "server-1", "server-2", "proxy"]
    assert services.count("<<: *server\n") == 2
    of_servers = services.partition("x-server: &server\n")[2].partition("\nservices:")[0]
    assert "  read_only: true\n" in of_servers
    assert "  cap_drop: [ALL]\n" in of_servers


def test_the_image_is_made_of_what_exists() -> None:
    image = (ROOT / "Dockerfile").read_text("utf-8")
    copied = [
        word for line in re.findall(r"^COPY (?!--from)(.*) \S+$", image, flags=re.MULTILINE) for word in line.split()
    ]
    assert [name for name in copied if not (ROOT / name).exists()] == []
    let_in = set((ROOT / ".dockerignore").read_text("utf-8").replace("!", "").split())
    assert set(copied) <= let_in
