"""Ways to damage a history, each of which must be noticed, and the rules of which one must notice it."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

from tests.faults.history import FOREVER, Op
from tests.faults.honest import HANDOFF, LEASE, STATES

Damage = Callable[[list[Op]], list[Op] | None]
"""Damages a history; None where this one offers no place for it."""


def _where(ops: list[Op], **wanted: str) -> list[Op]:
    return [op for op in ops if all(getattr(op, name) == value for name, value in wanted.items())]


def _grants(ops: list[Op]) -> list[Op]:
    return sorted(_where(ops, verb="take", outcome="granted"), key=lambda op: int(op.told["fence"]))


def _instead(ops: list[Op], old: Op, new: Op) -> list[Op]:
    return [new if op is old else op for op in ops]


def _telling(op: Op, **told: Any) -> Op:
    return replace(op, told={**op.told, **told})


def _between(ops: list[Op]) -> tuple[Op, Op] | None:
    """Two grants of which the first was told of before the second was asked for."""
    grants = _grants(ops)
    return next(((a, b) for a, b in pairwise(grants) if a.ended < b.began), None)


def swap_fences(ops: list[Op]) -> list[Op] | None:
    pair = _between(ops)
    if pair is None:
        return None
    low, high = (op.told["fence"] for op in pair)
    swapped = {low: high, high: low}
    return [_telling(op, fence=swapped[op.told["fence"]]) if op.told.get("fence") in swapped else op for op in ops]


def same_fence_twice(ops: list[Op]) -> list[Op] | None:
    pair = _between(ops)
    return None if pair is None else _instead(ops, pair[1], _telling(pair[1], fence=pair[0].told["fence"]))


def huge_fence(ops: list[Op]) -> list[Op] | None:
    grants = _grants(ops)
    return _instead(ops, grants[-1], _telling(grants[-1], fence=2**53)) if grants else None


def second_owner(ops: list[Op]) -> list[Op] | None:
    grants = _grants(ops)
    if not grants:
        return None
    first = grants[-1]
    told = {**first.told, "fence": first.told["fence"] + 1, "attempt": first.told["attempt"] + 1}
    return [*ops, replace(first, who="thief", began=first.began, ended=first.began + 0.01, told=told)]


def lost_while_owned(ops: list[Op]) -> list[Op] | None:
    mine = {op.who for op in ops if op.verb != "take"}
    grant = next((op for op in _grants(ops) if op.who not in mine), None)
    if grant is None:
        return None
    return [*ops, replace(grant, verb="extend", began=grant.ended + 0.001, ended=grant.ended + 0.01, outcome="lost")]


def extended_after_lapse(ops: list[Op]) -> list[Op] | None:
    mine = {op.who for op in ops if op.verb != "take"}
    grant = next((op for op in _grants(ops) if op.who not in mine), None)
    if grant is None:
        return None
    late = grant.ended + grant.told["ttl"] + 0.1
    return [*ops, replace(grant, verb="extend", began=late, ended=late + 0.1)]


def finished_after_a_higher_one(ops: list[Op]) -> list[Op] | None:
    pair = _between(ops)
    if pair is None or any(op.outcome == "finished" for op in ops):
        return None
    at = pair[1].ended + 0.001
    told = {"result": pair[0].asked["result"], "fence": pair[0].told["fence"]}
    return [*ops, replace(pair[0], verb="finish", outcome="finished", began=at, ended=at + 0.1, told=told)]


def granted_after_a_result(ops: list[Op]) -> list[Op] | None:
    done = next(iter(_where(ops, verb="finish", outcome="finished")), None)
    if done is None:
        return None
    told = {"fence": 10_000, "ttl": 1, "attempt": 99}
    return [*ops, replace(done, verb="take", who="again", outcome="granted", began=99.0, ended=99.1, told=told)]


def flipped_result(ops: list[Op]) -> list[Op] | None:
    told = _where(ops, outcome="finished")
    return _instead(ops, told[-1], _telling(told[-1], result="flipped")) if told else None


def result_of_another(ops: list[Op]) -> list[Op] | None:
    done = _where(ops, verb="take", outcome="finished")
    if not done:
        return None
    other = Op(LEASE, "finish", "late", 0.0, FOREVER, "unknown", {"result": "of another"})
    return [other, *_instead(ops, done[-1], _telling(done[-1], result="of another"))]


def blocked_for_ever(ops: list[Op]) -> list[Op] | None:
    grants = _grants(ops)
    if not grants or any(op.is_unknown and op.who == grants[-1].who for op in ops):
        return None
    fence = grants[-1].told["fence"]
    told = {"fence": fence, "left": 1}
    return [*ops, replace(grants[-1], who="late", outcome="blocked", began=999.0, ended=999.1, told=told)]


def blocked_by_nobody(ops: list[Op]) -> list[Op] | None:
    if not _grants(ops):
        return None
    late, hidden = _grants(ops)[0], len(_where(ops, verb="take", outcome="unknown")) + 1
    fences = [{"fence": 5_000 + number, "left": 1} for number in range(hidden)]
    return ops + [replace(late, who=f"late{told['fence']}", outcome="blocked", told=told) for told in fences]


def blocked_without_an_end(ops: list[Op]) -> list[Op] | None:
    blocked = _where(ops, outcome="blocked")
    return _instead(ops, blocked[0], _telling(blocked[0], left=0)) if blocked else None


def other_binding_granted(ops: list[Op]) -> list[Op] | None:
    grants = _grants(ops)
    if len(grants) < 2 or any(op.outcome == "finished" for op in ops):
        return None
    told = {"fence": 9_000, "ttl": 1, "attempt": 99}
    asked = {**grants[0].asked, "binding": "foreign"}
    return [*ops, replace(grants[0], who="foreign", asked=asked, began=999.0, ended=999.1, told=told)]


def attempt_repeated(ops: list[Op]) -> list[Op] | None:
    pair = _between(ops)
    return None if pair is None else _instead(ops, pair[1], _telling(pair[1], attempt=pair[0].told["attempt"]))


def release_forgotten(ops: list[Op]) -> list[Op] | None:
    for op in _where(ops, verb="give_up", outcome="given_up"):
        grant = next((grant for grant in _grants(ops) if grant.who == op.who), None)
        later = [] if grant is None else [g for g in _grants(ops) if g.told["fence"] > grant.told["fence"]]
        extended = any(one.who == op.who and one.verb == "extend" for one in ops)
        if grant and later and not extended and later[0].ended < grant.began + grant.told["ttl"] - 0.1:
            return [one for one in ops if one is not op]
    return None


LEASE_DAMAGES: dict[Damage, set[str]] = {
    swap_fences: {"F1", "F2"},
    same_fence_twice: {"F1"},
    huge_fence: {"F3"},
    second_owner: {"M1"},
    release_forgotten: {"M1"},
    lost_while_owned: {"O2"},
    extended_after_lapse: {"O1", "R1"},
    finished_after_a_higher_one: {"O1"},
    granted_after_a_result: {"R1"},
    flipped_result: {"R2"},
    result_of_another: {"R2"},
    blocked_for_ever: {"M2"},
    blocked_by_nobody: {"M2"},
    blocked_without_an_end: {"M3"},
    other_binding_granted: {"R4"},
    attempt_repeated: {"N1"},
}


def _moves(ops: list[Op]) -> list[Op]:
    return sorted(_where(ops, verb="move", outcome="moved"), key=lambda op: int(op.told["version"]))


def _last_look(ops: list[Op]) -> Op:
    return max((op for op in ops if "history" in op.told), key=lambda op: op.ended)


def two_moves_one_version(ops: list[Op]) -> list[Op] | None:
    moves = _moves(ops)
    return [*ops, replace(moves[0], who="thief")] if moves else None


def one_nonce_two_versions(ops: list[Op]) -> list[Op] | None:
    moves = _moves(ops)
    return [*ops, _telling(moves[0], version=moves[0].told["version"] + 1)] if moves else None


def a_move_forgotten(ops: list[Op]) -> list[Op] | None:
    moves, look = _moves(ops), _last_look(ops)
    if not moves or look.began <= moves[-1].ended:
        return None
    cut = len(look.told["history"]) - 1
    kept = [line for line in look.told["history"] if line["note"] != moves[-1].who]
    if len(kept) != cut:
        return None
    looks = [op for op in ops if not any(line["note"] == moves[-1].who for line in op.told.get("history", []))]
    return [*looks, _telling(look, version=cut, state=kept[-1]["state"], history=kept)]


def an_old_look(ops: list[Op]) -> list[Op] | None:
    moves = _moves(ops)
    if not moves:
        return None
    late = max(op.ended for op in ops if not op.is_unknown) + 1
    return [*ops, replace(ops[0], verb="read", who="late", began=late, ended=late + 0.1)]


def a_gap_in_the_history(ops: list[Op]) -> list[Op] | None:
    look = max((op for op in ops if "history" in op.told), key=lambda op: len(op.told["history"]))
    lines = look.told["history"]
    if len(lines) < 3:
        return None
    return _instead(ops, look, _telling(look, history=[lines[0], *lines[2:]], version=len(lines) - 1))


def a_refused_move_that_happened(ops: list[Op]) -> list[Op] | None:
    moves = _moves(ops)
    if not moves or not any(line["note"] == moves[0].who for line in _last_look(ops).told["history"]):
        return None
    return _instead(ops, moves[0], replace(moves[0], outcome="refused", told={"version": 1, "state": "x", "code": "y"}))


def refused_for_no_reason(ops: list[Op]) -> list[Op] | None:
    refused = _where(ops, verb="move", outcome="refused")
    return _instead(ops, refused[0], _telling(refused[0], state=refused[0].asked["from"])) if refused else None


def a_wait_sent_away(ops: list[Op]) -> list[Op] | None:
    moves = _moves(ops)
    if not moves:
        return None
    late = moves[0].ended + 0.1
    told = {**ops[0].told, "changed": False}
    return [*ops, Op(HANDOFF, "wait", "w", late, late + 0.1, "seen", {"known": 1}, told)]


def a_wait_woken_late(ops: list[Op]) -> list[Op] | None:
    moves = _moves(ops)
    look = _last_look(ops)
    if not moves or moves[-1].ended > look.began:
        return None
    told = {**look.told, "changed": True}
    began = moves[-1].began - 0.001
    return [*ops, Op(HANDOFF, "wait", "w", began, moves[-1].ended + 9, "seen", {"known": 0}, told)]


def on_after_the_end(ops: list[Op]) -> list[Op] | None:
    last = [op for op in _moves(ops) if op.asked["to"] == STATES[-1]]
    if not last:
        return None
    asked = {"from": STATES[-1], "to": "beyond"}
    told = {"version": last[0].told["version"] + 1, "state": "beyond", "previous": STATES[-1]}
    return [*ops, replace(last[0], who="on", began=99.0, ended=99.1, asked=asked, told=told)]


def versions_swapped(ops: list[Op]) -> list[Op] | None:
    moves = _moves(ops)
    pair = next(((a, b) for a, b in pairwise(moves) if a.ended < b.began), None)
    if pair is None:
        return None
    first, second = pair
    swapped = _instead(ops, first, _telling(first, version=second.told["version"]))
    return _instead(swapped, second, _telling(second, version=first.told["version"]))


HANDOFF_DAMAGES: dict[Damage, set[str]] = {
    two_moves_one_version: {"V1"},
    one_nonce_two_versions: {"V4"},
    a_move_forgotten: {"V6", "V9"},
    an_old_look: {"V6"},
    a_gap_in_the_history: {"V2"},
    a_refused_move_that_happened: {"V5"},
    refused_for_no_reason: {"V5"},
    a_wait_sent_away: {"V7"},
    a_wait_woken_late: {"V7"},
    on_after_the_end: {"V8"},
    versions_swapped: {"V3"},
}
DAMAGES = {"lease": LEASE_DAMAGES, "handoff": HANDOFF_DAMAGES}
