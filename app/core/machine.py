"""A declared state machine: data that is checked once and then only read.

    states   s1 ──▶ s2 ──▶ … ──▶ sn      2 to 12 names; the first is the start
    arrows   only from a state to one declared later, so every walk is short and ends

Invariants of every `Machine` that `declare` returns, named by the tests that prove them:

M1  Every arrow points to a state declared later: a walk visits a state at most once and has at most 12 states.
M2  A final state has no way out; every other state has at least one. So a walk can stop only where it ends.
M3  Every state is reachable from the start: nobody waits for a state that cannot come.
M4  `transitions` is the effective map: it has every state, final ones with an empty list, and no default is left
    to whoever reads it.
M5  A permission names a declared state other than the start, which nobody moves into.

A refused declaration is a value that names the member at fault and, where there is one, the state.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Who = Literal["owner", "receiver", "any"]

LEAST_STATES = 2
MOST_STATES = 12
RESERVED_NAMES = ("wait", "stream")
DEFAULT_STATES = ("offered", "accepted", "working", "done", "failed", "returned")
DEFAULT_FINAL = ("done", "failed", "returned")

_NAME = re.compile(r"[a-z][a-z0-9_]{0,31}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Machine:
    """States in their declared order, the final ones, the arrows, and who may follow them.

    `permissions` is None when none were declared; a state that it leaves out is open to both parties.
    """

    states: tuple[str, ...]
    final: tuple[str, ...]
    transitions: Mapping[str, tuple[str, ...]]
    permissions: Mapping[str, Who] | None = None

    @property
    def start(self) -> str:
        """The state of a new handoff."""
        return self.states[0]

    def is_final(self, state: str) -> bool:
        """Whether a handoff in this state has ended."""
        return state in self.final

    def who_may_enter(self, state: str) -> Who:
        """Which party may move into this state."""
        return "any" if self.permissions is None else self.permissions.get(state, "any")


@dataclass(frozen=True, slots=True)
class MalformedMachine:
    """The declaration is no machine: which member is wrong, and how, in a sentence."""

    field: Literal["states", "final", "transitions", "permissions"]
    error: str


def is_state_name(name: str) -> bool:
    """Whether a text has the form of a state's name: `[a-z][a-z0-9_]{0,31}`."""
    return _NAME.fullmatch(name) is not None


def declare(
    states: Sequence[str] | None = None,
    final: Sequence[str] | None = None,
    transitions: Mapping[str, Sequence[str]] | None = None,
    permissions: Mapping[str, Who] | None = None,
) -> Machine | MalformedMachine:
    """Check a declaration and fill in its defaults (handoff.md, Create).

    Without `states` it is the machine of six states; without `final` the last declared state (or, without
    `states`, the last three) is final; a state that `transitions` leaves out may move to every later one.
    """
    if states is None:
        states = DEFAULT_STATES
        final = DEFAULT_FINAL if final is None else final
    fault = _fault_in_states(states)
    if fault is None:
        final = states[-1:] if final is None else final
        fault = _fault_in_final(states, final)
    if fault is not None:
        return fault
    assert final is not None
    declared = {} if transitions is None else transitions
    fault = _fault_in_transitions(states, final, declared) or _fault_in_permissions(states, permissions)
    if fault is not None:
        return fault
    effective = {state: _effective(states, final, declared, state) for state in states}
    return _dead_end_or_orphan(states, final, effective) or Machine(
        tuple(states), tuple(final), effective, None if permissions is None else dict(permissions)
    )


def _fault_in_states(states: Sequence[str]) -> MalformedMachine | None:
    if not LEAST_STATES <= len(states) <= MOST_STATES:
        return MalformedMachine("states", f"A machine has {LEAST_STATES} to {MOST_STATES} states, not {len(states)}")
    for state in states:
        if not is_state_name(state):
            return MalformedMachine(
                "states", f"{_shown(state)} is not a state name: a-z first, then up to 31 of a-z, 0-9 and _"
            )
        if state in RESERVED_NAMES:
            return MalformedMachine("states", f"{_shown(state)} cannot be a state: a route has that name")
    twice = _first_repeated(states)
    return None if twice is None else MalformedMachine("states", f"The state {_shown(twice)} is declared twice")


def _fault_in_final(states: Sequence[str], final: Sequence[str]) -> MalformedMachine | None:
    if not final:
        return MalformedMachine("final", "At least one state must be final")
    for state in final:
        if state not in states:
            return MalformedMachine("final", f"The final state {_shown(state)} is not declared in states")
        if state == states[0]:
            return MalformedMachine("final", f"The start state {_shown(state)} cannot be final")
    twice = _first_repeated(final)
    return None if twice is None else MalformedMachine("final", f"The final state {_shown(twice)} is named twice")


def _fault_in_transitions(
    states: Sequence[str], final: Sequence[str], transitions: Mapping[str, Sequence[str]]
) -> MalformedMachine | None:
    for state, targets in transitions.items():
        error = _fault_in_arrows(states, final, state, targets)
        if error is not None:
            return MalformedMachine("transitions", error)
    return None


def _fault_in_arrows(states: Sequence[str], final: Sequence[str], state: str, targets: Sequence[str]) -> str | None:
    if state not in states:
        return f"transitions names the state {_shown(state)}, which is not declared in states"
    if state in final and targets:
        return f"The final state {_shown(state)} cannot have transitions"
    if state not in final and not targets:
        return f"The state {_shown(state)} is not final, so it needs at least one transition"
    for target in targets:
        if target not in states:
            return f"The transition from {_shown(state)} to {_shown(target)} leads to a state that is not declared"
        if states.index(target) <= states.index(state):
            return f"The transition from {_shown(state)} to {_shown(target)} does not lead forward"
    twice = _first_repeated(targets)
    return None if twice is None else f"The transition from {_shown(state)} to {_shown(twice)} is named twice"


def _fault_in_permissions(states: Sequence[str], permissions: Mapping[str, Who] | None) -> MalformedMachine | None:
    for state in permissions or {}:
        if state not in states:
            return MalformedMachine("permissions", f"permissions names the undeclared state {_shown(state)}")
        if state == states[0]:
            return MalformedMachine("permissions", f"Nobody moves into the start state {_shown(state)}")
    return None


def _effective(
    states: Sequence[str], final: Sequence[str], transitions: Mapping[str, Sequence[str]], state: str
) -> tuple[str, ...]:
    if state in final:
        return ()
    if state in transitions:
        return tuple(transitions[state])
    return tuple(states[states.index(state) + 1 :])


def _dead_end_or_orphan(
    states: Sequence[str], final: Sequence[str], transitions: Mapping[str, tuple[str, ...]]
) -> MalformedMachine | None:
    reached = {states[0]}
    for state in states:  # arrows lead forward (M1), so one pass in declared order finds everything
        if not transitions[state] and state not in final:
            return MalformedMachine("final", f"The last state {_shown(state)} has nowhere to go, so it must be final")
        if state not in reached:
            return MalformedMachine("transitions", f"The state {_shown(state)} cannot be reached from {states[0]!r}")
        reached.update(transitions[state])
    return None


def _first_repeated(names: Sequence[str]) -> str | None:
    return next((name for index, name in enumerate(names) if name in names[:index]), None)


def _shown(name: str) -> str:
    """A caller's text in a sentence: quoted, escaped and cut short."""
    return ascii(name[:40])
