"""Pages made from the code: `python -m tests.docs.reference` writes them, a test asks that they are current."""

from pathlib import Path

from app.wire.codes import MEANINGS

ROOT = Path(__file__).resolve().parents[2]
ERRORS = ROOT / "docs/errors.md"

_ERRORS_HEAD = """# Errors

Made from the code by `make reference`. A code is a word for programs and is never renamed once released; `error` is for
people and may be more exact on a route, `fix` says what to do next. [REST](rest.md) says what a refusal looks like.

| code | HTTP | error | fix |
| --- | --- | --- | --- |
"""


def errors_page() -> str:
    """The page of every refusal, in the order of the code."""
    rows = (f"| `{code}` | {told.http} | {told.error} | {told.fix or ''} |\n" for code, told in MEANINGS.items())
    return _ERRORS_HEAD + "".join(rows)


if __name__ == "__main__":
    ERRORS.write_text(errors_page(), encoding="utf-8")
