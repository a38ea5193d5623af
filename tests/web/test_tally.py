"""Requests counted: what is told apart, and that it stays little."""

from app.spread import SIZES, Spread
from app.web.tally import MOST_ROWS, Kind, RequestTally


def test_requests_of_one_kind_are_one_row() -> None:
    tally = RequestTally()
    for _ in range(3):
        tally.note("POST", "/a", 200, "held", 0.002)
    tally.note("POST", "/a", 409, "lease_held", 0.002)
    assert tally.counts() == [(Kind("POST", "/a", 200, "held"), 3), (Kind("POST", "/a", 409, "lease_held"), 1)]
    assert tally.spreads["/a"].buckets()[:2] == [("0.001", 0), ("0.0025", 4)]


def test_an_invented_method_is_other() -> None:
    tally = RequestTally()
    for method in ("BREW", "own_secret"):
        tally.note(method, "unknown", 404, "unknown_route", 0.0)
    assert tally.counts() == [(Kind("other", "unknown", 404, "unknown_route"), 2)]


def test_there_are_never_more_rows_than_so_many_and_a_few() -> None:
    tally = RequestTally()
    for number in range(MOST_ROWS + 50):
        tally.note("GET", "/a", 200, f"word{number}", 0.0)
    assert len(tally.rows) == MOST_ROWS + 1
    assert tally.counts()[-1] == (Kind("other", "other", 200, "other"), 50)


def test_a_figure_on_a_bound_lies_below_it_and_one_above_all_is_counted() -> None:
    spread = Spread(SIZES)
    for figure in (1, 1.5, 2, 513):
        spread.note(figure)
    assert spread.buckets()[:3] == [("1.0", 1), ("2.0", 3), ("4.0", 3)]
    assert spread.buckets()[-2:] == [("512.0", 3), ("+Inf", 4)]
    assert spread.total == 517.5
