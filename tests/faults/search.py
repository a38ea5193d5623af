"""The exhaustive checker, a second opinion: is there any order in which these calls make sense, one after the other?

Wing and Gong's search with Lowe's memory of what was tried: take any call that began before every other untaken one
ended, apply it to a small model, go on; step back where nothing fits. Exponential, so only for histories of a few
calls that overlap. It knows nothing of the fast checker's rules, and the fast checker nothing of it.

Time is in it as calls too. An ownership's lapse is a call that the clock makes: it can take place from its TTL after
the grant began, must have by its TTL after the grant was told, and does nothing if the ownership is over.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Protocol

from tests.faults.history import FOREVER, Op
from tests.faults.ownership import SLOP_SECONDS


class State(Protocol):
    """What a model remembers. Hashable, and never changed in place."""

    def after(self, op: Op) -> "Iterable[State]":
        """The states that this call can have led to with the answer that it got; none if it cannot have."""
        ...


def explains(ops: list[Op], start: State) -> bool:
    """Whether some order of the calls, each within its own interval, leads from `start` through all that was told."""
    ops = sorted(ops, key=lambda op: op.began)
    tried: set[tuple[frozenset[int], State]] = set()
    paths: list[tuple[frozenset[int], State]] = [(frozenset(), start)]
    while paths:
        done, state = paths.pop()
        if (done, state) in tried:
            continue
        tried.add((done, state))
        left = [index for index in range(len(ops)) if index not in done]
        if all(ops[index].ended == FOREVER for index in left):
            return True
        soonest = min(ops[index].ended for index in left)
        for index in left:
            if ops[index].began > soonest:
                break
            paths.extend((done | {index}, after) for after in state.after(ops[index]))
    return False


@dataclass(frozen=True)
class Owned:
    """The model of a lease or a claim: who owns it by which grant, the last fence, the result, the binding."""

    owner: str | None = None
    grant: str | None = None
    fence: int = 0
    result: str | None = None
    spent: tuple[str, str] | None = None
    binding: str | None = None
    is_bound: bool = False
    happened: frozenset[str] = frozenset()

    def after(self, op: Op) -> "Iterable[Owned]":
        """As the protocol says."""
        if op.verb == "lapse":
            return self._lapsed(op)
        step = {"take": self._take, "extend": self._extend, "give_up": self._give_up, "finish": self._finish}[op.verb]
        return step(op)

    def _lapsed(self, op: Op) -> "Iterable[Owned]":
        if op.asked["grant"] not in self.happened:
            return [self] if op.asked["is_unknown"] else []
        is_over = self.grant == op.asked["grant"]
        return [replace(self, owner=None, grant=None) if is_over else self]

    def _granted(self, op: Op, fence: int) -> "Owned":
        happened = self.happened | {name_of(op)}
        return replace(
            self,
            owner=op.who,
            grant=name_of(op),
            fence=fence,
            binding=op.asked.get("binding"),
            is_bound=True,
            happened=happened,
        )

    def _take(self, op: Op) -> "Iterable[Owned]":
        binds = not self.is_bound or self.binding == op.asked.get("binding")
        is_free = self.owner is None and self.result is None and binds
        if op.is_unknown:
            return [self._granted(op, self.fence)] if is_free else [self]
        if op.outcome == "conflict":
            return [] if binds else [self]
        if not binds:
            return []
        if op.outcome == "finished":
            return [self] if self.result is not None and self.result == op.told["result"] else []
        if op.outcome == "blocked":
            return [self] if self.owner is not None else []
        if op.outcome == "granted" and is_free and op.told["fence"] > self.fence:
            return [self._granted(op, op.told["fence"])]
        return []

    def _extend(self, op: Op) -> "Iterable[Owned]":
        is_mine = self.owner == op.who
        if op.is_unknown or op.outcome == "granted":
            extended = replace(self, grant=name_of(op), happened=self.happened | {name_of(op)})
            return [extended] if is_mine else ([self] if op.is_unknown else [])
        return [] if is_mine else [self]

    def _give_up(self, op: Op) -> "Iterable[Owned]":
        is_mine = self.owner == op.who
        if op.outcome == "lost":
            return [] if is_mine else [self]
        if is_mine:
            return [replace(self, owner=None, grant=None, spent=(op.who, "given up"))]
        return [self] if op.is_unknown else []

    def _finish(self, op: Op) -> "Iterable[Owned]":
        is_mine = self.owner == op.who
        if op.outcome == "lost":
            return [] if is_mine else [self]
        if is_mine:
            return [replace(self, owner=None, grant=None, result=op.asked["result"])]
        return [self] if op.is_unknown else []


def name_of(op: Op) -> str:
    """What tells one call from all others of its subject."""
    return f"{op.verb} {op.who} {op.began}"


def with_lapses(ops: list[Op]) -> list[Op]:
    """The calls, and the lapse of everything that any of them may have been granted."""
    lapses = []
    for op in ops:
        if op.verb in ("take", "extend") and op.outcome in ("granted", "unknown"):
            ttl = op.told.get("ttl", op.asked["ttl"])
            asked = {"grant": name_of(op), "is_unknown": op.is_unknown}
            soonest, latest = op.began + ttl - SLOP_SECONDS, op.ended + ttl + SLOP_SECONDS
            lapses.append(Op(op.subject, "lapse", op.who, soonest, latest, "lapsed", asked))
    return [*ops, *lapses]


@dataclass(frozen=True)
class Passed:
    """The model of a handoff: the moves that made its history, as (nonce, state)."""

    moves: tuple[tuple[str, str], ...] = ()

    def after(self, op: Op) -> "Iterable[Passed]":
        """As the protocol says."""
        if op.verb == "create":
            return [Passed((("", op.told["state"]),))]
        if not self.moves:
            return []
        if op.verb != "move":
            return [self] if op.is_unknown or op.told["version"] == len(self.moves) else []
        nonces = [nonce for nonce, _ in self.moves]
        if op.who in nonces:
            right = op.is_unknown or (op.outcome == "moved" and op.told["version"] == nonces.index(op.who) + 1)
            return [self] if right else []
        fits = self.moves[-1][1] == op.asked["from"]
        if op.outcome == "refused":
            return [] if fits or op.told["version"] != len(self.moves) else [self]
        moved = Passed((*self.moves, (op.who, op.asked["to"])))
        if op.is_unknown:
            return [moved] if fits else [self]
        return [moved] if fits and op.told["version"] == len(moved.moves) else []
