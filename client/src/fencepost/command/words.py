"""What the nouns share: options that all have, and JSON from files."""

import argparse
import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fencepost.command import secret

if TYPE_CHECKING:
    Parsers = argparse._SubParsersAction[argparse.ArgumentParser]
else:
    Parsers = object


def shared_options(*, has_namespace: bool) -> list[argparse.ArgumentParser]:
    """Options that every verb has."""
    options = argparse.ArgumentParser(add_help=False)
    options.add_argument("--url", help="the server (FENCEPOST_URL, else http://127.0.0.1:8000)")
    options.add_argument("--json", action="store_true", help="print one JSON object")
    options.add_argument("--quiet", action="store_true", help="no countdown")
    if has_namespace:
        options.add_argument("--namespace-file", metavar="FILE", help="the namespace (or set FENCEPOST_NAMESPACE)")
    return [options]


def takes_json(path: str) -> str:
    """The JSON text of a file, or of standard input for `-`. Raises Missing."""
    try:
        if path == "-":
            text = sys.stdin.read()
        else:
            with open(path, encoding="utf-8") as file:
                text = file.read()
        json.loads(text, parse_int=str)
    except OSError as fault:
        raise secret.Missing(f"{path} cannot be read: {fault.strerror}") from None
    except ValueError as fault:
        raise secret.Missing(f"{'standard input' if path == '-' else path} is not JSON: {fault}") from None
    return text.strip()


def split_command(words: Sequence[str]) -> tuple[list[str], list[str] | None]:
    """Our own words, and those after the first `--`, which are never ours."""
    if "--" not in words:
        return list(words), None
    at = list(words).index("--")
    return list(words[:at]), list(words[at + 1 :])
