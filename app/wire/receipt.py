"""The bytes of an answer that a receipt signs.

RFC 8785 makes one text of a JSON object, but it does so through doubles, and a stored result keeps numbers that no
double holds. So the result is not canonicalised: `result` is replaced by `result_sha256`, the lower-case hex digest
of its bytes as answered. Nothing else in an answer is more than text, a boolean, null or an integer below 2^53.
"""

import hashlib
from collections.abc import Callable, Mapping
from typing import Any, TypedDict

import rfc8785

from app.wire import errors
from app.wire.json import InvalidJson, NotAnObject, RawJson, read_object
from app.wire.reply import Refused, Reply


def canonical(answer: Mapping[str, object]) -> bytes | None:
    """What is signed for this answer, or None for an object that is no answer of ours.

    `result`, where present, has to be a RawJson. An answer that names its own `result_sha256` is not ours, nor is
    one with a number that is no plain integer: it could be told apart from the signed one and pass for it.
    """
    if "result_sha256" in answer:
        return None
    signed: dict[str, Any] = {name: value for name, value in answer.items() if name not in ("receipt", "result")}
    result = answer.get("result")
    if isinstance(result, RawJson):
        signed["result_sha256"] = hashlib.sha256(result.text.encode("utf-8")).hexdigest()
    try:
        return rfc8785.dumps(signed)
    except rfc8785.CanonicalizationError:
        return None


def signed(reply: Reply, sign: Callable[[bytes], str]) -> Reply:
    """The reply with a receipt, where it is of 2xx; a refusal proves nothing and gets none."""
    if reply.status >= 300:
        return reply
    text = canonical(reply.body)
    assert text is not None  # an answer of ours has a canonical form
    return Reply(reply.status, {**reply.body, "receipt": sign(text)}, reply.headers)


def verified(body: bytes, is_valid: Callable[[bytes, str], bool]) -> Reply:
    """Whether an answer, as received, carries a receipt of this server. Raises Refused for what is no JSON object."""
    try:
        answer = read_object(body, raw=frozenset({"result"}))
    except InvalidJson as fault:
        raise Refused(errors.invalid_json(fault)) from None
    except NotAnObject:
        raise Refused(errors.not_an_object()) from None
    receipt = answer.get("receipt")
    text = canonical(answer)
    return Reply(200, {"valid": text is not None and isinstance(receipt, str) and is_valid(text, receipt)})


class Verified(TypedDict):
    """What /receipts/verify answers."""

    valid: bool
