"""What the callers of a run do: short lives of many keys, so that every history is short and every rule is reached.

A generation of keys lasts some seconds; all callers meet on the few keys of the one that is on. Each workload
says what it did in the words of the checkers.
"""

import random
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from tests.faults.caller import Caller, Heard
from tests.faults.history import History, Op
from tests.real.api import V1

BODY = "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ-_"
STATES = ["offered", "accepted", "working", "checked", "done", "failed"]
FINAL = ["done", "failed"]
GONE = (404, 410)
TRIES = 4


def fresh(prefix: str, rng: random.Random) -> str:
    """A token of the caller's own."""
    return prefix + "".join(rng.choices(BODY, k=43))


@dataclass(frozen=True)
class Meeting:
    """What all callers of a run share: where they write down what happened, and the secrets of the place."""

    history: History
    namespace: str
    once_token: str
    started: float
    keys: int
    generation_seconds: float
    handoffs: deque["Shared"] = field(default_factory=lambda: deque(maxlen=6))
    every_handoff: list["Shared"] = field(default_factory=list)

    def key(self, rng: random.Random, kind: str) -> str:
        """A key of the generation that is on."""
        generation = int((time.monotonic() - self.started) / self.generation_seconds)
        return f"{kind} {generation}-{rng.randrange(self.keys)}"

    def forget(self, shared: "Shared") -> None:
        """Leave one alone from now on."""
        with suppress(ValueError):
            self.handoffs.remove(shared)

    def pick(self, rng: random.Random) -> "Shared | None":
        """One of the handoffs that are shared now."""
        shared = list(self.handoffs)
        return rng.choice(shared) if shared else None


@dataclass
class Shared:
    """A handoff that several callers move; `version` and `state` are what one of them heard last."""

    name: str
    owner: str
    receiver: str
    version: int = 1
    state: str = STATES[0]

    @property
    def subject(self) -> str:
        """What its history is called."""
        return f"handoff {self.name}"

    @property
    def path(self) -> str:
        """Where it is."""
        return f"{V1}/handoff/{self.name}"


Hear = Callable[[Heard], tuple[str, dict[str, Any]]]


class Holder:
    """Takes one thing, holds it for a moment, and ends it in one of several ways: the part of leases and claims."""

    def __init__(self, meeting: Meeting, caller: Caller, subject: str, who: str) -> None:
        self.meeting = meeting
        self.caller = caller
        self.rng = caller.rng
        self.subject = subject
        self.who = who

    def turn(self) -> None:
        """One life: take, and if it was granted, hold and end."""
        ttl = self.rng.choice([1, 1, 2, 3])
        for _ in range(TRIES):
            heard = self.take(ttl)
            if any(outcome == "granted" for outcome in heard):
                return self._hold()
            if any(outcome != "unknown" for outcome in heard) or self.rng.random() < 0.3:
                return None
        return None

    def _hold(self) -> None:
        chance = self.rng.random()
        for _ in range(self.rng.choice([0, 0, 0, 1, 2])):
            self.extend(self.rng.choice([1, 2, 3]))
        if chance < 0.04:
            return
        if chance < 0.08:
            time.sleep(self.rng.uniform(0.8, 2.2))
            self.extend(1)
        last = self.finish if chance < 0.08 or chance > 0.985 else self.give_up
        for _ in range(TRIES):
            if "unknown" not in last():
                break
        if self.rng.random() < 0.3:
            self._come_back()

    def _come_back(self) -> None:
        """Late, when another may have it by now."""
        time.sleep(self.rng.uniform(0.0, 0.03))
        self.rng.choice([self.finish, self.give_up, lambda: self.extend(1)])()

    def take(self, ttl: int) -> list[str]:
        """Ask for it."""
        raise NotImplementedError

    def extend(self, ttl: int) -> list[str]:
        """Hold it longer."""
        raise NotImplementedError

    def give_up(self) -> list[str]:
        """Let go of it."""
        raise NotImplementedError

    def finish(self) -> list[str]:
        """Leave a result."""
        raise NotImplementedError

    def call(self, verb: str, path: str, members: dict[str, Any], asked: dict[str, Any], hear: Hear) -> list[str]:
        """Make the call and write down what was heard of it."""
        outcomes = []
        for heard in self.caller.post(path, members):
            outcome, told = ("unknown", {}) if heard.is_unknown else hear(heard)
            if heard.is_undone:
                outcome, told = "failed", {}
            if told.pop("taken_over", False):
                self.who += "'"
            op = Op(self.subject, verb, self.who, heard.began, heard.ended, outcome, asked, told)
            self.meeting.history.note(op)
            outcomes.append(outcome)
        return outcomes


class LeaseHolder(Holder):
    """Of a lease."""

    def __init__(self, meeting: Meeting, caller: Caller, key: str | None = None) -> None:
        key = key or meeting.key(caller.rng, "lease")
        super().__init__(meeting, caller, key, fresh("own_", caller.rng))
        self._common = {"key": key.replace(" ", "-"), "namespace": meeting.namespace}

    def take(self, ttl: int) -> list[str]:
        binding = "other" if self.rng.random() < 0.02 else "same"
        wait = self.rng.choice([0, 0, 0, 0, 0, 0, 1, 2])
        members = {"ttl_seconds": ttl, "owner_token": self.who, "fingerprint": binding, "wait_seconds": wait}
        return self._call("take", "acquire", members, {"ttl": ttl, "binding": binding})

    def extend(self, ttl: int) -> list[str]:
        return self._call("extend", "renew", {"ttl_seconds": ttl, "owner_token": self.who}, {"ttl": ttl})

    def give_up(self) -> list[str]:
        return self._call("give_up", "release", {"owner_token": self.who}, {})

    def finish(self) -> list[str]:
        result = f"by {self.who}"
        return self._call("finish", "complete", {"owner_token": self.who, "result": result}, {"result": result})

    def _call(self, verb: str, route: str, members: dict[str, Any], asked: dict[str, Any]) -> list[str]:
        return self.call(verb, f"{V1}/lease/{route}", {**self._common, **members}, asked, heard_of_lease)


LEASE_WORDS = {
    "lease_held": "blocked",
    "lease_conflict": "conflict",
    "lease_lost": "lost",
    "already_completed": "lost",
}
STATUS_WORDS = {"held": "granted", "released": "given_up", "completed": "finished"}


def heard_of_lease(heard: Heard) -> tuple[str, dict[str, Any]]:
    """An answer of the lease's routes in the checkers' words."""
    body = heard.body
    outcome = STATUS_WORDS[body["status"]] if body["ok"] else LEASE_WORDS[body["code"]]
    names = {
        "fencing_token": "fence",
        "ttl_seconds": "ttl",
        "attempt": "attempt",
        "repeated": "repeated",
        "result": "result",
        "retry_after_seconds": "left",
    }
    return outcome, {short: body[name] for name, short in names.items() if name in body}


class ClaimHolder(Holder):
    """Of a once-key's claim, with a lease (another may take over when it lapses) or without one."""

    def __init__(self, meeting: Meeting, caller: Caller, key: str | None = None) -> None:
        key = key or meeting.key(caller.rng, caller.rng.choice(["once-leased", "once-leased", "once-plain"]))
        self._is_leased = key.startswith("once-leased")
        super().__init__(meeting, caller, key, fresh("clm_", caller.rng))
        self._token = self.who
        self._common = {"namespace": "faults", "action_key": key, "namespace_token": meeting.once_token}

    def take(self, ttl: int) -> list[str]:
        members: dict[str, Any] = {"claim_token": self._token, "wait_seconds": self.rng.choice([0, 0, 0, 0, 0, 1])}
        binding = None
        if self._is_leased:
            binding = "ff" if self.rng.random() < 0.02 else "aa"
            members |= {"lease_ttl": ttl, "payload_sha256": binding}
        else:
            members["ttl"] = ttl
        return self._call("take", "", members, {"ttl": ttl, "binding": binding})

    def extend(self, ttl: int) -> list[str]:
        if not self._is_leased:
            return []
        return self._call("extend", "/renew", {"claim_token": self._token, "lease_ttl": ttl}, {"ttl": ttl})

    def give_up(self) -> list[str]:
        return self._call("give_up", "/release", {"claim_token": self._token}, {})

    def finish(self) -> list[str]:
        result = f"by {self.who}"
        members = {"claim_token": self._token, "result": result}
        return self._call("finish", "/complete", members, {"result": result})

    def _call(self, verb: str, route: str, members: dict[str, Any], asked: dict[str, Any]) -> list[str]:
        def hear(heard: Heard) -> tuple[str, dict[str, Any]]:
            outcome, told = heard_of_claim(heard)
            told["taken_over"] = outcome == "granted" and verb == "take" and self._is_another(told)
            if verb == "extend":
                told["ttl"] = asked["ttl"]
            return outcome, told

        return self.call(verb, f"/once-key{route}", {**self._common, **members}, asked, hear)

    _fence: int | None = None

    def _is_another(self, told: dict[str, Any]) -> bool:
        """Whether the caller's own token took over from itself: a new ownership with a new fence."""
        earlier, self._fence = self._fence, told["fence"]
        return earlier is not None and earlier != self._fence


CLAIM_WORDS = {
    "claimed": "granted",
    "in_progress": "blocked",
    "held": "blocked",
    "duplicate": "finished",
    "conflict": "conflict",
    "completed": "finished",
    "already_completed": "already",
    "released": "given_up",
}
CLAIM_REFUSALS = {"no_claim": "none", "claim_lost": "lost", "already_completed": "refused"}


def heard_of_claim(heard: Heard) -> tuple[str, dict[str, Any]]:
    """An answer of the once-key's routes in the checkers' words."""
    body = heard.body
    outcome = CLAIM_WORDS[body["status"]] if heard.status == 200 else CLAIM_REFUSALS[body["code"]]
    names = {
        "fencing_token": "fence",
        "attempt": "attempt",
        "repeated": "repeated",
        "result": "result",
        "retry_after": "left",
    }
    return outcome, {short: body[name] for name, short in names.items() if name in body}


def offer(meeting: Meeting, caller: Caller) -> None:
    """Make a handoff that all callers share, and write down which one the creation came to."""
    rng = caller.rng
    nonce, owner, receiver = fresh("", rng), fresh("howner_", rng), fresh("hrecv_", rng)
    members = {"payload": {"n": nonce}, "nonce": nonce, "owner_token": owner, "receiver_token": receiver}
    members |= {"states": STATES, "final": FINAL}
    asked = {"final": FINAL}
    for _ in range(TRIES):
        for heard in caller.post(f"{V1}/handoff", members):
            if heard.status != 201:
                continue
            name, version = heard.body["handoff_id"], heard.body["version"]
            meeting.history.note(
                Op(f"creation {nonce}", "create", nonce, heard.began, heard.ended, "created", {}, {"id": name})
            )
            shared = Shared(name, owner, receiver)
            told = {"version": version, "state": heard.body["state"]}
            meeting.history.note(Op(shared.subject, "create", "", heard.began, heard.ended, "created", asked, told))
            meeting.every_handoff.append(shared)
            meeting.handoffs.append(shared)
            return


def move(meeting: Meeting, caller: Caller) -> None:
    """Try to move one of the shared handoffs, from where somebody last saw it or from somewhere else."""
    rng = caller.rng
    shared = meeting.pick(rng)
    if shared is None:
        return
    expected = shared.state if rng.random() < 0.9 else rng.choice(STATES[:-2])
    later = STATES[STATES.index(expected) + 1 :]
    if expected in FINAL or not later:
        meeting.forget(shared)
        return
    to = later[0] if rng.random() < 0.8 else rng.choice(later)
    nonce = fresh("", rng)[:20]
    token = rng.choice([shared.owner, shared.receiver])
    asked = {"from": expected, "to": to}
    for _ in range(TRIES):
        unknown = False
        for heard in caller.post(f"{shared.path}/{to}", {"from": expected, "nonce": nonce, "note": nonce}, token):
            outcome, told = heard_of_move(heard)
            unknown = unknown or outcome == "unknown"
            meeting.history.note(Op(shared.subject, "move", nonce, heard.began, heard.ended, outcome, asked, told))
            if outcome == "gone":
                meeting.forget(shared)
            if "current_state" in heard.body:
                shared.state, shared.version = heard.body["current_state"], heard.body["current_version"]
        if not unknown or rng.random() < 0.3:
            return


def heard_of_move(heard: Heard) -> tuple[str, dict[str, Any]]:
    """The answer to a move in the checkers' words."""
    body = heard.body
    if heard.is_undone:
        return "failed", {}
    if heard.is_unknown:
        return "unknown", {}
    if heard.status in GONE:
        return "gone", {}
    if heard.status == 200:
        told = {name: body[name] for name in ("version", "state", "previous", "repeated")}
        return "moved", {**told, "current": body["current_version"]}
    return "refused", {"version": body["current_version"], "state": body["current_state"], "code": body["code"]}


def look(meeting: Meeting, caller: Caller, shared: Shared, seconds: int | None = None) -> None:
    """Read it, or wait for a version that is not the one that was last seen."""
    known = shared.version
    token = caller.rng.choice([shared.owner, shared.receiver])
    if seconds is None:
        heard = caller.send("GET", shared.path, token=token)
    else:
        heard = caller.send("GET", f"{shared.path}/wait/{seconds}", token=token, If_None_Match=f'"{known}"')
    verb, asked = ("read", {}) if seconds is None else ("wait", {"known": known})
    body = heard.body
    if heard.status in GONE:
        meeting.history.note(Op(shared.subject, verb, "", heard.began, heard.ended, "gone", asked))
        meeting.forget(shared)
    if heard.status != 200:
        return
    lines = [{name: line[name] for name in ("state", "from", "note")} for line in body["history"]]
    told = {"version": body["version"], "state": body["state"], "history": lines, "changed": body.get("changed")}
    meeting.history.note(Op(shared.subject, verb, "", heard.began, heard.ended, "seen", asked, told))
    shared.version, shared.state = body["version"], body["state"]


def hand_over(meeting: Meeting, caller: Caller) -> None:
    """One step among handoffs."""
    chance = caller.rng.random()
    if len(meeting.handoffs) < 3 or chance < 0.03:
        offer(meeting, caller)
    elif chance < 0.7:
        move(meeting, caller)
    else:
        shared = meeting.pick(caller.rng)
        if shared is not None:
            look(meeting, caller, shared)


def wait(meeting: Meeting, caller: Caller) -> None:
    """One wait."""
    shared = meeting.pick(caller.rng)
    if shared is None:
        time.sleep(0.05)
    else:
        look(meeting, caller, shared, seconds=caller.rng.choice([1, 5, 10]))


def lease(meeting: Meeting, caller: Caller) -> None:
    """One life of a lease."""
    LeaseHolder(meeting, caller).turn()


def claim(meeting: Meeting, caller: Caller) -> None:
    """One life of a claim."""
    ClaimHolder(meeting, caller).turn()


WORK: dict[str, Callable[[Meeting, Caller], None]] = {
    "lease": lease,
    "once": claim,
    "handoff": hand_over,
    "wait": wait,
}


def audit(meeting: Meeting, caller: Caller) -> None:
    """After all is over: what was finished is asked for once more, and every handoff is read."""
    finished = {op.subject for op in meeting.history.ops if op.outcome == "finished"}
    for subject in sorted(finished):
        kind = LeaseHolder if subject.startswith("lease") else ClaimHolder
        kind(meeting, caller, subject).take(1)
    for shared in meeting.every_handoff:
        look(meeting, caller, shared)
