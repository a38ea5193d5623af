from collections.abc import Callable

import pytest

from app.core.outbox import Answered
from app.push.answer import MOST_READ, read_answer

NOW = 1_800_000_000.0


def pieces(*texts: bytes) -> Callable[[int], bytes]:
    """A connection that yields these pieces, cut to what is asked for, then its end."""
    left = list(texts)

    def receive(room: int) -> bytes:
        if not left:
            return b""
        piece = left.pop(0)
        if len(piece) > room:
            left.insert(0, piece[room:])
        return piece[:room]

    return receive


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\n", Answered(200)),
        (b"HTTP/1.0 204 \r\n\r\n", Answered(204)),
        (b"HTTP/1.1 204\r\n\r\n", Answered(204)),
        (b"HTTP/1.1 299 Odd\n\n", Answered(299)),
        (b"HTTP/1.1 404 Not Found\r\nServer: x\r\n\r\nbody", Answered(404)),
        (b"HTTP/1.1 503 Busy\r\nRetry-After: 120\r\n\r\n", Answered(503, 120)),
        (b"HTTP/1.1 503 Busy\r\nA: b\r\nretry-AFTER:  7 \r\nC: d\r\n\r\n", Answered(503, 7)),
        (b"HTTP/1.1 429 Slow\r\nRetry-After: Fri, 15 Jan 2027 08:01:00 GMT\r\n\r\n", Answered(429, 60)),
        (b"HTTP/1.1 429 Slow\r\nRetry-After: Fri, 15 Jan 2021 08:01:00 GMT\r\n\r\n", Answered(429, 0)),
        (b"HTTP/1.1 429 Slow\r\nRetry-After: soon\r\n\r\n", Answered(429)),
        (b"HTTP/1.1 429 Slow\r\nRetry-After: -5\r\n\r\n", Answered(429)),
        (b"HTTP/1.1 429 Slow\r\nRetry-After: " + b"9" * 400 + b"\r\n\r\n", Answered(429, 999_999_999)),
        (b"HTTP/1.1 500 Oops\r\n\r\nRetry-After: 5\r\n", Answered(500)),
        (b"HTTP/1.1 302 Found\r\nLocation: http://x/\r\n\r\n", Answered(302)),
        (b"HTTP/1.1 101 Switching\r\n\r\n", None),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", Answered(200)),
        (b"HTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 102 P\r\n\r\nHTTP/1.1 410 Gone\r\n\r\n", Answered(410)),
        (b"HTTP/1.1 100 Continue\r\n\r\n", None),
        (b"", None),
        (b"HTTP/1.1 200 OK", None),
        (b"HTTP/2 200\r\n\r\n", None),
        (b"HTTP/1.1 999 What\r\n\r\n", None),
        (b"HTTP/1.1 20 OK\r\n\r\n", None),
        (b"HTTP/1.1 2000 OK\r\n\r\n", None),
        (b"<html>200 OK</html>", None),
        (b"\x16\x03\x01\x02\x00\x01", None),
        (b"\r\nHTTP/1.1 200 OK\r\n\r\n", None),
        (b"SSH-2.0-OpenSSH_9.2\r\n", None),
    ],
)
def test_an_answer_is_known_by_its_first_line_in_any_pieces(answer: bytes, expected: Answered | None) -> None:
    assert read_answer(pieces(answer), now=NOW) == expected
    assert read_answer(pieces(*(bytes([byte]) for byte in answer)), now=NOW) == expected


def test_no_more_than_a_kibibyte_is_asked_for() -> None:
    taken = 0

    def receive(room: int) -> bytes:
        nonlocal taken
        assert room > 0
        taken += room
        return b"HTTP/1.1 500 No\r\n".ljust(room, b"x") if taken == room else b"x" * room

    assert read_answer(receive, now=NOW) == Answered(500)
    assert taken == MOST_READ == 1_024


def test_interim_answers_do_not_add_to_the_kibibyte() -> None:
    interim = b"HTTP/1.1 100 Continue\r\n\r\n"
    assert read_answer(pieces(interim * 39 + b"HTTP/1.1 200 OK\r\n\r\n"), now=NOW) == Answered(200)
    assert read_answer(pieces(interim * 41 + b"HTTP/1.1 200 OK\r\n\r\n"), now=NOW) is None


def test_a_success_waits_for_nothing_after_its_first_line() -> None:
    def receive(room: int) -> bytes:
        assert room == MOST_READ, "asked again"
        return b"HTTP/1.1 200 OK\r\nX-Slow: "

    assert read_answer(receive, now=NOW) == Answered(200)
