"""The rules of what one caller at a time can have: a lease, or a once-key's claim. No search: fences give the order.

Both are told in the same words. *take* is granted, blocked, finished (a result stands), in conflict or lost; *extend*
is granted or lost; *give_up* is given_up or lost; *finish* is finished, already (an earlier result stands) or lost.

    F1  a fence belongs to one ownership, and an ownership has one fence
    F2  an ownership that was told of before another was asked for has the lower fence
    F3  a fence is an integer from 1 to 2**53 - 1
    M1  nobody is granted what another may still own
    M2  nothing is refused, for another's sake, later than that other can own it
    M3  who is blocked is told to come back later, and not later than the longest lease
    O1  only an ownership that can be live is extended, given up or finished
    O2  an ownership that must be live is not lost
    R1  once finished, no later caller is granted anything
    R2  everybody is told the same result, and it is one that somebody sent
    R4  another binding (fingerprint, payload) is granted nothing and told no result; the same one is no conflict
    N1  ownerships of one lifecycle are counted: a later one has the higher attempt

A call without an answer may have happened at any moment from its beginning on, or never: each rule gives it the
benefit of the doubt.
"""

from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise

from tests.faults.history import FOREVER, LIFE_SECONDS, Fault, History, Op

LARGEST_FENCE = 2**53 - 1
SLOP_SECONDS = 0.02
"""Two clocks of one machine (monotonic, boot time, the database's) may drift apart this much within a lease."""
ENDINGS = ("give_up", "finish")


class Ownership:
    """One token's hold of a subject, as far as its owner was told."""

    def __init__(self, takes: list[Op], rest: list[Op]) -> None:
        granted = [op for op in takes if op.outcome == "granted"]
        first = min(granted, key=lambda op: op.ended)
        self.who = first.who
        self.fence: int = first.told["fence"]
        self.attempt: int | None = first.told.get("attempt")
        self.binding = first.asked.get("binding")
        is_repeat = any(op.told.get("repeated") for op in granted)
        self.began = min(op.began for op in (takes if is_repeat else granted))
        self.ended = first.ended
        self.grant = Op(first.subject, "take", first.who, self.began, self.ended, "granted", first.asked, first.told)
        self.extensions = [self.grant]
        self.extensions += [op for op in rest if op.verb == "extend" and op.outcome in ("granted", "unknown")]
        self.endings = [op for op in rest if op.verb in ENDINGS and op.outcome not in ("lost", "none")]

    def ttl(self, extension: Op) -> float:
        """Seconds that an extension gives."""
        ttl: float = extension.told.get("ttl", extension.asked["ttl"])
        return ttl

    def may_have_ended(self, by: float, history: History, *, but: Op | None = None) -> bool:
        """Whether anything can have ended it by this instant."""
        if any(op.began <= by for op in self.endings if op is not but):
            return True
        known = [op for op in self.extensions if op.began <= by and op is not but]
        newest = max((op.began for op in known if not op.is_unknown), default=self.began)
        last = [op for op in known if op.ended >= newest]
        return any(history.at_most(op.began, by) >= self.ttl(op) - SLOP_SECONDS for op in last)

    def has_surely_lapsed(self, before: float, history: History, *, but: Op | None = None) -> bool:
        """Whether its time was up before this instant, whatever became of the calls without an answer."""
        known = [op for op in self.extensions if op is not but and op.began <= before]
        return bool(known) and all(history.at_least(op.ended, before) > self.ttl(op) + SLOP_SECONDS for op in known)

    def was_surely_ended(self, before: float, *, but: Op | None = None) -> bool:
        """Whether its owner was told of its end before this instant."""
        return any(op.ended < before and not op.is_unknown for op in self.endings if op is not but)


class _Judge:
    """One subject's calls, sorted by the rules' needs."""

    def __init__(self, subject: str, ops: list[Op], history: History) -> None:
        self.subject = subject
        self.ops = ops
        self.history = history
        self.is_late_finish_allowed = subject.startswith("once-leased")
        self.counts_attempts = subject.startswith("lease")
        mine: dict[str, list[Op]] = {}
        for op in ops:
            mine.setdefault(op.who, []).append(op)
        self.owned: dict[str, Ownership] = {}
        self.unknown_takes: list[Op] = []
        for who, calls in mine.items():
            takes = [op for op in calls if op.verb == "take"]
            if any(op.outcome == "granted" for op in takes):
                self.owned[who] = Ownership(takes, [op for op in calls if op.verb != "take"])
            else:
                self.unknown_takes += [op for op in takes if op.is_unknown]
        self.in_order = sorted(self.owned.values(), key=lambda one: one.fence)
        self.by_beginning = sorted(self.owned.values(), key=lambda one: one.began)
        self.beginnings = [one.began for one in self.by_beginning]
        self.results = [op for op in ops if op.outcome in ("finished", "already")]
        self.first_finish = min((op.ended for op in self.results), default=FOREVER)
        self.born = min((op.began for op in ops), default=0.0)

    def fault(self, rule: str, text: str) -> Fault:
        return Fault(rule, self.subject, text)

    def is_one_life(self, until: float) -> bool:
        """Whether a lifecycle that began with the first call can not be over."""
        return self.history.at_most(self.born, until) < LIFE_SECONDS - 1

    def fences(self) -> Iterator[Fault]:
        newest_asked, lower = -FOREVER, 0
        for one in self.in_order:
            if not 1 <= one.fence <= LARGEST_FENCE:
                yield self.fault("F3", f"fence {one.fence}")
            if one.fence == lower:
                yield self.fault("F1", f"fence {one.fence} was granted to two")
            if one.ended < newest_asked:
                yield self.fault("F2", f"fence {one.fence} was told of before a lower one was asked for")
            newest_asked, lower = max(newest_asked, one.began), one.fence
        for op in self.ops:
            known = self.owned.get(op.who)
            if known and op.outcome in ("granted", "given_up") and op.told.get("fence", known.fence) != known.fence:
                yield self.fault("F1", f"{op.verb} told fence {op.told['fence']} to the owner of {known.fence}")

    def neighbours(self) -> Iterator[Fault]:
        for earlier, later in pairwise(self.in_order):
            where = f"fences {earlier.fence} and {later.fence}"
            if not earlier.may_have_ended(later.ended, self.history):
                yield self.fault("M1", f"{where}: granted while the first one was owned")
            counted = self.counts_attempts and self.is_one_life(later.ended)
            if counted and (later.attempt or 0) <= (earlier.attempt or 0):
                yield self.fault("N1", f"{where} are attempts {earlier.attempt} and {later.attempt}")

    def blocked(self) -> Iterator[Fault]:
        hidden: dict[int, float] = {}
        known = {one.fence: one for one in self.in_order}
        for op in self.ops:
            if op.outcome != "blocked":
                continue
            left = op.told.get("left")
            if left is not None and not 1 <= left <= LIFE_SECONDS:
                yield self.fault("M3", f"blocked for {left} s")
            fence = op.told.get("fence")
            if fence is None:
                if not self._can_be_owned(op):
                    yield self.fault("M2", f"blocked at {op.began:.3f} though nobody can own it")
            elif fence in known:
                yield from self._blocked_by(op, known[fence])
            else:
                hidden[fence] = min(op.ended, hidden.get(fence, FOREVER))
                yield from self._blocked_by_hidden(op, fence, hidden[fence])
        if len(hidden) > len(self.unknown_takes):
            yield self.fault("M2", f"{len(hidden)} fences block that nobody was told of")

    def _blocked_by(self, op: Op, owner: Ownership) -> Iterator[Fault]:
        if owner.began > op.ended:
            yield self.fault("M2", f"blocked by fence {owner.fence} before it was asked for")
        elif self._is_over(owner, op.began) or owner.was_surely_ended(op.began):
            yield self.fault("M2", f"blocked by fence {owner.fence}, which is over")

    def _is_over(self, owner: Ownership, instant: float) -> bool:
        if owner.has_surely_lapsed(instant, self.history):
            return True
        place = self.in_order.index(owner) + 1
        return place < len(self.in_order) and self.in_order[place].ended < instant

    def _blocked_by_hidden(self, op: Op, fence: int, first_seen: float) -> Iterator[Fault]:
        longest = max((take.asked["ttl"] for take in self.unknown_takes if take.began <= op.ended), default=-FOREVER)
        extended = any(take.is_unknown for take in self.ops if take.verb == "extend")
        if not extended and self.history.at_least(first_seen, op.began) > longest + SLOP_SECONDS:
            yield self.fault("M2", f"blocked by fence {fence}, which nobody can own any more")

    def _can_be_owned(self, op: Op) -> bool:
        if any(take.began <= op.ended for take in self.unknown_takes):
            return True
        begun = self.by_beginning[: bisect_right(self.beginnings, op.ended)]
        return any(
            not one.has_surely_lapsed(op.began, self.history) and not one.was_surely_ended(op.began)
            for one in reversed(begun)
        )

    def owners(self) -> Iterator[Fault]:
        for op in self.ops:
            owner = self.owned.get(op.who)
            if owner is None:
                if op.verb != "take" and op.outcome in ("granted", "given_up", "finished") and not self._may_own(op):
                    yield self.fault("O1", f"{op.verb} by a token that owns nothing")
            elif op.outcome in ("lost", "none") and op.began > owner.ended and self.is_one_life(op.ended):
                if not owner.may_have_ended(op.ended, self.history, but=op) and not self._may_be_finished(op):
                    yield self.fault("O2", f"{op.verb}: fence {owner.fence} was lost while it was owned")
            elif op.verb != "take" and op.outcome in ("granted", "given_up", "finished"):
                yield from self._allowed(op, owner)

    def _may_own(self, op: Op) -> bool:
        return any(take.who == op.who for take in self.unknown_takes)

    def _may_be_finished(self, op: Op) -> bool:
        """Whether somebody else can have finished it: whoever holds a namespace's token may, a lease's owner alone."""
        if self.counts_attempts:
            return False
        return any(other.verb == "finish" and other.who != op.who and other.began <= op.ended for other in self.ops)

    def _allowed(self, op: Op, owner: Ownership) -> Iterator[Fault]:
        where = f"{op.verb} of fence {owner.fence}"
        if op.told.get("repeated"):
            return
        late = self.is_late_finish_allowed and op.verb in ENDINGS
        if not late and owner.has_surely_lapsed(op.began, self.history, but=op):
            yield self.fault("O1", f"{where} after it had lapsed")
        if owner.was_surely_ended(op.began, but=op):
            yield self.fault("O1", f"{where} after it had ended")
        place = self.in_order.index(owner) + 1
        if place < len(self.in_order) and min(one.ended for one in self.in_order[place:]) < op.began:
            yield self.fault("O1", f"{where} after a higher one was granted")

    def finished(self) -> Iterator[Fault]:
        sent = [op for op in self.ops if op.verb == "finish" and op.outcome != "lost"]
        told = sorted(self.results, key=lambda op: op.ended)
        for op in told:
            if not any(one.asked["result"] == op.told["result"] and one.began <= op.ended for one in sent):
                yield self.fault("R2", f"told a result that nobody sent: {op.told['result']!r}")
            if op.told["result"] != told[0].told["result"] and self.is_one_life(op.ended):
                yield self.fault("R2", f"told {op.told['result']!r} after {told[0].told['result']!r}")
        for op in self.ops:
            if op.began <= self.first_finish or not self.is_one_life(op.ended) or op.told.get("repeated"):
                continue
            if (op.verb, op.outcome) in (("take", "granted"), ("take", "blocked"), ("extend", "granted")) or (
                op.outcome == "given_up"
            ):
                yield self.fault("R1", f"{op.verb} was {op.outcome} after a result stood")

    def bindings(self) -> Iterator[Fault]:
        takes = [op for op in self.ops if op.verb == "take"]
        bound = [op for op in takes if op.outcome == "granted"]
        words = {op.asked.get("binding") for op in takes}
        if len(words) < 2:
            for op in takes:
                if op.outcome == "conflict":
                    yield self.fault("R4", "a conflict though all bindings are equal")
            return
        if not self.counts_attempts:  # a claim that was given up binds nothing any more
            bound = [op for op in bound if not self.owned[op.who].endings or op.outcome == "finished"]
        first = min(bound, key=lambda op: op.ended, default=None)
        if first is None:
            return
        for op in takes:
            other = op.began > first.ended and op.asked.get("binding") != first.asked.get("binding")
            if other and op.outcome in ("granted", "finished", "blocked") and self._still_bound(first, op):
                yield self.fault("R4", f"another binding was {op.outcome}")

    def _still_bound(self, first: Op, op: Op) -> bool:
        if not self.is_one_life(op.ended):
            return False
        return self.counts_attempts or not self.owned[first.who].may_have_ended(op.ended, self.history)


def faults(subject: str, ops: list[Op], history: History) -> list[Fault]:
    """Every rule that these calls of one subject break."""
    judge = _Judge(subject, ops, history)
    rules = (judge.fences, judge.neighbours, judge.blocked, judge.owners, judge.finished, judge.bindings)
    return [fault for rule in rules for fault in rule()]
