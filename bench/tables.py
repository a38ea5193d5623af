"""Where measured tables go: docs/performance.md, between the comments that name them."""

from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "performance.md"


def keep(name: str, command: str, text: str) -> None:
    """Put the text between `<!-- name: made by command -->` and `<!-- end of name -->`.

    Raises ValueError where the page lacks them.
    """
    begin, end = f"<!-- {name}: made by {command} -->", f"<!-- end of {name} -->"
    page = PAGE.read_text(encoding="utf-8")
    start, stop = page.index(begin) + len(begin), page.index(end)
    PAGE.write_text(f"{page[:start]}\n{text}\n{page[stop:]}", encoding="utf-8")
