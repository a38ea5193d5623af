"""Nothing that a caller can meet is untold: every refusal, every route."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.docs.reference import ERRORS, errors_page
from tests.house.tree import ROOT, documents, keeps, plant

_PRINT_ROUTES = """
from app.factory import create_app
from app.serving.prepare import prepared
from app.settings import load
app = create_app(prepared(load()))
for rule in app.url_map.iter_rules():
    print(rule.rule)
app.close()
"""


def routes(folder: Path) -> list[str]:
    """Every address that the server answers, with `{…}` for its variable parts."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("FENCEPOST_")}
    done = subprocess.run(
        [sys.executable, "-c", _PRINT_ROUTES],
        env=variables | {"FENCEPOST_DATA_DIR": str(folder), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    return [re.sub(r"<(?:[^:>]*:)?([^>]*)>", r"{\1}", line) for line in done.stdout.splitlines()]


def untold_routes(root: Path, rules: list[str]) -> list[str]:
    """Routes that no document has in backticks, under their full address or without the prefix."""
    text = "".join((root / path).read_text(encoding="utf-8") for path in documents(root))
    quoted = set(re.findall(r"`(?:[A-Z]+ )?(/[^`\s]*)`", text))
    quoted = {re.sub(r"\{[^}]*\}", "{}", address) for address in quoted}
    plain = {rule: re.sub(r"\{[^}]*\}|(?<=^/static/).*", "{}", rule) for rule in rules}
    return [rule for rule, shape in plain.items() if not {shape, shape.removeprefix("/services/v1")} & quoted]


def test_every_refusal_is_told() -> None:
    assert ERRORS.read_text(encoding="utf-8") == errors_page(), "run `make reference`"


def test_every_route_is_told(tmp_path: Path) -> None:
    keeps(untold_routes(ROOT, routes(tmp_path)))


def test_a_route_that_nobody_told_goes_red(tmp_path: Path) -> None:
    plant(tmp_path, {"docs/rest.md": "`POST /lease` `/services/v1/handoff/{id}` but /secret in prose"})
    rules = ["/services/v1/lease", "/services/v1/handoff/{handoff_id}", "/services/v1/secret", "/hidden"]
    assert untold_routes(tmp_path, rules) == ["/services/v1/secret", "/hidden"]
