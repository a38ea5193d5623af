"""What is to be run, as a name, a seed and a few numbers."""

from dataclasses import dataclass

CALLERS = {"lease": 4, "once": 3, "handoff": 3, "wait": 3}


@dataclass(frozen=True)
class Schedule:
    """What is run: on which engine, under which nemesis, from which seed, for how many seconds of work.

    `only` names the one workload that all callers do. They meet on so many keys at a time, for so many seconds.
    """

    engine: str
    nemesis: str
    seed: int
    seconds: float = 6.0
    application: str | None = None
    environment: tuple[tuple[str, str], ...] = ()
    only: str | None = None
    keys: int = 3
    generation_seconds: float = 3.0

    @property
    def callers(self) -> dict[str, int]:
        """How many callers do what."""
        return CALLERS if self.only is None else {self.only: sum(CALLERS.values())}

    @property
    def name(self) -> str:
        """How the report calls it."""
        return f"{self.engine}-{self.nemesis}-{self.seed}"
