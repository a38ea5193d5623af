"""The server with the conformance suite's tools beside its own; with one of them broken where a variable names it."""

from gevent import monkey

monkey.patch_all()

import os  # noqa: E402
from dataclasses import replace  # noqa: E402

from app.factory import create_app  # noqa: E402
from app.serving.prepare import prepared  # noqa: E402
from app.settings import load  # noqa: E402
from tests.mcp.fixture_tools import FIXTURES  # noqa: E402

_broken = os.environ.get("MCP_BROKEN_TOOL")
application = create_app(
    prepared(load()),
    more_tools=[replace(tool, act=lambda _: []) if tool.name == _broken else tool for tool in FIXTURES],
)
