"""A machine as a drawing, made here from the declared order: an SVG that needs no script.

States stand below each other, so twelve of them fit a phone. An arrow to the next state goes straight down; one that
leaps over some bends out on the right, the farther the longer it is. What was walked, where it stands and where it may
go now are told by stroke and fill as well as by colour, and in words for who cannot see it.
"""

from itertools import pairwise

from markupsafe import Markup

from app.core.handoff import HandoffRecord

_STEP, _BOX, _TOP, _LEFT = 52, 30, 6, 6
_LETTER, _SIDES = 8.1, 26


def draw(record: HandoffRecord, allowed: tuple[str, ...]) -> Markup:
    """The machine of a handoff; `allowed` are the moves that light up."""
    machine = record.machine
    places = {state: place for place, state in enumerate(machine.states)}
    walked = [entry.state for entry in record.history]
    steps = set(pairwise(walked))
    width = max(120.0, max(map(len, machine.states)) * _LETTER + _SIDES)
    right = _LEFT + width
    arrows: list[tuple[int, Markup]] = []
    widest = 0.0
    for state, targets in machine.transitions.items():
        for target in targets:
            kind = _kind(state, target, record.state, allowed, steps)
            leap = places[target] - places[state]
            bend = 0.0 if leap == 1 else 14.0 + leap * 13.0
            widest = max(widest, bend)
            arrows.append((("", "walked", "allowed").index(kind), _arrow(places[state], leap, bend, right, kind)))
    # What matters is drawn last, so that it lies on top.
    lines = [line for _, line in sorted(arrows, key=lambda arrow: arrow[0])]
    boxes = [_state(record, state, place, width, walked, allowed) for state, place in places.items()]
    height = _TOP * 2 + (len(places) - 1) * _STEP + _BOX
    return Markup('<svg class="machine" viewBox="0 0 %d %d" role="img" aria-label="%s">%s%s</svg>') % (
        right + widest + 12,
        height,
        in_words(record, allowed),
        Markup("").join(lines),
        Markup("").join(boxes),
    )


def in_words(record: HandoffRecord, allowed: tuple[str, ...]) -> str:
    """The same for who cannot see it."""
    walked = " to ".join(entry.state for entry in record.history)
    rest = ", ".join(allowed) or "nowhere: it has ended"
    return f"States {', '.join(record.machine.states)}. Walked {walked}. May go to {rest}."


def _kind(state: str, target: str, now: str, allowed: tuple[str, ...], steps: set[tuple[str, str]]) -> str:
    if (state, target) in steps:
        return "walked"
    return "allowed" if state == now and target in allowed else ""


def _arrow(place: int, leap: int, bend: float, right: float, kind: str) -> Markup:
    if leap == 1:
        x, top = _LEFT + 28, _TOP + place * _STEP + _BOX
        path = f"M{x} {top}V{top + _STEP - _BOX - 6}"
        tip = top + _STEP - _BOX
        head = f"{x},{tip} {x - 5},{tip - 8} {x + 5},{tip - 8}"
    else:
        start = _TOP + place * _STEP + _BOX * 0.65
        end = _TOP + (place + leap) * _STEP + _BOX * 0.35
        far = right + bend * 1.3
        path = f"M{right:.0f} {start:.0f}C{far:.0f} {start:.0f} {far:.0f} {end:.0f} {right + 6:.0f} {end:.0f}"
        head = f"{right:.0f},{end:.0f} {right + 8:.0f},{end - 5:.0f} {right + 8:.0f},{end + 5:.0f}"
    return Markup('<path class="%s" d="%s"/><polygon class="%s" points="%s"/>') % (kind, path, kind, head)


def _state(
    record: HandoffRecord, state: str, place: int, width: float, walked: list[str], allowed: tuple[str, ...]
) -> Markup:
    kind = "now" if state == record.state else "passed" if state in walked else "allowed" if state in allowed else ""
    y = _TOP + place * _STEP
    inner = ""
    if record.machine.is_final(state):
        inner = Markup('<rect x="%d" y="%d" width="%d" height="%d" rx="3"/>') % (_LEFT + 3, y + 3, width - 6, _BOX - 6)
    return Markup(
        '<g class="%s"><rect x="%d" y="%d" width="%d" height="%d" rx="6"/>%s<text x="%d" y="%d">%s</text></g>'
    ) % (kind, _LEFT, y, width, _BOX, inner, _LEFT + 12, y + 20, state)
