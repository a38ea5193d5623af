"""Run import-linter over many houses at once: `python import_judge.py ROOT[=CONTRACT] …` prints a list of verdicts.

A process that has imported `app` once cannot look at another one of that name, and starting import-linter costs more
than judging a small house. So each house is judged in a fork of one process that has everything loaded.
"""

import contextlib
import io
import json
import os
import sys

from importlinter.cli import lint_imports


def judge(root: str, contract: str) -> str:
    """What import-linter says of the house under `root`; empty when every contract is kept."""
    os.chdir(root)
    sys.path.insert(0, root)
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        code = lint_imports(limit_to_contracts=(contract,) if contract else (), no_cache=True, no_logo=True)
    return said.getvalue() if code else ""


def in_a_fork(root: str, contract: str) -> str:
    """The same, leaving this process as it was."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        with os.fdopen(writing, "w", encoding="utf-8") as pipe:
            pipe.write(judge(root, contract))
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as pipe:
        said = pipe.read()
    _, status = os.waitpid(child, 0)
    return said if status == 0 else f"the judge died of {status}"


if __name__ == "__main__":
    print(json.dumps([in_a_fork(*argument.partition("=")[::2]) for argument in sys.argv[1:]]))  # noqa: T201
