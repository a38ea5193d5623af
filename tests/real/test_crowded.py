"""List pages among very many rows."""

import pytest

from tests.real.crowded import PAGES, measure

pytestmark = pytest.mark.real
_ENOUGH_MS = 300


def test_every_list_page_shows_its_rows_among_twenty_thousand_of_each_kind() -> None:
    assert measure(20_000).keys() == PAGES.keys()


@pytest.mark.long
def test_every_list_page_answers_within_300_ms_among_a_million_rows_of_each_kind() -> None:
    found = measure(1_000_000)
    assert {path: took for path, took in found.items() if took > _ENOUGH_MS} == {}
