"""The style sheet, the script and the icon: bytes of the release, the same for everybody, told apart by digest."""

import hashlib
from collections.abc import Callable
from functools import lru_cache

from flask import Blueprint, Response, request

from app.shipped import folder

_KINDS = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


def add_routes(routes: Blueprint) -> None:
    """/static/<name>, for the files that lie there."""
    for file in sorted(folder("static").iterdir()):
        if file.suffix in _KINDS:
            routes.add_url_rule(f"/static/{file.name}", f"static-{file.name.replace('.', '-')}", _serving(file.name))


def _serving(name: str) -> Callable[[], Response]:
    def serve() -> Response:
        content, tag = _read(name)
        kind = _KINDS["." + name.rpartition(".")[2]]
        response = Response(content, mimetype=kind)
        response.set_etag(tag)
        response.headers["Cache-Control"] = "no-cache"
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["Cross-Origin-Resource-Policy"] = "same-origin"
        response.make_conditional(request.environ)
        return response

    return serve


@lru_cache(maxsize=16)
def _read(name: str) -> tuple[bytes, str]:
    content = (folder("static") / name).read_bytes()
    return content, hashlib.sha256(content).hexdigest()[:32]
