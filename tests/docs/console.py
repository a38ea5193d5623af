"""Sessions in the documents: fenced `console` blocks whose commands are run and whose answers are compared.

    ```console
    $ curl -s http://127.0.0.1:8000/healthz
    {"ok": true}
    ```

The commands of one document run in one shell, in order, so that a variable set in one block is there in the next.
`…` in an expected answer stands for whatever differs from run to run: a token, an instant, a number. White space
outside of strings does not count in an answer that is JSON, so that documents may lay it out for reading.
"""

import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

DOCUMENTED_URL = "http://127.0.0.1:8000"
ANYTHING = "…"
_MARK = "\x1e"
_FENCE = re.compile(r"^(?P<indent> *)```(?P<kind>\S*)")


@dataclass(frozen=True, slots=True)
class Step:
    """One command of a document and the answer that is printed below it."""

    line: int
    command: str
    expected: str


def steps(document: str) -> list[Step]:
    """The commands in the `console` blocks of a Markdown text, in order."""
    found: list[Step] = []
    kind, indent = None, ""
    for number, line in enumerate(document.splitlines(), start=1):
        fence = _FENCE.match(line)
        if fence:
            kind, indent = (None, "") if kind is not None else (fence["kind"], fence["indent"])
        elif kind == "console":
            _take(found, number, line.removeprefix(indent))
    return found


def _take(found: list[Step], number: int, text: str) -> None:
    if text.startswith("$ "):
        found.append(Step(number, text[2:], ""))
        return
    if not found:
        raise ValueError(f"line {number}: a console block begins with a command")
    last = found[-1]
    if not last.expected and last.command.endswith("\\"):
        found[-1] = Step(last.line, f"{last.command}\n{text}", "")
    else:
        found[-1] = Step(last.line, last.command, f"{last.expected}{text}\n")


def run(steps_of_document: list[Step], url: str, folder: Path, environment: Mapping[str, str]) -> list[str]:
    """What each command printed (both streams), all run in one shell against the server at this address."""
    script = "".join(f"{{ {step.command}\n}} 2>&1\nprintf '{_MARK}'\n" for step in steps_of_document)
    done = subprocess.run(
        ["bash", "--noprofile", "--norc"],
        cwd=folder,
        env=dict(environment),
        input=script.replace(DOCUMENTED_URL, url),
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    printed = done.stdout.replace(url, DOCUMENTED_URL).split(_MARK)[:-1]
    if len(printed) != len(steps_of_document):
        raise AssertionError(f"the shell ended after {len(printed)} commands:\n{done.stdout}\n{done.stderr}")
    return printed


def agrees(expected: str, printed: str) -> bool:
    """Whether the answer is the one in the document, but for what `…` stands for."""
    parts = [re.escape(part) for part in _plain(expected).split(ANYTHING)]
    return re.fullmatch(".*?".join(parts), _plain(printed), flags=re.DOTALL) is not None


def _plain(text: str) -> str:
    """White space cut to what matters: none outside the strings of JSON, single blanks elsewhere."""
    text = "\n".join(line.strip() for line in text.strip().splitlines())
    if not text.startswith(("{", "[")):
        return re.sub(r"[ \t]+", " ", text)
    pieces = re.split(r'("(?:[^"\\]|\\.)*")', text)
    return "".join(piece if piece.startswith('"') else re.sub(r"\s+", "", piece) for piece in pieces)


def disagreements(document: str, url: str, folder: Path, environment: Mapping[str, str]) -> list[str]:
    """Each command whose answer is not the one in the document."""
    wanted = steps(document)
    printed = run(wanted, url, folder, environment) if wanted else []
    return [
        f"line {step.line}: $ {step.command}\n  document: {step.expected.strip()}\n  printed:  {answer.strip()}"
        for step, answer in zip(wanted, printed, strict=True)
        if not agrees(step.expected, answer)
    ]
