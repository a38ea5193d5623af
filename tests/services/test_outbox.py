"""The notices of a real store under a clock that moves only when told."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.clock import ManualClock
from app.core.instants import SECOND
from app.core.outbox import Again, Answered, Delivery, NoNotice, Notice, Over, Resent, TooLate, Undelivered, Underway
from app.services.outbox import CLAIM_SECONDS, Outbox, announce
from app.services.sweep import NOTICES, Sweep
from app.storage import outbox as rows
from app.storage.engine import Transaction
from app.storage.sqlite import SqliteEngine
from app.testmode import Failpoints
from tests.storage.shelf import PATIENT

ONE, OTHER = "1" * 32, "2" * 32
LIFE = 86_400


class Desk:
    """An outbox on a file, its clock, and the topics that were rung."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.clock = ManualClock()
        self.rung: list[str] = []
        self.open()

    def open(self) -> None:
        self.engine = SqliteEngine(
            self.path,
            clock=self.clock,
            on_commit=self.rung.extend,
            **PATIENT,
        )
        self.outbox = Outbox(self.engine, fraction=lambda: 0.5)

    def move(self, handoff_id: str = ONE, version: int = 2, *, url: str = "http://a.example/hook") -> None:
        self.engine.run(lambda tx: self.append(tx, handoff_id, version, url))

    def append(self, tx: Transaction, handoff_id: str, version: int, url: str) -> None:
        announce(
            tx,
            notify_url=url,
            result_url=f"http://fence.example/services/v1/handoff/{handoff_id}",
            handoff_id=handoff_id,
            version=version,
            state="working",
            previous="offered",
            by="receiver",
            ended=False,
            changed_at=tx.now(),
            expires_at=tx.now() + LIFE * SECOND,
        )

    def claim(self, *, room: int = 100, per_receiver: int = 100, sending: tuple[Notice, ...] = ()) -> list[Delivery]:
        return self.outbox.claim(room=room, per_receiver=per_receiver, sending=sending)

    def only(self) -> Delivery:
        (delivery,) = self.outbox.of_handoff(ONE)
        return delivery


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    desk = Desk(tmp_path / "fencepost.db")
    yield desk
    desk.engine.close()


def test_a_move_leaves_a_notice_that_is_due_at_once_and_rings_after_the_commit(desk: Desk) -> None:
    desk.move()
    assert rows.TOPIC in desk.rung
    (claimed,) = desk.claim()
    assert json.loads(claimed.notice.body)["version"] == 2
    assert claimed.notice.message_id == f"msg_{ONE}_2"
    assert claimed.tries == 1


def test_a_move_that_is_rolled_back_leaves_no_notice_and_rings_nobody(desk: Desk) -> None:
    def operation(tx: Transaction) -> None:
        desk.append(tx, ONE, 2, "http://a.example/")
        raise LookupError

    with pytest.raises(LookupError):
        desk.engine.run(operation)
    assert desk.claim() == []
    assert rows.TOPIC not in desk.rung


def test_an_empty_outbox_is_looked_at_without_a_write(desk: Desk) -> None:
    before = desk.path.with_name("fencepost.db-wal").stat().st_size
    for _ in range(50):
        assert desk.claim() == []
    assert desk.path.with_name("fencepost.db-wal").stat().st_size == before


def test_what_is_claimed_is_nobody_elses_until_the_claim_lapses(desk: Desk) -> None:
    desk.move()
    (first,) = desk.claim()
    assert desk.claim() == []
    desk.clock.advance(CLAIM_SECONDS, microseconds=-1)
    assert desk.claim() == []
    desk.clock.advance(microseconds=1)
    (second,) = desk.claim()
    assert (first.tries, second.tries) == (1, 2)


def test_a_sender_whose_claim_lapsed_cannot_write_over_the_next_ones_result(desk: Desk) -> None:
    desk.move()
    (first,) = desk.claim()
    desk.clock.advance(CLAIM_SECONDS)
    (second,) = desk.claim()
    assert desk.outbox.record(first, Answered(500)) is None
    assert desk.outbox.record(second, Answered(204)) == Over("delivered")
    assert desk.outbox.record(first, Answered(500)) is None
    assert (desk.only().ending, desk.only().result) == ("delivered", "204")


def test_five_tries_at_their_times_and_then_no_more(desk: Desk) -> None:
    desk.move()
    began = desk.clock.now()
    at: list[int] = []
    for _ in range(4):
        (claimed,) = desk.claim()
        at.append((desk.clock.now() - began) // SECOND)
        again = desk.outbox.record(claimed, Undelivered("timeout"))
        assert isinstance(again, Again)
        assert desk.only().due_at == again.at
        desk.clock.advance(microseconds=again.at - desk.clock.now() - 1)
        assert desk.claim() == []
        desk.clock.advance(microseconds=1)
    (claimed,) = desk.claim()
    at.append((desk.clock.now() - began) // SECOND)
    assert at == [0, 15, 75, 315, 915]
    assert desk.outbox.record(claimed, Undelivered("timeout")) == Over("exhausted")
    desk.clock.advance(3_600)
    assert desk.claim() == []
    assert (desk.only().tries, desk.only().ending, desk.only().due_at) == (5, "exhausted", None)


def test_a_process_that_dies_in_every_try_sends_five_times_at_most(desk: Desk) -> None:
    desk.move()
    begun = 0
    for _ in range(12):
        begun += len(desk.claim())
        desk.clock.advance(CLAIM_SECONDS)
    assert begun == 5
    assert desk.only().ending == "exhausted"


def test_a_notice_outlives_a_restart_and_keeps_its_count(desk: Desk) -> None:
    desk.move()
    (claimed,) = desk.claim()
    desk.outbox.record(claimed, Answered(500))
    desk.engine.close()
    desk.open()
    assert desk.claim() == []
    desk.clock.advance(15)
    (claimed,) = desk.claim()
    assert claimed.tries == 2


def test_it_is_given_up_at_the_end_of_the_handoffs_life(desk: Desk) -> None:
    desk.move()
    desk.clock.advance(LIFE)
    assert desk.claim() == []
    assert desk.only().ending == "expired"
    desk.move(OTHER)
    desk.clock.advance(LIFE - 14)
    (claimed,) = desk.claim()
    assert desk.outbox.record(claimed, Answered(500)) == Over("expired")


def test_a_receiver_with_a_long_queue_does_not_keep_others_waiting(desk: Desk) -> None:
    for version in range(2, 202):
        desk.move(ONE, version, url="http://slow.example/hook")
    desk.clock.advance(1)
    desk.move(OTHER, url="http://quick.example/hook")
    claimed = desk.claim(room=5, per_receiver=4)
    assert [delivery.notice.receiver for delivery in claimed] == ["slow.example"] * 4 + ["quick.example"]
    assert [delivery.notice.version for delivery in claimed[:4]] == [2, 3, 4, 5]
    assert desk.claim(room=5, per_receiver=4, sending=tuple(delivery.notice for delivery in claimed)) == []


def test_what_this_process_still_sends_is_not_begun_again_when_the_clock_leaps(desk: Desk) -> None:
    desk.move()
    (claimed,) = desk.claim()
    desk.clock.advance(3_600)
    assert desk.claim(sending=(claimed.notice,)) == []


def test_no_more_is_claimed_than_there_is_room_for(desk: Desk) -> None:
    for version in range(2, 12):
        desk.move(ONE, version)
    assert len(desk.claim(room=3)) == 3
    assert len(desk.claim(room=100)) == 7


def send_again(desk: Desk, handoff_id: str, version: int) -> object:
    (seen,) = [one.tried_at for one in desk.outbox.of_handoff(handoff_id) if one.notice.version == version] or [None]
    return desk.outbox.resend(handoff_id=handoff_id, version=version, seen_tried_at=seen, actor="ann")


def test_a_person_has_it_sent_once_more(desk: Desk) -> None:
    desk.move()
    (claimed,) = desk.claim()
    assert send_again(desk, ONE, 2) == Underway()
    assert desk.outbox.record(claimed, Answered(410)) == Over("stopped")
    desk.rung.clear()
    assert isinstance(send_again(desk, ONE, 2), Resent)
    assert rows.TOPIC in desk.rung
    (claimed,) = desk.claim()
    assert claimed.tries == 1
    assert claimed.notice.message_id == f"msg_{ONE}_2"
    assert desk.outbox.record(claimed, Answered(200)) == Over("delivered")
    assert send_again(desk, ONE, 3) == NoNotice()
    assert send_again(desk, OTHER, 2) == NoNotice()
    desk.clock.advance(LIFE)
    assert send_again(desk, ONE, 2) == TooLate()


def test_the_sweep_takes_notices_with_their_handoffs_life_and_no_sooner(desk: Desk) -> None:
    desk.move()
    desk.clock.advance(1)
    desk.move(OTHER)
    sweep = Sweep(desk.engine, [NOTICES], Failpoints())
    desk.clock.advance(LIFE - 1, microseconds=-1)
    assert sweep.run()["notices"] == 0
    desk.clock.advance(microseconds=1)
    assert sweep.run()["notices"] == 1
    assert desk.outbox.of_handoff(ONE) == []
    assert len(desk.outbox.of_handoff(OTHER)) == 1


def test_the_counts_tell_what_waits_and_what_became_of_the_rest(desk: Desk) -> None:
    for version in range(2, 5):
        desk.move(ONE, version)
    first, second, _ = desk.claim()
    desk.outbox.record(first, Answered(200))
    desk.outbox.record(second, Answered(410))
    assert desk.outbox.counts() == {"waiting": 1, "delivered": 1, "stopped": 1}
