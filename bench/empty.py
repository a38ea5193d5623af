"""The ceiling: an empty Flask route under the very same server process."""

from gevent import monkey

monkey.patch_all()

from flask import Flask, Response  # noqa: E402


class Empty(Flask):
    """What the worker asks of an application, with nothing behind it."""

    def stop(self) -> None:
        """Nobody waits here."""

    def close(self) -> None:
        """Nothing to let go of."""

    def fatal_reason(self) -> None:
        """Nothing can break."""


application = Empty("empty", static_folder=None, template_folder=None)


@application.post("/empty")
def empty() -> Response:
    """The least that Flask can answer."""
    return Response(b'{"ok":true}', mimetype="application/json")


@application.get("/healthz")
def healthz() -> Response:
    """For whoever waits until it is up."""
    return Response(b'{"ok":true}', mimetype="application/json")
