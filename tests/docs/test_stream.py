"""docs/stream.md tells every frame, every code of an error and every close code."""

from pathlib import Path

from app.web import conversation, frames, socket
from app.web.frames import Closing
from app.wire.stream import StreamCode

PAGE = (Path(__file__).parents[2] / "docs" / "stream.md").read_text(encoding="utf-8")


def test_every_close_code_is_told() -> None:
    closings = {
        closing.code
        for module in (frames, conversation, socket)
        for closing in vars(module).values()
        if isinstance(closing, Closing)
    }
    assert len(closings) > 10
    assert [code for code in closings if str(code) not in PAGE] == []


def test_every_code_of_an_error_frame_is_told() -> None:
    assert [code for code in StreamCode if f"`{code}`" not in PAGE] == []


def test_every_frame_is_told() -> None:
    sent = ["hello", "snap", "chg", "live", "end", "lease", "feed", "err", "hb", "goaway"]
    assert [name for name in sent if f"| `{name}` |" not in PAGE] == []
    assert [name for name in ("sub", "unsub", "hb") if f'{{"t":"{name}"' not in PAGE] == []
