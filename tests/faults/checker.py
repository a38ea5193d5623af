"""The fast checker: each subject of a history by its own rules, sorted by what kind of thing it is."""

from tests.faults import ownership, passage
from tests.faults.history import Fault, History, Op


def faults(history: History) -> list[Fault]:
    """Every violation in a run. Empty: none of the rules of ownership.py and passage.py was broken."""
    found: list[Fault] = []
    for subject, ops in history.by_subject().items():
        if subject.startswith("creation"):
            found += _creation(subject, ops)
        else:
            rules = passage if subject.startswith("handoff") else ownership
            found += rules.faults(subject, ops, history)
    return found


def _creation(subject: str, ops: list[Op]) -> list[Fault]:
    """C1: the same creation sent again is the same handoff."""
    made = {op.told["id"] for op in ops}
    return [Fault("C1", subject, f"made {len(made)} handoffs")] if len(made) > 1 else []
