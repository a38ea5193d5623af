"""Days, midnights and blocks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.instants import DAY_SECONDS, SECOND
from app.core.limits import block_of, day_of, seconds_to_midnight

DAY = DAY_SECONDS * SECOND


@pytest.mark.parametrize(("now", "day", "left"), [(0, 0, 86_400), (1, 0, 86_400), (DAY - 1, 0, 1), (DAY, 1, 86_400)])
def test_a_day_ends_at_utc_midnight_and_what_is_left_of_it_is_rounded_up(now, day, left) -> None:
    assert (day_of(now), seconds_to_midnight(now)) == (day, left)


@pytest.mark.parametrize(
    ("limit", "used", "block"),
    [(5000, 0, 32), (5000, 4990, 10), (5000, 5000, 0), (5000, 6000, 0), (100, 0, 1), (5, 4, 1), (0, 0, 0), (900, 0, 9)],
)
def test_a_block_is_a_hundredth_of_the_limit_at_most_and_never_passes_it(limit, used, block) -> None:
    assert block_of(limit, used) == block


@given(st.integers(0, 100_000), st.integers(0, 100_000))
def test_blocks_always_reach_the_limit_and_never_pass_it(limit, used) -> None:
    block = block_of(limit, used)
    assert block >= 0
    assert used + block <= max(limit, used)
    assert (block == 0) == (used >= limit)
