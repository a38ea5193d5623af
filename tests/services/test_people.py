"""People on a real store, under a clock that moves only when told. P1 to P5 are of core/person.py."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.clock import ManualClock
from app.core.person import (
    CODE_SECONDS,
    FORGET_SECONDS,
    FREE_FAILURES,
    LONGEST_PAUSE_SECONDS,
    SESSION_SECONDS,
    CodeRefused,
    NameTaken,
    Person,
    PersonMalformed,
    SignedIn,
    SignInPaused,
    SignInRefused,
)
from app.services.audit import Audit
from app.services.passwords import HereAndNow
from app.services.people import People
from app.services.slowdown import Slowdown
from app.services.sweep import SESSIONS, Sweep
from app.storage.sqlite import SqliteEngine
from app.testmode import Failpoints
from tests.storage.shelf import PATIENT

ANN, SECRET, HERE = "ann", "correct horse", "192.0.2.1"


class House:
    """People on a file, their clock, and the monotonic seconds that failures are counted by."""

    def __init__(self, folder: Path) -> None:
        self.clock = ManualClock()
        self.seconds = 0.0
        self.engine = SqliteEngine(folder / "fencepost.db", clock=self.clock, **PATIENT)
        self.people = People(self.engine, HereAndNow(), Slowdown(lambda: self.seconds))

    def sign_in(self, password: str = SECRET, name: str = ANN, address: str = HERE) -> object:
        self.clock.advance(microseconds=1)
        return self.people.sign_in(name=name, password=password, address=address)

    def first(self, code: str, name: str = ANN, password: str = SECRET) -> object:
        return self.people.sign_in_first(code=code, name=name, password=password, address=HERE)

    def actions(self) -> list[str]:
        return [line.action for line in Audit(self.engine).page().lines][::-1]


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    house = House(tmp_path)
    yield house
    house.engine.close()


@pytest.fixture
def with_ann(house: House) -> House:
    assert isinstance(house.people.add(name=ANN, password=SECRET, right="operator"), Person)
    return house


def signed_in(outcome: object) -> SignedIn:
    assert isinstance(outcome, SignedIn)
    return outcome


def test_p1_a_session_lasts_twelve_hours_and_not_a_microsecond_more(with_ann: House) -> None:
    token = signed_in(with_ann.sign_in()).token
    with_ann.clock.advance(SESSION_SECONDS - 1)
    with_ann.clock.advance(microseconds=999_999)
    session = with_ann.people.session(token)
    assert session is not None
    assert session.person.name == ANN
    with_ann.clock.advance(microseconds=1)
    assert with_ann.people.session(token) is None


def test_a_sign_out_ends_the_session_on_the_server(with_ann: House) -> None:
    token, other = signed_in(with_ann.sign_in()).token, signed_in(with_ann.sign_in()).token
    with_ann.clock.advance(1)
    with_ann.people.sign_out(token)
    assert with_ann.people.session(token) is None
    assert with_ann.people.session(other) is not None
    assert with_ann.actions() == ["operator.add", "sign-in", "sign-in", "sign-out"]


def test_p2_whoever_is_removed_is_out(with_ann: House) -> None:
    token = signed_in(with_ann.sign_in()).token
    assert with_ann.people.remove(ANN)
    assert with_ann.people.session(token) is None
    assert not with_ann.people.remove(ANN)
    with_ann.people.add(name=ANN, password=SECRET, right="viewer")
    assert with_ann.people.session(token) is None


def test_p3_the_link_works_once_and_only_without_an_operator(house: House) -> None:
    code, other = house.people.first_code("start 1"), house.people.first_code("start 2")
    assert code is not None
    assert other is not None
    assert house.people.awaits_the_first()
    assert house.first("signin_" + "x" * 43) == CodeRefused()
    token = signed_in(house.first(code)).token
    assert house.people.session(token) is not None
    assert house.first(code, "eve") == CodeRefused()
    assert house.first(other, "eve") == CodeRefused()
    assert not house.people.awaits_the_first()
    assert house.people.first_code("start 3") is None


def test_p3_the_link_works_for_a_day(house: House) -> None:
    code = house.people.first_code("start")
    assert code is not None
    house.clock.advance(CODE_SECONDS)
    assert house.first(code) == CodeRefused()


def test_one_start_prints_one_link(house: House) -> None:
    assert house.people.first_code("start") is not None
    assert house.people.first_code("start") is None


def test_an_operator_added_by_hand_ends_the_links_a_viewer_does_not(house: House) -> None:
    code = house.people.first_code("start")
    assert code is not None
    house.people.add(name="vic", password=SECRET, right="viewer")
    assert house.first(code, "vic") == NameTaken()
    house.people.add(name="oda", password=SECRET, right="operator")
    assert house.first(code) == CodeRefused()


def test_a_bad_choice_with_a_good_code_can_be_made_again(house: House) -> None:
    code = house.people.first_code("start")
    assert code is not None
    for _ in range(FREE_FAILURES + 3):
        assert isinstance(house.first(code, password="short"), PersonMalformed)
    signed_in(house.first(code))


@pytest.mark.parametrize("name", ["", "a b", "-a", "a\u202e", "ä", "a" * 65, "a\n", "<b>"])
def test_p4_names_are_short_visible_ascii(house: House, name: str) -> None:
    assert isinstance(house.people.add(name=name, password=SECRET, right="operator"), PersonMalformed)
    assert house.sign_in(name=name) == SignInRefused()
    assert house.people.every() == []


@pytest.mark.parametrize(("length", "is_taken"), [(7, False), (8, True), (512, True), (513, False)])
def test_a_password_has_8_to_512_characters(house: House, length: int, is_taken: bool) -> None:
    added = house.people.add(name=ANN, password="p" * length, right="operator")
    assert isinstance(added, Person) is is_taken


def test_a_name_is_given_once(with_ann: House) -> None:
    assert with_ann.people.add(name=ANN, password="another one", right="viewer") == NameTaken()
    signed_in(with_ann.sign_in())


def test_p5_failures_slow_the_name_and_the_address_and_a_success_ends_it(with_ann: House) -> None:
    for _ in range(FREE_FAILURES + 1):
        assert with_ann.sign_in("wrong") == SignInRefused()
    assert with_ann.sign_in() == SignInPaused(2)
    assert with_ann.sign_in(address="192.0.2.9") == SignInPaused(2)
    assert with_ann.sign_in(name="bob") == SignInPaused(2)
    with_ann.seconds += 2
    assert with_ann.sign_in("wrong") == SignInRefused()
    assert with_ann.sign_in() == SignInPaused(4)
    with_ann.seconds += 4
    signed_in(with_ann.sign_in(address="192.0.2.9"))
    signed_in(with_ann.sign_in(address="192.0.2.9"))


def test_p5_nobody_waits_longer_than_a_minute_and_quiet_is_forgotten(with_ann: House) -> None:
    for _ in range(30):
        with_ann.sign_in("wrong")
        with_ann.seconds += LONGEST_PAUSE_SECONDS
    with_ann.sign_in("wrong")
    assert with_ann.sign_in() == SignInPaused(60)
    with_ann.seconds += FORGET_SECONDS + 1
    signed_in(with_ann.sign_in())


def test_tries_at_once_are_counted_before_they_are_judged() -> None:
    slowdown = Slowdown(lambda: 0.0)
    assert [slowdown.begin("name:ann") for _ in range(FREE_FAILURES + 1)] == [0.0] * (FREE_FAILURES + 1)
    assert slowdown.begin("name:ann") > 0


def test_nothing_of_a_password_token_or_code_is_on_the_disk(house: House, tmp_path: Path) -> None:
    code = house.people.first_code("start")
    assert code is not None
    token = signed_in(house.first(code)).token
    house.people.sign_out(token)
    written = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert ANN.encode() in written
    for secret in (SECRET, token, code):
        assert secret.encode() not in written


def test_the_sweep_takes_sessions_that_are_over(with_ann: House) -> None:
    with_ann.sign_in()
    with_ann.clock.advance(SESSION_SECONDS)
    token = signed_in(with_ann.sign_in()).token
    removed = Sweep(with_ann.engine, [SESSIONS], Failpoints()).run()
    assert removed["sessions"] == 1
    assert with_ann.people.session(token) is not None


def test_the_audit_is_read_page_by_page_the_newest_first(with_ann: House) -> None:
    for _ in range(5):
        with_ann.sign_in()
    audit = Audit(with_ann.engine)
    first = audit.page(most=4)
    assert first.older is not None
    rest = audit.page(before=first.older, most=4)
    assert rest.older is None
    assert [len(first.lines), len(rest.lines)] == [4, 2]
    assert rest.lines[-1].action == "operator.add"
