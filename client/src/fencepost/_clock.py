"""The one steady clock that everything here counts on: nobody sets it, and it counts a suspended machine too.

A lease that ran out while the laptop slept is over; a clock that stopped meanwhile would not know.
"""

import time


def _reader() -> int | None:
    for name in ("CLOCK_BOOTTIME", "CLOCK_MONOTONIC"):
        if hasattr(time, name):
            return int(getattr(time, name))
    return None


_CLOCK = _reader()


def steady() -> float:
    """Seconds since some moment in the past, the same one for every process of this machine."""
    return time.monotonic() if _CLOCK is None else time.clock_gettime(_CLOCK)
