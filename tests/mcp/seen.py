"""Print what a model sees of the tools: `python -m tests.mcp.seen [name …]`."""

import json
import sys
from typing import Any

from app.mcp.words import INSTRUCTIONS
from tests.mcp.test_tools import TOOLS


def seen(name: str) -> str:
    """A tool's words, and its arguments in a line each."""
    listing = TOOLS[name].listing()
    schema = listing["inputSchema"]
    required = schema.get("required", [])
    lines = [f"## {name}", "", listing["description"], "", "Arguments:"]
    lines += [f"- {argument(member, rule, member in required)}" for member, rule in schema["properties"].items()]
    return "\n".join(lines) + "\n"


def argument(name: str, rule: dict[str, Any], is_required: bool) -> str:
    """One argument: its name, what is known of its form, its description."""
    form = {key: value for key, value in rule.items() if key not in ("description", "anyOf", "additionalProperties")}
    return f"{name}{' (required)' if is_required else ''} {json.dumps(form)}: {rule['description']}"


if __name__ == "__main__":
    sys.stdout.write(INSTRUCTIONS + "\n\n")
    sys.stdout.write("\n".join(seen(name) for name in sys.argv[1:] or TOOLS))
