"""Histories that a right server would have left, made up from a seed.

A history is made by a server of a few lines, which decides in the order of the instants at which it acts; each caller
notes an interval around that instant, or that no answer came.
"""

import random
from dataclasses import dataclass
from typing import Any

from tests.faults.history import FOREVER, History, Op

LEASE, HANDOFF = "lease made up", "handoff made up"
STATES = ("offered", "accepted", "working", "done")
NOBODY = "nobody"


@dataclass
class _Key:
    """The whole server for one key."""

    owner: str = NOBODY
    ends: float = -1.0
    fence: int = 0
    attempt: int = 0
    result: str | None = None
    binding: str | None = None

    def decide(self, verb: str, who: str, asked: dict[str, Any], now: float) -> tuple[str, dict[str, Any]]:
        live = self.result is None and now < self.ends
        if verb == "take":
            return self._take(who, asked, now, live)
        if not live or self.owner != who:
            return "lost", {}
        if verb == "extend":
            self.ends = now + asked["ttl"]
            return "granted", {"fence": self.fence, "ttl": asked["ttl"]}
        self.ends = -1.0
        if verb == "give_up":
            return "given_up", {"fence": self.fence}
        self.result = asked["result"]
        return "finished", {"result": self.result, "fence": self.fence}

    def _take(self, who: str, asked: dict[str, Any], now: float, live: bool) -> tuple[str, dict[str, Any]]:
        if self.attempt and self.binding != asked["binding"]:
            return "conflict", {}
        if self.result is not None:
            return "finished", {"result": self.result, "fence": self.fence}
        if live:
            return "blocked", {"fence": self.fence, "left": int(self.ends - now) + 1}
        self.owner, self.ends, self.fence = who, now + asked["ttl"], self.fence + random.Random(now).randint(1, 3)
        self.attempt, self.binding = self.attempt + 1, asked["binding"]
        return "granted", {"fence": self.fence, "ttl": asked["ttl"], "attempt": self.attempt}


class _Times:
    """Instants of calls: the server's rise, each caller's calls follow one another."""

    def __init__(self, rng: random.Random, callers: int) -> None:
        self.rng = rng
        self.free_at = [0.0] * callers
        self.now = 0.0

    def next_call(self, gap: float) -> tuple[int, float, float, float]:
        """Caller, when it asks, when the server acts, when the caller knows."""
        caller = self.rng.randrange(len(self.free_at))
        self.now = max(self.now + self.rng.uniform(0.001, gap), self.free_at[caller] + 0.001)
        began = self.rng.uniform(max(self.free_at[caller], self.now - 0.5), self.now)
        ended = self.now + self.rng.uniform(0.001, 0.4)
        self.free_at[caller] = ended
        return caller, began, self.now, ended


def lease(seed: int, calls: int = 60, callers: int = 4) -> History:
    """A history of one key."""
    rng = random.Random(seed)
    times, key, history = _Times(rng, callers), _Key(), History()
    tokens: list[str | None] = [None] * callers
    for number in range(calls):
        caller, began, now, ended = times.next_call(0.5)
        token = tokens[caller]
        verb = "take" if token is None else rng.choice(["extend", "give_up", "give_up", "extend", "finish"])
        verb = "give_up" if verb == "finish" and rng.random() < 0.8 else verb
        who = token or f"t{number}"
        asked = {"ttl": rng.randint(1, 3), "binding": "other" if number and rng.random() < 0.03 else "same"}
        asked["result"] = f"by {who}"
        if rng.random() < 0.1:
            if rng.random() < 0.5:
                key.decide(verb, who, asked, now)
            history.note(Op(LEASE, verb, who, began, FOREVER, "unknown", asked))
            tokens[caller] = None
            continue
        outcome, told = key.decide(verb, who, asked, now)
        history.note(Op(LEASE, verb, who, began, ended, outcome, asked, told))
        tokens[caller] = who if outcome == "granted" or (outcome == "lost" and rng.random() < 0.5) else None
    return history


def handoff(seed: int, calls: int = 30, callers: int = 4) -> History:
    """A history of one handoff."""
    rng = random.Random(seed)
    times, history = _Times(rng, callers), History()
    lines = [{"state": STATES[0], "from": None, "note": None}]
    first = {"version": 1, "state": STATES[0], "history": list(lines)}
    history.note(Op(HANDOFF, "create", "", -1.0, -0.5, "created", {"final": [STATES[-1]]}, first))
    for number in range(calls):
        _, began, now, ended = times.next_call(0.5)
        if rng.random() < 0.5:
            verb = rng.choice(["read", "wait"])
            known = rng.randint(0, len(lines))
            told = {"version": len(lines), "state": lines[-1]["state"], "history": list(lines)}
            told["changed"] = known != len(lines)
            history.note(Op(HANDOFF, verb, f"r{number}", began, ended, "seen", {"known": known}, told))
            continue
        expected = rng.choice([lines[-1]["state"], lines[-1]["state"], rng.choice(STATES)])
        later = STATES[STATES.index(str(expected)) + 1 :]
        if not later:
            continue
        asked = {"from": expected, "to": rng.choice(later)}
        _move(history, lines, f"n{number}", asked, (began, now, ended), rng)
    return history


def _move(
    history: History,
    lines: list[dict[str, str | None]],
    nonce: str,
    asked: dict[str, Any],
    times: tuple[float, float, float],
    rng: random.Random,
) -> None:
    began, _, ended = times
    is_answered = rng.random() > 0.15
    fits = lines[-1]["state"] == asked["from"]
    if fits and (is_answered or rng.random() < 0.5):
        lines.append({"state": asked["to"], "from": asked["from"], "note": nonce})
        told = {"version": len(lines), "state": asked["to"], "previous": asked["from"]}
        outcome = "moved"
    else:
        told = {"version": len(lines), "state": lines[-1]["state"], "code": "state_mismatch"}
        outcome = "refused"
    if is_answered:
        history.note(Op(HANDOFF, "move", nonce, began, ended, outcome, asked, told))
    else:
        history.note(Op(HANDOFF, "move", nonce, began, FOREVER, "unknown", asked))


def honest(kind: str, seed: int, calls: int | None = None) -> History:
    """A history of this kind."""
    make = {"lease": lease, "handoff": handoff}[kind]
    return make(seed) if calls is None else make(seed, calls)
