"""What `pip install .` installs is whole: it holds the shipped folders, and it serves without the checkout."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.house.tree import ROOT, plant, tracked
from tests.real.api import Api
from tests.real.server import RunningServer

pytestmark = pytest.mark.real
SHIPPED = ("migrations", "static", "templates")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel built from a copy of the tracked files."""
    source, built = (tmp_path_factory.mktemp(name) for name in ("source", "built"))
    for path in tracked(ROOT):
        if path.parts[0] in {"app", "wsgi.py", "pyproject.toml", "setup.py", "README.md", "LICENSE", *SHIPPED}:
            (source / path).parent.mkdir(parents=True, exist_ok=True)
            (source / path).write_bytes((ROOT / path).read_bytes())
    command = [sys.executable, "-m", "pip", "wheel", "-qq", "--no-deps", "--no-build-isolation", "-w", str(built), "."]
    subprocess.run(command, cwd=source, check=True)
    return next(built.glob("*.whl"))


@pytest.fixture(scope="module")
def unpacked(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its files, as pip would lay them."""
    target = tmp_path_factory.mktemp("target")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(target)
    return target


def test_everything_that_is_shipped_is_in_it(unpacked: Path) -> None:
    shipped = [path for path in tracked(ROOT) if path.parts[0] in SHIPPED]
    assert shipped
    assert [str(path) for path in shipped if not (unpacked / "app/_shipped" / path).is_file()] == []
    assert (unpacked / "wsgi.py").is_file()
    assert not (unpacked / "tests").exists()


def test_it_migrates_away_from_the_checkout(unpacked: Path, tmp_path: Path) -> None:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("FENCEPOST_")}
    plant(tmp_path, {"elsewhere/empty": ""})
    done = subprocess.run(
        [sys.executable, "-m", "app.cli.main", "migrate"],
        cwd=tmp_path / "elsewhere",
        env=clean | {"PYTHONPATH": str(unpacked), "FENCEPOST_DATA_DIR": str(tmp_path / "data")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("The schema went from base to ")


def test_it_serves_away_from_the_checkout(unpacked: Path) -> None:
    with RunningServer(environment={"PYTHONPATH": str(unpacked)}) as server:
        for path in ("/readyz", "/docs", "/llms.txt", "/openapi.json", "/metrics", "/sign-in"):
            assert server.get(path)[0] == 200, path
        assert server.terminate() == 0


def test_installed_into_an_empty_environment_it_serves(wheel: Path, tmp_path: Path) -> None:
    home = tmp_path / "env"
    subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
    pip = [str(home / "bin/python"), "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
    subprocess.run([*pip, "--require-hashes", "--requirement", str(ROOT / "requirements/run.txt")], check=True)
    subprocess.run([*pip, "--no-deps", str(wheel)], check=True)
    subprocess.run([str(home / "bin/python"), "-m", "pip", "check"], check=True)
    outside = {"PYTHONPATH": None, "PATH": f"{home / 'bin'}:/usr/bin:/bin"}
    with RunningServer(environment=outside, command=[str(home / "bin/fencepost-server"), "serve"]) as server:
        with Api(server.port) as api:
            namespace = api.lease("namespace")["namespace"]
            assert api.lease("acquire", key="a", namespace=namespace).status == 201
            assert api.get("/sign-in").status == 200
        assert server.terminate() == 0
