"""The bytes of WebSocket frames (RFC 6455, section 5): what a server sends, and a meter for what a client sends.

The library that reads the frames buffers first and judges afterwards, and counts neither frames nor unread
messages. So the meter follows the headers through the bytes before the library sees them: it says how far a chunk
may be passed on and why not further. Whatever is merely malformed it leaves to the library, which answers 1002 and
1007 itself.

A client's budget counts messages and control frames. The pieces of a fragmented message are bounded by the size
of the whole, so only small pieces count, otherwise 32 KiB in one-byte pieces would be 32,768 frames for free. Time
in which we ourselves did not read is given back: what piled up meanwhile was sent in good time.
"""

from dataclasses import dataclass

TEXT, CLOSE, PING = 0x1, 0x8, 0x9
LARGEST_MESSAGE = 32 * 1024
"""Bytes of a message from a client, all its fragments together."""
FRAMES_PER_SECOND = 20
_SMALL_PIECE = 512
_LONGEST_REASON = 123


@dataclass(frozen=True, slots=True)
class Closing:
    """A close code (RFC 6455, section 7.4) and a short reason in ASCII."""

    code: int
    reason: str


TOO_BIG = Closing(1009, "a message is at most 32768 bytes")
TOO_MANY_FRAMES = Closing(4100, "more than 20 frames a second")


def text_frame(text: bytes) -> bytes:
    """One whole, unmasked text frame around UTF-8 text."""
    return _header(TEXT, len(text)) + text


def ping_frame() -> bytes:
    """A ping without payload."""
    return _header(PING, 0)


def close_frame(closing: Closing) -> bytes:
    """A close frame; a reason longer than 123 bytes is cut."""
    payload = closing.code.to_bytes(2, "big") + closing.reason.encode("ascii")[:_LONGEST_REASON]
    return _header(CLOSE, len(payload)) + payload


def holds_close(frames: bytes) -> bool:
    """Whether one of these whole, unmasked frames of a server is a close frame."""
    position = 0
    while position + 2 <= len(frames):
        if frames[position] & 0x0F == CLOSE:
            return True
        length = frames[position + 1] & 0x7F
        extended = {126: 2, 127: 8}.get(length, 0)
        if extended:
            length = int.from_bytes(frames[position + 2 : position + 2 + extended], "big")
        position += 2 + extended + length
    return False


def _header(opcode: int, length: int) -> bytes:
    first = 0x80 | opcode
    if length < 126:
        return bytes((first, length))
    if length < 1 << 16:
        return bytes((first, 126)) + length.to_bytes(2, "big")
    return bytes((first, 127)) + length.to_bytes(8, "big")


class FrameMeter:
    """Follows the frames of one client. Feed it every byte in order; ask `verdict` when it stops short."""

    __slots__ = (
        "_allowance",
        "_ends_message",
        "_filled_at",
        "_forgiven",
        "_head",
        "_in_message",
        "_left",
        "messages",
        "verdict",
    )

    def __init__(self, now: float) -> None:
        self.verdict: Closing | None = None
        self.messages = 0
        """Messages that have passed in full."""
        self._head = b""
        self._left = 0
        self._in_message = 0
        self._ends_message = False
        self._allowance = float(FRAMES_PER_SECOND)
        self._forgiven = 0.0
        self._filled_at = now

    def forgive(self, seconds: float) -> None:
        """Nothing was read for so long, and not by the client's fault."""
        self._forgiven += seconds * FRAMES_PER_SECOND

    def feed(self, chunk: bytes, now: float) -> int:
        """How many bytes of the chunk may be passed on; fewer than all only together with a verdict.

        `now` is monotonic seconds.
        """
        position = 0
        while position < len(chunk):
            if self._left:
                step = min(self._left, len(chunk) - position)
                self._left -= step
                position += step
            else:
                start = position
                position += self._take_head(chunk, position)
                if not self._is_head_whole():
                    break
                self.verdict = self._judge(now)
                if self.verdict is not None:
                    return start
            self._settle()
        return position

    def _take_head(self, chunk: bytes, start: int) -> int:
        """Move bytes from the chunk to the head until it is whole or the chunk is used up; how many."""
        position = start
        while position < len(chunk) and not self._is_head_whole():
            step = self._head_length() - len(self._head)
            self._head += chunk[position : position + step]
            position = min(len(chunk), position + step)
        return position - start

    def _head_length(self) -> int:
        if len(self._head) < 2:
            return 2
        masked = 4 if self._head[1] & 0x80 else 0
        return 2 + {126: 2, 127: 8}.get(self._head[1] & 0x7F, 0) + masked

    def _is_head_whole(self) -> bool:
        return len(self._head) >= 2 and len(self._head) == self._head_length()

    def _judge(self, now: float) -> Closing | None:
        opcode, is_last = self._head[0] & 0x0F, bool(self._head[0] & 0x80)
        length = self._head[1] & 0x7F
        if length >= 126:
            length = int.from_bytes(self._head[2 : 4 if length == 126 else 10], "big")
        self._head = b""
        is_control = bool(opcode & 0x8)
        if (opcode or length < _SMALL_PIECE) and not self._spend(now):
            return TOO_MANY_FRAMES
        if not is_control:
            self._in_message = length if opcode else self._in_message + length
            if self._in_message > LARGEST_MESSAGE:
                return TOO_BIG
        self._left = length
        self._ends_message = is_last and not is_control
        return None

    def _settle(self) -> None:
        if not self._left and self._ends_message:
            self._ends_message = False
            self._in_message = 0
            self.messages += 1

    def _spend(self, now: float) -> bool:
        self._allowance = min(FRAMES_PER_SECOND, self._allowance + (now - self._filled_at) * FRAMES_PER_SECOND)
        self._filled_at = now
        if self._allowance >= 1:
            self._allowance -= 1
            return True
        self._forgiven -= 1
        return self._forgiven >= 0
