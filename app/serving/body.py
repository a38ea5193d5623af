"""The body as the application reads it: the parser's faults become the ones that any WSGI server may raise.

EOFError is a body that ended early, ValueError one whose chunks are not framed as HTTP/1.1 asks. The connection
cannot go on after either; that is seen by whoever looks at the parser's own body.
"""

from gunicorn.http import errors  # type: ignore[import-untyped]
from gunicorn.http.body import Body as ParserBody  # type: ignore[import-untyped]


class Body:
    """`wsgi.input`, read in pieces."""

    def __init__(self, body: ParserBody) -> None:
        self._body = body

    def read(self, size: int | None = None) -> bytes:
        """At most `size` bytes, none at the end. Raises EOFError, ValueError and OSError."""
        try:
            return bytes(self._body.read(size))
        except errors.ChunkMissingTerminator as fault:
            if fault.term:
                raise ValueError("a chunk does not end where it should") from None
            raise EOFError("the body ended inside a chunk") from None
        except errors.ParseException as fault:
            raise ValueError(type(fault).__name__) from None
