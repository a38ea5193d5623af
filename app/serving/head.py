"""Heads that the parser lets pass and that HTTP/1.1 or this server does not (RFC 9112).

What two parsers in a row may read differently is refused here, before any route: a request that names no host or
no possible one, a fragment in the target, and a transfer coding besides `chunked`, which nobody here would undo.
"""

import re

from gunicorn.http import errors  # type: ignore[import-untyped]
from gunicorn.http.message import Request  # type: ignore[import-untyped]

_HOST = re.compile(r"(?:\[[0-9A-Za-z:.]+\]|[0-9A-Za-z._~%!$&'()*+,;=-]*)(?::[0-9]*)?", re.ASCII)


def check(request: Request) -> None:
    """Raises a ParseException for a request that is not to be served."""
    hosts = [value for name, value in request.headers if name == "HOST"]
    codings = [value for name, value in request.headers if name == "TRANSFER-ENCODING"]
    if (not hosts and request.version >= (1, 1)) or not all(_HOST.fullmatch(host) for host in hosts):
        raise errors.InvalidHeader("HOST")
    if "#" in request.uri:
        raise errors.InvalidRequestLine("target")
    if any(coding.strip().lower() != "chunked" for coding in codings):
        raise errors.UnsupportedTransferCoding(codings[0])
