"""Health: how this process is, the store first, in figures that a person can read."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from flask import Blueprint

from app import __version__
from app.clock import wall
from app.core.instants import SECOND
from app.dashboard.gate import Gate, Page, Visit
from app.dashboard.show import in_words, iso_words

Figures = dict[str, str]
Checks = Callable[[], Mapping[str, str | None]]


class Sweeps(Protocol):
    """What the sweeper counts."""

    @property
    def last_seconds(self) -> float: ...

    @property
    def last_done_at(self) -> float: ...


@dataclass(frozen=True, slots=True)
class Sources:
    """Where the figures come from. Callables are asked for each page."""

    checks: Checks
    """Those of /readyz: the name of each to what is wrong, None when nothing is."""
    store: Callable[[], Mapping[str, object]]
    seats: Callable[[], Mapping[str, int]]
    live_handoffs: Callable[[], int]
    webhooks_under_way: Callable[[], int]
    sweeps: Sweeps


class Health:
    """The page."""

    def __init__(self, gate: Gate, sources: Sources) -> None:
        self._clock = gate.clock
        self._settings = gate.settings
        self._of = sources

    def page(self, visit: Visit) -> Page:
        """Everything, read now."""
        store = dict(self._of.store())
        problems = [*_listed(store.pop("problems", [])), *filter(None, self._of.checks().values())]
        sections = {
            "This process": self._now_here(),
            "Limits": self._limits(),
            "Store": {name.replace("_", " "): _plain(figure) for name, figure in store.items()},
        }
        words = {"title": "Health", "sections": sections, "problems": list(dict.fromkeys(problems)), "refresh": 10}
        return Page("health.html", words)

    def _now_here(self) -> Figures:
        now = self._clock.now()
        behind = wall() - now / SECOND
        seats, swept_at = self._of.seats(), self._of.sweeps.last_done_at
        swept = (
            f"{in_words(int(wall() - swept_at))} ago, took {self._of.sweeps.last_seconds:.3g} s"
            if swept_at
            else "none yet"
        )
        return {
            "version": __version__,
            "deciding clock": f"{iso_words(now)}, {_apart(behind)}",
            "waiting calls": str(seats["wait"]),
            "sockets": str(seats["socket"]),
            "webhooks under way": str(self._of.webhooks_under_way()),
            "last sweep": f"{swept}; every {in_words(int(self._settings.sweep_seconds))}",
        }

    def _limits(self) -> Figures:
        settings, taken = self._settings, sum(self._of.seats().values())
        return {
            "waiting calls and sockets": f"{taken:,} of {settings.limit_waiters:,}",
            "live handoffs": f"{self._of.live_handoffs():,} of {settings.limit_live_handoffs:,}",
            "requests": f"{settings.limit_requests_per_day:,} for each address and day",
            "new handoffs": f"{settings.limit_handoffs_per_day:,} for each address and day",
        }


def _apart(seconds: float) -> str:
    """How this machine's wall clock, which decides nothing, stands to the one that does."""
    if abs(seconds) < 1.0:
        return "as this machine's"
    return f"{in_words(int(abs(seconds)))} {'behind' if seconds > 0 else 'ahead of'} this machine's"


def _listed(found: object) -> list[str]:
    return [str(one) for one in found] if isinstance(found, list) else []


def _plain(figure: object) -> str:
    if isinstance(figure, Mapping):
        return ", ".join(f"{name} {_plain(part)}" for name, part in figure.items())
    return f"{figure:.3g}" if isinstance(figure, float) else f"{figure:,}" if type(figure) is int else str(figure)


def blueprint(gate: Gate, sources: Sources) -> Blueprint:
    """/health."""
    routes = Blueprint("health-page", __name__)
    gate.page(routes, "/health", Health(gate, sources).page)
    return routes
