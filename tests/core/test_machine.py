"""The invariants M1 to M5 of `app.core.machine`, and every refusal of a declaration at its boundary."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.machine import DEFAULT_FINAL, DEFAULT_STATES, Machine, MalformedMachine, declare, is_state_name

TWELVE = [f"s{number}" for number in range(12)]


def declared(**members: object) -> Machine:
    machine = declare(**members)  # type: ignore[arg-type]
    assert isinstance(machine, Machine), machine
    return machine


def refused(**members: object) -> MalformedMachine:
    machine = declare(**members)  # type: ignore[arg-type]
    assert isinstance(machine, MalformedMachine), machine
    return machine


def test_without_a_declaration_it_is_the_machine_of_six_states():
    machine = declared()
    assert machine.states == DEFAULT_STATES == ("offered", "accepted", "working", "done", "failed", "returned")
    assert machine.final == DEFAULT_FINAL == ("done", "failed", "returned")
    assert machine.transitions == {
        "offered": ("accepted", "working", "done", "failed", "returned"),
        "accepted": ("working", "done", "failed", "returned"),
        "working": ("done", "failed", "returned"),
        "done": (),
        "failed": (),
        "returned": (),
    }
    assert machine.permissions is None


def test_without_final_the_last_declared_state_is_final():
    assert declared(states=["a", "b", "c"]).final == ("c",)


def test_final_may_be_declared_for_the_machine_of_six_states():
    machine = declared(final=["failed", "returned"])
    assert machine.transitions["done"] == ("failed", "returned")


@pytest.mark.parametrize("count", [2, 12])
def test_two_to_twelve_states_are_accepted(count):
    assert len(declared(states=TWELVE[:count]).states) == count


@pytest.mark.parametrize("states", [[], ["a"], [*TWELVE, "s12"]])
def test_fewer_than_two_and_more_than_twelve_states_are_refused(states):
    assert refused(states=states).field == "states"


@pytest.mark.parametrize("name", ["a", "a" * 32, "a_1", "waits", "streams", "wait_", "z9"])
def test_these_names_are_states(name):
    assert is_state_name(name)
    assert declared(states=["start", name]).states == ("start", name)


@pytest.mark.parametrize(
    "name", ["", "a" * 33, "A", "1a", "_a", "a-b", "a b", "a\n", "é", "aé", "a\u0660", "a\x00", "../a"]
)
def test_these_names_are_not(name):
    assert not is_state_name(name)
    assert refused(states=["start", name]).field == "states"


@pytest.mark.parametrize("name", ["wait", "stream"])
def test_the_names_of_routes_are_no_states(name):
    assert refused(states=["start", name]) == MalformedMachine(
        "states", f"'{name}' cannot be a state: a route has that name"
    )


def test_a_state_declared_twice_is_named():
    assert refused(states=["a", "b", "a"]).error == "The state 'a' is declared twice"


@pytest.mark.parametrize(
    ("final", "error"),
    [
        ([], "At least one state must be final"),
        (["x"], "The final state 'x' is not declared in states"),
        (["a", "c"], "The start state 'a' cannot be final"),
        (["c", "c"], "The final state 'c' is named twice"),
        (["b"], "The last state 'c' has nowhere to go, so it must be final"),
    ],
)
def test_a_final_list_that_fits_no_machine_is_refused(final, error):
    assert refused(states=["a", "b", "c"], final=final) == MalformedMachine("final", error)


@pytest.mark.parametrize(
    ("transitions", "error"),
    [
        ({"x": ["b"]}, "transitions names the state 'x', which is not declared in states"),
        ({"d": ["c"]}, "The final state 'd' cannot have transitions"),
        ({"a": []}, "The state 'a' is not final, so it needs at least one transition"),
        ({"a": ["x"]}, "The transition from 'a' to 'x' leads to a state that is not declared"),
        ({"a": ["a"]}, "The transition from 'a' to 'a' does not lead forward"),
        ({"b": ["c", "a"]}, "The transition from 'b' to 'a' does not lead forward"),
        ({"a": ["b", "b"]}, "The transition from 'a' to 'b' is named twice"),
        ({"a": ["c", "d"]}, "The state 'b' cannot be reached from 'a'"),
        ({"a": ["b"], "b": ["d"]}, "The state 'c' cannot be reached from 'a'"),
    ],
)
def test_transitions_that_fit_no_machine_are_refused(transitions, error):
    assert refused(states=["a", "b", "c", "d"], transitions=transitions) == MalformedMachine("transitions", error)


def test_a_final_state_that_nobody_can_reach_is_named():
    found = refused(states=["a", "b", "c"], final=["b", "c"], transitions={"a": ["c"]})
    assert found.error == "The state 'b' cannot be reached from 'a'"


def test_the_effective_map_keeps_what_was_declared_and_fills_in_the_rest():
    machine = declared(states=["a", "b", "c", "d"], transitions={"a": ["c", "b"], "d": []})
    assert machine.transitions == {"a": ("c", "b"), "b": ("c", "d"), "c": ("d",), "d": ()}


def test_permissions_may_name_every_state_but_the_start():
    machine = declared(states=["a", "b", "c"], permissions={"b": "owner", "c": "any"})
    assert [machine.who_may_enter(state) for state in ("b", "c")] == ["owner", "any"]
    assert refused(states=["a", "b"], permissions={"a": "any"}) == MalformedMachine(
        "permissions", "Nobody moves into the start state 'a'"
    )
    assert refused(states=["a", "b"], permissions={"x": "any"}).field == "permissions"


def test_a_hostile_name_comes_back_quoted_and_short():
    assert refused(states=["a", "\u202e" + "x" * 5000]).error.startswith("'\\u202exxx")
    assert len(refused(states=["a", "\u202e" * 5000]).error) < 400


NAMES = st.sampled_from(["a", "b", "c", "d", "e", "wait", "A"])


@given(
    states=st.none() | st.lists(NAMES, max_size=6),
    final=st.none() | st.lists(NAMES, max_size=4),
    transitions=st.none() | st.dictionaries(NAMES, st.lists(NAMES, max_size=4), max_size=4),
    permissions=st.none() | st.dictionaries(NAMES, st.sampled_from(["owner", "receiver", "any"]), max_size=3),
)
def test_whatever_is_declared_a_machine_holds_m1_to_m5(states, final, transitions, permissions):
    machine = declare(states, final, transitions, permissions)
    if isinstance(machine, MalformedMachine):
        assert machine.error
        return
    order = machine.states
    reached = {machine.start}
    assert list(machine.transitions) == list(order)  # M4
    for state in order:
        targets = machine.transitions[state]
        assert all(order.index(target) > order.index(state) for target in targets)  # M1
        assert machine.is_final(state) == (not targets)  # M2
        reached.update(targets)
    assert reached == set(order)  # M3
    assert set(machine.permissions or {}) <= set(order[1:])  # M5
