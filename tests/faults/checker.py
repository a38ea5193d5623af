"""The fast checker: each subject of a history by its own rules, sorted by what kind of thing it is."""

from tests.faults import ownership, passage
from tests.faults.history import Fault, History


def faults(history: History) -> list[Fault]:
    """Every violation in a run. Empty: none of the rules of ownership.py and passage.py was broken."""
    found: list[Fault] = []
    for subject, ops in history.by_subject().items():
        rules = passage if subject.startswith("handoff") else ownership
        found += rules.faults(subject, ops, history)
    return found
