"""What callers asked and were told, with the monotonic instants around each call: the only thing that is judged.

Instants are seconds of CLOCK_MONOTONIC, which all processes of one machine share. `ended` is infinite where no answer
came (a reset, a time-out, a 5xx): such a call may have had its effect at any later moment, or never.

A key never interacts with another, so each subject is judged alone and the cost stays linear.
"""

import json
import math
import threading
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FOREVER = math.inf
LIFE_SECONDS = 86_400
"""Of a lease's lifecycle, of a claim and its result, and of a handoff, as the callers here ask for them."""


@dataclass(frozen=True, slots=True)
class Op:
    """One call. `who` is the token or nonce that it was made with; `asked` and `told` hold what the rules look at."""

    subject: str
    verb: str
    who: str
    began: float
    ended: float
    outcome: str
    asked: Mapping[str, Any] = field(default_factory=dict)
    told: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_unknown(self) -> bool:
        """Whether nobody knows what became of it."""
        return self.outcome == "unknown"


@dataclass(frozen=True, slots=True)
class Fault:
    """A rule that was broken, and where."""

    rule: str
    subject: str
    text: str

    def __str__(self) -> str:
        return f"{self.rule} {self.subject}: {self.text}"


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of time in which something was done to the server; `seconds` is the length of a clock step."""

    began: float
    ended: float
    seconds: float = 0.0


@dataclass
class History:
    """A run: its calls, the steps of the deciding clock forward, and when nobody could be answered in time."""

    ops: list[Op] = field(default_factory=list)
    steps: list[Span] = field(default_factory=list)
    stalls: list[Span] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, op: Op) -> None:
        """Add one call, from any thread."""
        with self.lock:
            self.ops.append(op)

    def by_subject(self) -> dict[str, list[Op]]:
        """The calls of each subject, in the order in which they began."""
        sorted_ops: dict[str, list[Op]] = defaultdict(list)
        for op in sorted(self.ops, key=lambda op: op.began):
            sorted_ops[op.subject].append(op)
        return sorted_ops

    def at_most(self, since: float, until: float) -> float:
        """How much of the deciding clock can have passed between two instants."""
        stepped = sum(step.seconds for step in self.steps if step.began <= until and step.ended >= since)
        return until - since + stepped

    def at_least(self, since: float, until: float) -> float:
        """How much of it must have passed."""
        if since == FOREVER:
            return -FOREVER
        return until - since + sum(step.seconds for step in self.steps if since <= step.began and step.ended <= until)

    def is_stalled(self, since: float, until: float) -> bool:
        """Whether something kept the server from answering within this stretch."""
        return any(stall.began <= until and stall.ended >= since for stall in self.stalls)

    def save(self, file: Path) -> None:
        """Write it as lines of JSON."""
        with file.open("w", encoding="utf-8") as out:
            for name, spans in (("step", self.steps), ("stall", self.stalls)):
                for span in spans:
                    out.write(json.dumps([name, span.began, span.ended, span.seconds]) + "\n")
            for op in self.ops:
                line = [op.subject, op.verb, op.who, op.began, op.ended, op.outcome, op.asked, op.told]
                out.write(json.dumps(line) + "\n")

    @classmethod
    def load(cls, lines: Iterable[str]) -> "History":
        """Read what `save` wrote."""
        history = cls()
        for line in lines:
            parts = json.loads(line)
            if parts[0] == "step":
                history.steps.append(Span(*parts[1:]))
            elif parts[0] == "stall":
                history.stalls.append(Span(*parts[1:]))
            else:
                history.ops.append(Op(*parts))
        return history
