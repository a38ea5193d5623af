"""The meter sees every frame of a client whatever the cuts between its chunks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.web.frames import (
    TOO_BIG,
    TOO_MANY_FRAMES,
    Closing,
    FrameMeter,
    close_frame,
    holds_close,
    ping_frame,
    text_frame,
)

TEXT, CONTINUE, PING = 1, 0, 9


def frame(opcode: int, length: int, *, fin: bool = True) -> bytes:
    """A masked frame of so many zero bytes."""
    head = bytes([(0x80 if fin else 0) | opcode])
    if length < 126:
        head += bytes([0x80 | length])
    elif length < 65536:
        head += bytes([0xFE]) + length.to_bytes(2, "big")
    else:
        head += bytes([0xFF]) + length.to_bytes(8, "big")
    return head + b"mask" + bytes(length)


def fed(raw: bytes, cuts: list[int], seconds_between: float = 0.0) -> tuple[int, int, Closing | None]:
    """Bytes passed on, messages and verdict of these bytes in chunks ending at the cuts."""
    meter, passed, now, begin = FrameMeter(0.0), 0, 0.0, 0
    for end in sorted({*(cut % (len(raw) + 1) for cut in cuts), len(raw)}):
        now += seconds_between
        passed += meter.feed(raw[begin:end], now)
        if meter.verdict is not None:
            break
        begin = end
    return passed, meter.messages, meter.verdict


@given(
    st.lists(st.sampled_from([0, 1, 125, 126, 1000, 32768]), min_size=1, max_size=20),
    st.lists(st.integers(0, 100_000), max_size=40),
)
def test_messages_are_counted_the_same_for_all_cuts(lengths: list[int], cuts: list[int]) -> None:
    raw = b"".join(frame(TEXT, length) for length in lengths)
    assert fed(raw, cuts) == (len(raw), len(lengths), None)


@given(st.lists(st.integers(0, 100_000), max_size=40))
def test_a_long_message_stops_before_the_head_that_makes_it_so(cuts: list[int]) -> None:
    good = frame(TEXT, 100) + frame(TEXT, 30_000, fin=False) + frame(PING, 5)
    passed, messages, verdict = fed(good + frame(CONTINUE, 2_769), cuts)
    assert (messages, verdict) == (1, TOO_BIG)
    assert len(good) <= passed < len(good) + 8
    passed, messages, verdict = fed(good + frame(CONTINUE, 2_768), cuts)
    assert (messages, verdict) == (2, None)


@pytest.mark.parametrize(("length", "verdict"), [(32_767, None), (32_768, None), (32_769, TOO_BIG)])
def test_a_message_may_have_32_kib(length: int, verdict: Closing | None) -> None:
    assert fed(frame(TEXT, length), [])[2] == verdict


@pytest.mark.parametrize(("count", "verdict"), [(19, None), (20, None), (21, TOO_MANY_FRAMES)])
def test_twenty_frames_may_come_at_once(count: int, verdict: Closing | None) -> None:
    assert fed(frame(PING, 3) * count, [])[2] == verdict


def test_twenty_frames_a_second_may_come_for_ever() -> None:
    raw = frame(TEXT, 10) * 400
    every_frame = list(range(0, len(raw), len(frame(TEXT, 10))))
    assert fed(raw, every_frame, seconds_between=0.05)[2] is None
    assert fed(raw, every_frame, seconds_between=0.04)[2] == TOO_MANY_FRAMES


def test_small_pieces_of_a_message_count_and_large_ones_do_not() -> None:
    assert fed(frame(TEXT, 1, fin=False) + frame(CONTINUE, 511, fin=False) * 20, [])[2] == TOO_MANY_FRAMES
    assert fed(frame(TEXT, 1, fin=False) + frame(CONTINUE, 512, fin=False) * 40, [])[2] is None


def test_what_piled_up_while_we_did_not_read_is_forgiven() -> None:
    meter = FrameMeter(0.0)
    meter.forgive(2.0)
    raw = frame(PING, 0) * 60
    assert meter.feed(raw, 0.0) == len(raw)
    meter.feed(frame(PING, 0), 0.0)
    assert meter.verdict == TOO_MANY_FRAMES


def test_a_close_frame_is_found_among_others() -> None:
    closing = close_frame(Closing(4000, "x" * 200))
    assert len(closing) == 2 + 125
    assert holds_close(closing)
    assert holds_close(text_frame(b"x" * 70_000) + ping_frame() + text_frame(b"x" * 200) + closing)
    assert not holds_close(text_frame(b"\x88" * 70_000) + ping_frame() + text_frame(b"\x88" * 200))
