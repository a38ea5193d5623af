"""A machine whose wall clock is off by so many seconds: put this folder on the path of a process."""

import os
import time

_AHEAD = float(os.environ.get("TEST_WALL_CLOCK_AHEAD", "0"))
_time, _time_ns = time.time, time.time_ns
time.time = lambda: _time() + _AHEAD
time.time_ns = lambda: _time_ns() + round(_AHEAD * 1e9)
