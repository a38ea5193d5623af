"""gunicorn's entry: patches gevent first, makes the app, nothing else."""

from gevent import monkey

monkey.patch_all()

from app.factory import create_app  # noqa: E402
from app.serving.prepare import prepared  # noqa: E402
from app.settings import load  # noqa: E402

application = create_app(prepared(load()))
