"""The server with the mutant that the variable MUTANT names."""

from gevent import monkey

monkey.patch_all()

import os  # noqa: E402

from app.factory import create_app  # noqa: E402
from app.serving.prepare import prepared  # noqa: E402
from app.settings import load  # noqa: E402
from tests.faults.mutants import BY_NAME  # noqa: E402

BY_NAME[os.environ["MUTANT"]]()
application = create_app(prepared(load()))
