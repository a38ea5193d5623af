"""A plugin of pytest: tests meet the mutant that MUTANT names, in their own process and in each server."""

import os
from typing import Any

from tests.faults.mutants import BY_NAME
from tests.real.server import RunningServer

BY_NAME[os.environ["MUTANT"]]()
_right = RunningServer.__init__


def _with_mutant(self: RunningServer, **arguments: Any) -> None:
    _right(self, **{"application": "tests.faults.mutant_app:application", **arguments})


vars_of: Any = RunningServer
vars_of.__init__ = _with_mutant
