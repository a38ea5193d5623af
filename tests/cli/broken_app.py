"""The server with one promise broken, named by the variable BROKEN: for tests of the self-test."""

from gevent import monkey

monkey.patch_all()

import os  # noqa: E402
from dataclasses import replace  # noqa: E402
from typing import Any  # noqa: E402

from app import factory  # noqa: E402
from app.core import claim, lease  # noqa: E402
from app.push.hub import Hub  # noqa: E402
from app.serving.prepare import prepared  # noqa: E402
from app.settings import load  # noqa: E402


def grant_to_everybody() -> None:
    lease.LeaseRecord.is_held = lambda record, now: False  # type: ignore[method-assign,assignment]


def hand_out_one_fence() -> None:
    made = lease._ownership
    vars(lease)["_ownership"] = lambda ask, fence, *rest, **named: replace(made(ask, fence, *rest, **named), fence=7)


def wake_nobody() -> None:
    class DeafHub(Hub):
        def committed(self, topics: Any) -> None:
            super().committed([topic for topic in topics if not topic.startswith("lease:")])

    vars(factory)["Hub"] = DeafHub


def claim_for_everybody() -> None:
    claim.ClaimRecord.is_live = lambda record, now: False  # type: ignore[method-assign,assignment]


BROKEN = {
    "exclusion": grant_to_everybody,
    "fences": hand_out_one_fence,
    "wake-ups": wake_nobody,
    "once": claim_for_everybody,
}
BROKEN[os.environ["BROKEN"]]()
application = factory.create_app(prepared(load()))
