"""The rules of a handoff and of those who wait for it. Versions give the order, nonces say whose move it was.

Each move carries its nonce as its note, so the history that a reader is shown names every move that happened.

    V1  version and length of the history are one, and each version is one move
    V2  the history is a path: each line begins where the one before it ended
    V3  a move that was told of before another was asked for has the lower version, and each state is left once
    V4  the same nonce again is the same move
    V5  a refused move is in no history, and was refused for a reason that held
    V6  nobody is shown less than somebody was told before
    V7  a wait ends soon after the news, and is not sent away without the news that there was
    V8  a final state is the last
    V9  what was told of is in the history to the end, and the handoff is there for its whole life
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from tests.faults.history import FOREVER, LIFE_SECONDS, Fault, History, Op

LATE_SECONDS = 4.0
"""How late a wait may be woken on a busy machine before somebody calls it missed; a missed one takes the whole wait."""
Line = Mapping[str, Any]


class _Judge:
    def __init__(self, subject: str, ops: list[Op], history: History) -> None:
        self.subject = subject
        self.ops = ops
        self.history = history
        self.moves = sorted(
            (op for op in ops if op.verb == "move" and op.outcome == "moved"), key=lambda op: int(op.told["version"])
        )
        self.sights = [op for op in ops if "version" in op.told]
        self.longest: list[Line] = max((op.told["history"] for op in ops if "history" in op.told), key=len, default=[])

    def fault(self, rule: str, text: str) -> Fault:
        return Fault(rule, self.subject, text)

    def versions(self) -> Iterator[Fault]:
        by_version: dict[int, str] = {1: ""}
        by_nonce: dict[str, int] = {}
        for op in self.moves:
            version = op.told["version"]
            if by_version.setdefault(version, op.who) != op.who:
                yield self.fault("V1", f"two moves made version {version}")
            if by_nonce.setdefault(op.who, version) != version:
                yield self.fault("V4", f"nonce {op.who} made versions {by_nonce[op.who]} and {version}")
        left: dict[str, str] = {}
        for op in self.moves:
            if left.setdefault(op.asked["from"], op.who) != op.who:
                yield self.fault("V3", f"state {op.asked['from']} was left twice")
        newest_asked = -FOREVER
        for version, op in self._first_told():
            if op.ended < newest_asked:
                yield self.fault("V3", f"version {version} was told of before a lower one was asked for")
            newest_asked = max(newest_asked, self._asked_first(op))

    def _first_told(self) -> list[tuple[int, Op]]:
        first: dict[int, Op] = {}
        for op in self.moves:
            known = first.get(op.told["version"])
            if known is None or op.ended < known.ended:
                first[op.told["version"]] = op
        return sorted(first.items())

    def _asked_first(self, move: Op) -> float:
        return min(op.began for op in self.ops if op.verb == "move" and op.who == move.who)

    def paths(self) -> Iterator[Fault]:
        for op in self.sights:
            lines = op.told.get("history")
            if lines is None:
                continue
            if len(lines) != op.told["version"] or lines[-1]["state"] != op.told["state"]:
                yield self.fault("V1", f"version {op.told['version']} with a history of {len(lines)}")
            if any(later["from"] != earlier["state"] for earlier, later in pairwise(lines)):
                yield self.fault("V2", "the history has a gap")
            if len({line["state"] for line in lines}) != len(lines):
                yield self.fault("V2", "the history was twice in one state")
            if lines != self.longest[: len(lines)]:
                yield self.fault("V9", "two histories disagree about what happened")
        for op in self.moves:
            version = op.told["version"]
            if version > len(self.longest) or self.longest[version - 1]["note"] != op.who:
                known = version <= len(self.longest)
                if known or any(s.began > op.ended and "history" in s.told for s in self.sights):
                    yield self.fault("V9", f"the move with nonce {op.who} was told of and is not in the history")
        for op in self.moves:
            if op.told["state"] != op.asked["to"] or op.told["previous"] != op.asked["from"]:
                yield self.fault("V4", f"the move {op.asked['from']} to {op.asked['to']} was told as another one")

    def refusals(self) -> Iterator[Fault]:
        done = {line["note"] for line in self.longest[1:]}
        answered = {op.who for op in self.ops if op.verb == "move" and op.outcome in ("moved", "unknown")}
        for op in self.ops:
            if op.verb != "move" or op.outcome != "refused":
                continue
            if op.who in done and op.who not in answered:
                yield self.fault("V5", f"the refused move {op.who} is in the history")
            if op.told.get("code") == "state_mismatch" and op.told["state"] == op.asked["from"]:
                yield self.fault("V5", f"refused as not in {op.asked['from']}, where it was")

    def sightings(self) -> Iterator[Fault]:
        told = sorted(self.sights, key=lambda op: op.ended)
        instants = [op.ended for op in told]
        highest, so_far = [], 0
        for op in told:
            so_far = max(so_far, self._current(op))
            highest.append(so_far)
        for op in self.sights:
            before = bisect_left(instants, op.began)
            if before and self._current(op) < highest[before - 1]:
                yield self.fault("V6", f"{op.verb} showed {self._current(op)} after {highest[before - 1]}")
        asked = {op.who: op.began for op in reversed(self.ops) if op.verb == "move"}
        for op in self.sights:
            for line in op.told.get("history", [])[1:]:
                if line["note"] not in asked or asked[line["note"]] > op.ended:
                    yield self.fault("V5", f"a move that nobody had asked for: {line['note']}")

    @staticmethod
    def _current(op: Op) -> int:
        current: int = op.told.get("current", op.told["version"])
        return current

    def waits(self) -> Iterator[Fault]:
        news = self._first_told()
        for op in self.ops:
            if op.verb != "wait" or op.outcome != "seen":
                continue
            known = op.asked["known"]
            later = [move for version, move in news if version > known]
            heard = min((move.ended for move in later), default=FOREVER)
            if op.told["version"] <= known and heard < op.began:
                yield self.fault("V7", f"sent away with version {op.told['version']} though more was told before")
            due = max(heard, op.began) + LATE_SECONDS
            if op.ended > due and not self.history.is_stalled(min(heard, op.began), op.ended):
                yield self.fault("V7", f"a wait heard of it {op.ended - max(heard, op.began):.1f} s late")
            if op.told["changed"] != (op.told["version"] != known):
                yield self.fault("V7", f"changed={op.told['changed']} with version {op.told['version']}, known {known}")

    def life(self) -> Iterator[Fault]:
        born = self.ops[0].began
        for op in self.ops:
            if op.outcome == "gone" and self.history.at_most(born, op.ended) < LIFE_SECONDS - 1:
                yield self.fault("V9", f"{op.verb}: it is gone before its time")

    def endings(self) -> Iterator[Fault]:
        final = self.ops[0].asked.get("final", ())
        for op in self.sights:
            states = [line["state"] for line in op.told.get("history", [])]
            if any(state in final for state in states[:-1]):
                yield self.fault("V8", "it went on after a final state")
        for op in self.moves:
            if op.asked["from"] in final:
                yield self.fault("V8", f"a move out of {op.asked['from']}")


def faults(subject: str, ops: list[Op], history: History) -> list[Fault]:
    """Every rule that these calls of one handoff break. The first call is its creation."""
    judge = _Judge(subject, ops, history)
    rules = (judge.versions, judge.paths, judge.refusals, judge.sightings, judge.waits, judge.life, judge.endings)
    return [fault for rule in rules for fault in rule()]
