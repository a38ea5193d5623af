"""`fencepost-server selftest --against URL`: a quick check of an installation, from outside, by its own client.

Exclusion, fences, wake-ups, once-keys, handoffs and limits. It works in a namespace of its own, gives everything back,
and tells each check by name. What it creates ends with it: leases and claims are released, the handoff is moved to its
end and expires a minute later.
"""

import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from types import ModuleType
from typing import Any

from app.clock import monotonic

INSTALL = f"the self-test needs the client beside the server: {sys.executable} -m pip install ./client"
_CALLERS = 16
_WAKE_SECONDS = 2.0


class Failed(Exception):
    """A check found the installation wanting; the sentence says how."""


def selftest(url: str, say: Callable[[str], None]) -> bool:
    """Whether every check passed. Raises ImportError without the client."""
    import fencepost

    with ExitStack() as stack:
        fp = stack.enter_context(fencepost.Client(url, retry_seconds=5.0, once_secret=fencepost.keys.mint_namespace()))
        ground = _Ground(fencepost, fp)
        has_passed = True
        for name, check in _CHECKS:
            try:
                say(f"ok      {name}: {check(ground)}")
            except (Failed, fencepost.FencepostError) as fault:
                say(f"FAILED  {name}: {fault}")
                has_passed = False
        return has_passed


class _Ground:
    """The client and a namespace of this run alone."""

    def __init__(self, fencepost: ModuleType, fp: Any) -> None:
        self.fencepost = fencepost
        self.fp = fp
        self.namespace = fencepost.keys.mint_namespace()
        self.application = f"selftest-{fencepost.keys.mint_nonce()}"


def _exclusion(ground: _Ground) -> str:
    granted: list[Any] = []
    barrier = threading.Barrier(_CALLERS)

    def call() -> None:
        barrier.wait()
        outcome = ground.fp.leases.acquire("exclusion", namespace=ground.namespace, ttl=30)
        if isinstance(outcome, ground.fencepost.Granted):
            granted.append(outcome)

    callers = [threading.Thread(target=call) for _ in range(_CALLERS)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    for outcome in granted:
        ground.fp.leases.release("exclusion", outcome.owner_token, namespace=ground.namespace)
    if len(granted) != 1:
        raise Failed(f"{len(granted)} of {_CALLERS} parallel callers were granted one lease")
    return f"{_CALLERS} parallel callers, one grant"


def _fences(ground: _Ground) -> str:
    fences = []
    for _ in range(5):
        with ground.fp.lease("fences", namespace=ground.namespace, ttl=30) as lease:
            fences.append(lease.fencing_token)
            if not ground.fp.leases.verify("fences", fences[-1], namespace=ground.namespace):
                raise Failed("a live fence is called stale")
    if ground.fp.leases.verify("fences", fences[0], namespace=ground.namespace):
        raise Failed("an old fence is called current")
    if fences != sorted(set(fences)):
        raise Failed(f"fences do not rise: {fences}")
    return f"{fences[0]} to {fences[-1]}, each higher than the one before"


def _wake(ground: _Ground) -> str:
    told: list[float] = []

    def wait() -> None:
        with ground.fp.lease("wake", namespace=ground.namespace, ttl=30, wait=20):
            told.append(monotonic())

    with ground.fp.lease("wake", namespace=ground.namespace, ttl=30):
        waiter = threading.Thread(target=wait)
        waiter.start()
        waiter.join(0.5)
    released_at = monotonic()
    waiter.join(25)
    if not told:
        raise Failed("who waited for a released lease was not granted it")
    seconds = max(0.0, told[0] - released_at)
    if seconds > _WAKE_SECONDS:
        raise Failed(f"who waited was woken {seconds:.1f} s after the release; does something in between buffer?")
    return f"granted {seconds * 1000:.0f} ms after the release"


def _once(ground: _Ground) -> str:
    token = ground.fencepost.keys.mint_claim_token()
    first = ground.fp.onces.claim(ground.application, "once", ttl=60, claim_token=token)
    again = ground.fp.onces.claim(ground.application, "once", ttl=60)
    ground.fp.onces.release(ground.application, "once", claim_token=token)
    if not isinstance(first, ground.fencepost.Claimed) or not isinstance(again, ground.fencepost.InProgress):
        raise Failed(f"two claims came to {type(first).__name__} and {type(again).__name__}")
    return "claimed once, refused once, given back"


def _handoffs(ground: _Ground) -> str:
    made = ground.fp.handoffs.create({"selftest": True}, states=["begun", "over"], ttl=60)
    mover = threading.Timer(0.2, made.move, ("over",))
    mover.start()
    states = [change.state for change in made.changes()]
    mover.join()
    if states != ["begun", "over"]:
        raise Failed(f"a follower was told {states}")
    return "a follower was told of each change"


def _limits(ground: _Ground) -> str:
    refusals = ground.fencepost.refusals
    cases: list[tuple[Any, Callable[[], Any]]] = [
        (refusals.InvalidRequest, lambda: ground.fp.leases.acquire("limits", namespace=ground.namespace, ttl=86_401)),
        (refusals.InvalidRequest, lambda: ground.fp.leases.acquire("limits", namespace="ns_guess")),
        (refusals.PayloadTooLarge, lambda: ground.fp.handoffs.create("x" * 17_000)),
        (refusals.NotFound, lambda: ground.fp.handoffs.open("0" * 32, "howner_" + "a" * 43).read()),
    ]
    for wanted, call in cases:
        try:
            call()
        except wanted:
            continue
        except ground.fencepost.Refused as refusal:
            raise Failed(f"{refusal.details.get('code')} came where {wanted.code} belongs") from None
        raise Failed(f"a request was accepted that deserves {wanted.code}")
    return "four requests past a limit, each refused by its code"


_CHECKS: list[tuple[str, Callable[[_Ground], str]]] = [
    ("exclusion", _exclusion),
    ("fences", _fences),
    ("wake-ups", _wake),
    ("once", _once),
    ("handoffs", _handoffs),
    ("limits", _limits),
]
