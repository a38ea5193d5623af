"""Reading a request's body: counted while it comes, cut by a deadline, complete or refused.

Frameworks trust a length that they are told; a chunked body has none, and one longer than the cap was once cut
at the cap and accepted. So one byte more than the cap is asked for. Nothing of a body that is too long, too slow
or cut short is used; the server ends a connection whose body was not read to its end.
"""

from collections.abc import Mapping
from typing import Any

import gevent

from app.wire import errors
from app.wire.reply import Refused


def read(environ: Mapping[str, Any], cap: int, deadline_seconds: float, media: str = "application/json") -> bytes:
    """The whole body, at most `cap` bytes, of this media type. Raises Refused with 413, 415, 400 or 408."""
    length = _declared(environ)
    if length is not None and length > cap:
        raise Refused(errors.body_too_large(cap))
    body = _read(environ, cap + 1, deadline_seconds) if length != 0 else b""
    if len(body) > cap:
        raise Refused(errors.body_too_large(cap))
    if length is not None and len(body) < length:
        raise Refused(errors.incomplete_body())
    if body:
        _check_media(environ, media)
    return body


def _declared(environ: Mapping[str, Any]) -> int | None:
    """The announced length; 0 without a body, None for a chunked one."""
    if "HTTP_TRANSFER_ENCODING" in environ:
        return None
    text = environ.get("CONTENT_LENGTH") or "0"
    return int(text) if text.isascii() and text.isdigit() else 0


def _read(environ: Mapping[str, Any], most: int, deadline_seconds: float) -> bytes:
    stream = environ["wsgi.input"]
    late = gevent.Timeout(deadline_seconds)
    late.start()
    try:
        pieces: list[bytes] = []
        size = 0
        while size < most:
            piece = stream.read(most - size)
            if not piece:
                break
            pieces.append(piece)
            size += len(piece)
        return b"".join(pieces)
    except gevent.Timeout as fired:
        if fired is not late:
            raise
        raise Refused(errors.request_timeout()) from None
    except (OSError, EOFError):
        raise Refused(errors.incomplete_body()) from None
    except ValueError:  # what came is no body in HTTP's framing
        raise Refused(errors.invalid_http()) from None
    finally:
        late.close()


def _check_media(environ: Mapping[str, Any], media: str) -> None:
    sent = (environ.get("CONTENT_TYPE") or "").split(";")[0].strip().lower()
    if sent != media:
        raise Refused(errors.unsupported_media_type())
    if (environ.get("HTTP_CONTENT_ENCODING") or "identity").strip().lower() != "identity":
        raise Refused(errors.unsupported_media_type("coding"))
