"""What the exit codes say. A command that runs passes its own on."""

DONE = 0
REFUSED = 1
USAGE = 2
COMPLETED = 3
"""It was done before; there is a result and nothing to do."""
UNREACHABLE = 69
NOT_RECORDED = 73
"""The command succeeded, and its output could not be recorded as the result."""
NOT_WRITTEN = 74
"""What was to be shown could not be written: a full disk, a closed output."""
NOT_GRANTED = 75
"""The lease or claim could not be had in the time given."""
LOST = 76
"""The lease or claim was lost."""
CANNOT_RUN = 126
NOT_FOUND = 127
