"""The judge of replies: the official SDK's models of each revision, which know what a message may hold."""

from collections.abc import Mapping
from typing import Any

from mcp_types.jsonrpc import JSONRPCError, JSONRPCResponse
from mcp_types.methods import CLIENT_REQUESTS, serialize_server_result
from mcp_types.version import KNOWN_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

REVISIONS = tuple(KNOWN_PROTOCOL_VERSIONS)
NEWEST = MODERN_PROTOCOL_VERSIONS[-1]


def judge(method: str, revision: str, reply: Mapping[str, Any]) -> None:
    """Fail unless the reply is one of this revision: an envelope, and a result with no member that it does not know."""
    if "error" in reply:
        JSONRPCError.model_validate(reply, extra="forbid")
        return
    JSONRPCResponse.model_validate(reply, extra="forbid")
    assert (method, revision) in CLIENT_REQUESTS, f"{revision} has no {method}, but it was answered"
    judge_result(method, revision, reply["result"])


def judge_result(method: str, revision: str, result: Mapping[str, Any]) -> None:
    """Fail unless it is the result of this method."""
    known = serialize_server_result(method, revision, result)
    assert set(result) <= set(known), f"{method} in {revision} knows no {set(result) - set(known)}"
