"""The invariants H1 to H9 of `app.core.handoff`, one by one; the state machine beside this file walks at random."""

from dataclasses import replace

import pytest

from app.core.handoff import (
    Created,
    Expired,
    HandoffRecord,
    Moved,
    NonceConflict,
    NotPermitted,
    Offer,
    OfferConflict,
    Seen,
    StateMismatch,
    TransitionNotAllowed,
    UnknownState,
    Wish,
    create,
    look,
    move,
    news,
    repeat,
)
from app.core.instants import SECOND
from app.core.machine import Machine, declare

T0 = 1_800_000_000 * SECOND + 250_000


def offer(**changes: object) -> Offer:
    machine = declare()
    assert isinstance(machine, Machine)
    members: dict[str, object] = {
        "handoff_id": "0" * 32,
        "owner_hash": b"o" * 32,
        "receiver_hash": b"r" * 32,
        "machine": machine,
        "payload": b'{"a":1.50}',
        "note": "look",
    }
    return Offer(**(members | changes))  # type: ignore[arg-type]


def machine_of(*states: str, **members: object) -> Machine:
    machine = declare(list(states) or None, **members)  # type: ignore[arg-type]
    assert isinstance(machine, Machine)
    return machine


def moved(record: HandoffRecord, wish: Wish, now: int = T0) -> HandoffRecord:
    outcome = move(record, wish, now)
    assert isinstance(outcome, Moved), outcome
    return outcome.record


def accept(**changes: object) -> Wish:
    members: dict[str, object] = {"by": "receiver", "expected": "offered", "to": "accepted"}
    return Wish(**(members | changes))  # type: ignore[arg-type]


def test_a_new_handoff_stands_in_the_start_state_at_version_1():
    record = create(offer(ttl_seconds=60), T0)
    assert (record.version, record.state, record.is_ended) == (1, "offered", False)
    assert record.expires_at == T0 + 60 * SECOND
    first = record.history[0]
    assert (first.state, first.previous, first.by, first.at, first.note) == ("offered", None, "owner", T0, "look")


def test_h1_a_move_adds_one_entry_and_touches_no_other():
    record = create(offer(), T0)
    outcome = move(record, accept(note="mine"), T0 + 5)
    assert isinstance(outcome, Moved)
    assert (outcome.version, outcome.repeated, outcome.is_ended) == (2, False, False)
    assert outcome.record.history[:1] == record.history
    entry = outcome.entry
    assert (entry.state, entry.previous, entry.by, entry.at, entry.note) == (
        "accepted", "offered", "receiver", T0 + 5, "mine",
    )  # fmt: skip


def test_h2_a_state_may_be_skipped_where_the_machine_says_so():
    assert moved(create(offer(), T0), accept(to="done")).is_ended


def test_h3_the_second_of_two_moves_out_of_one_state_is_refused():
    record = moved(create(offer(), T0), accept())
    assert move(record, accept(to="working"), T0) == StateMismatch(record, "receiver", "offered")


def test_h3_from_must_be_exact_even_where_the_arrow_exists():
    record = create(offer(), T0)
    assert isinstance(move(record, accept(expected="accepted", to="working"), T0), StateMismatch)
    assert isinstance(move(record, accept(expected="nonsense", to="working"), T0), StateMismatch)


def test_h4_nothing_leaves_a_final_state():
    record = moved(create(offer(), T0), accept(to="failed"))
    outcome = move(record, accept(expected="failed", to="returned"), T0)
    assert outcome == TransitionNotAllowed(record, "receiver", "returned")
    assert record.allowed("owner") == record.allowed("receiver") == record.allowed("operator") == ()


def test_a_move_backwards_or_in_place_is_no_transition():
    record = moved(create(offer(), T0), accept())
    for to in ("offered", "accepted"):
        assert isinstance(move(record, accept(expected="accepted", to=to), T0), TransitionNotAllowed)


def test_h5_the_same_wish_is_answered_from_its_entry_after_the_handoff_moved_on_and_ended():
    first = move(create(offer(), T0), accept(nonce="n", note="mine"), T0 + 1)
    assert isinstance(first, Moved)
    later = moved(first.record, Wish("owner", "accepted", "done"), T0 + 2)
    again = move(later, accept(nonce="n", note="mine"), T0 + 3)
    assert isinstance(again, Moved)
    assert again == replace(first, record=later, repeated=True)
    assert again.entry == first.entry
    assert not again.is_ended
    assert again.record.is_ended


@pytest.mark.parametrize("change", [{"to": "working"}, {"expected": "accepted"}, {"note": "x"}, {"note": None}])
def test_h5_the_nonce_with_anything_else_different_is_a_conflict(change):
    record = moved(create(offer(), T0), accept(nonce="n", note="mine"))
    wish = accept(**({"nonce": "n", "note": "mine"} | change))
    assert move(record, wish, T0) == NonceConflict(record, "receiver")


def test_h5_each_token_has_nonces_of_its_own_and_so_has_each_operator():
    record = moved(create(offer(), T0), accept(nonce="n"))
    record = moved(record, Wish("owner", "accepted", "working", nonce="n"))
    record = moved(record, Wish("operator", "working", "done", nonce="n", actor="ann"))
    repeated = move(record, Wish("operator", "working", "done", nonce="n", actor="ann"), T0)
    assert isinstance(repeated, Moved)
    assert repeated.repeated
    assert isinstance(move(record, Wish("operator", "working", "done", nonce="n", actor="bob"), T0), StateMismatch)


def test_a_move_without_a_nonce_is_never_taken_for_a_repeat():
    record = moved(create(offer(note=None), T0), accept())
    assert isinstance(move(record, accept(), T0), StateMismatch)


def test_h6_a_refused_wish_leaves_its_nonce_free():
    record = moved(create(offer(), T0), accept())
    assert isinstance(move(record, accept(to="working", nonce="n"), T0), StateMismatch)
    assert moved(record, accept(expected="accepted", to="working", nonce="n")).version == 3


@pytest.mark.parametrize(("after", "refused"), [(-1, False), (0, True), (1, True)])
def test_h7_the_end_is_decided_to_the_microsecond(after, refused):
    record = create(offer(ttl_seconds=60), T0)
    assert record.is_expired(record.expires_at + after) == refused
    assert isinstance(move(record, accept(), record.expires_at + after), Expired) == refused


def test_h7_reading_ends_at_the_same_microsecond():
    record = create(offer(ttl_seconds=60), T0)
    assert look(record, "owner", record.expires_at - 1) == Seen(record, "owner", 1)
    assert look(record, "owner", record.expires_at) == Expired(record)


def test_h7_an_expired_handoff_replays_nothing():
    record = moved(create(offer(), T0), accept(nonce="n"))
    assert move(record, accept(nonce="n"), record.expires_at) == Expired(record)


def test_h8_a_permission_binds_the_tokens_and_the_rule_shows_in_allowed():
    machine = machine_of("a", "b", "c", permissions={"b": "receiver", "c": "owner"})
    record = create(offer(machine=machine), T0)
    assert record.allowed("owner") == ("c",)
    assert record.allowed("receiver") == ("b",)
    assert move(record, Wish("owner", "a", "b"), T0) == NotPermitted(record, "owner", "b")
    assert move(record, Wish("receiver", "a", "c"), T0) == NotPermitted(record, "receiver", "c")
    assert moved(record, Wish("receiver", "a", "b")).state == "b"


def test_h8_an_operator_holds_no_token_and_may_follow_every_arrow_by_name():
    machine = machine_of("a", "b", "c", permissions={"b": "receiver", "c": "owner"})
    record = create(offer(machine=machine), T0)
    assert record.allowed("operator") == ("b", "c")
    entry = moved(record, Wish("operator", "a", "b", actor="ann")).history[-1]
    assert (entry.by, entry.actor) == ("operator", "ann")


def test_h9_time_never_runs_backwards_in_a_history():
    record = moved(create(offer(), T0), accept(), T0 - SECOND)
    assert record.history[-1].at == T0


def test_refusals_come_in_the_order_nonce_unknown_mismatch_transition_permission():
    machine = machine_of("a", "b", "c", "d", transitions={"a": ["b"]}, permissions={"d": "owner"})
    record = moved(create(offer(machine=machine), T0), Wish("receiver", "a", "b", nonce="n"))
    everything = Wish("receiver", "a", "x", nonce="n")
    assert isinstance(move(record, everything, T0), NonceConflict)
    assert isinstance(move(record, replace(everything, nonce=None), T0), UnknownState)
    assert isinstance(move(record, Wish("receiver", "c", "a"), T0), StateMismatch)
    assert isinstance(move(record, Wish("receiver", "b", "a"), T0), TransitionNotAllowed)
    assert isinstance(move(record, Wish("receiver", "b", "d"), T0), NotPermitted)
    machine = machine_of("a", "b", "c", transitions={"a": ["b"]}, permissions={"c": "owner"})
    forbidden = create(offer(machine=machine), T0)
    assert isinstance(move(forbidden, Wish("receiver", "a", "c"), T0), TransitionNotAllowed)


def test_the_same_offer_is_recognised_whatever_identifier_was_minted_for_it():
    record = create(offer(), T0)
    assert repeat(record, offer(handoff_id="1" * 32), T0 + SECOND) == Created(record, 86_399 * SECOND, repeated=True)


def test_an_offer_that_spells_out_the_defaults_is_the_same():
    spelled = declare(["offered", "accepted", "working", "done", "failed", "returned"], ["done", "failed", "returned"])
    record = create(offer(), T0)
    assert repeat(record, offer(machine=spelled), T0) == Created(record, 86_400 * SECOND, repeated=True)


@pytest.mark.parametrize(
    "change",
    [
        {"payload": b'{"a":1.5}'},
        {"note": None},
        {"title": "t"},
        {"audience": "person"},
        {"ttl_seconds": 60},
        {"notify_url": "https://example.com"},
        {"receiver_hash": b"s" * 32},
        {"machine": machine_of("offered", "done")},
        {"machine": machine_of(permissions={"done": "owner"})},
    ],
)
def test_an_offer_with_any_other_content_is_a_conflict(change):
    assert repeat(create(offer(), T0), offer(**change), T0) == OfferConflict()


@pytest.mark.parametrize(("after", "remembered"), [(-1, True), (0, False)])
def test_an_offer_is_remembered_for_24_hours_though_the_handoff_lived_a_minute(after, remembered):
    record = create(offer(ttl_seconds=60), T0)
    outcome = repeat(record, offer(ttl_seconds=60), T0 + 86_400 * SECOND + after)
    assert outcome == (Created(record, 0, repeated=True) if remembered else None)


def test_a_nonce_that_was_never_used_is_free():
    assert repeat(None, offer(), T0) is None


def test_a_waiting_caller_is_told_of_every_version_that_it_does_not_know():
    record = create(offer(), T0)
    assert news(record, frozenset([1])) is None
    assert news(record, frozenset()) == "changed"
    assert news(record, frozenset([7])) == "changed"
    assert news(moved(record, accept()), frozenset([1])) == "changed"


def test_an_ended_handoff_keeps_nobody_waiting():
    record = moved(create(offer(), T0), accept(to="done"))
    assert news(record, frozenset([1])) == news(record, frozenset([2])) == "ended"
