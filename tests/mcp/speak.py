"""A caller of `/mcp` as plain as HTTP. Every reply is judged by the SDK's models before it is given back."""

import json
from collections.abc import Mapping
from itertools import count
from typing import Any

from tests.mcp.oracle import NEWEST, judge
from tests.real.api import Answer, Api

VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
ENVELOPE = {VERSION: NEWEST, CAPABILITIES: {}}


def headers_of(revision: str, method: str, name: str | None = None) -> dict[str, str]:
    """What a client of this revision sends beside the body."""
    headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": revision}
    if revision == NEWEST:
        headers["Mcp-Method"] = method
        if name is not None:
            headers["Mcp-Name"] = name
    elif revision < "2025-06-18":
        del headers["MCP-Protocol-Version"]
    return headers


class Mcp(Api):
    """Calls in one revision of the protocol."""

    def __init__(self, port: int, revision: str = NEWEST) -> None:
        super().__init__(port)
        self.revision = revision
        self._ids = count(1)

    def rpc(self, method: str, params: Mapping[str, Any] | None = None, **headers: str) -> Answer:
        """One request. `headers` beyond those of the revision are for special cases."""
        text = json.dumps(dict(params or {}))
        return self.spelled(method, text, (params or {}).get("name"), **headers)

    def spelled(self, method: str, params: str, name: str | None = None, **headers: str) -> Answer:
        """The same with the params (a JSON object) as spelled here."""
        if self.revision == NEWEST:
            meta = json.dumps(ENVELOPE)
            params = f'{{"_meta":{meta}' + (f",{params.strip()[1:]}" if params.strip() != "{}" else "}")
        body = f'{{"jsonrpc":"2.0","id":{next(self._ids)},"method":{json.dumps(method)},"params":{params}}}'
        answer = self.text("/mcp", body, {**headers_of(self.revision, method, name), **headers})
        judge(method, self.revision, answer.body)
        return answer

    def tool(self, name: str, arguments: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The result of a tool: `content`, `structuredContent`, `isError` where it is one."""
        result: dict[str, Any] = self.rpc("tools/call", {"name": name, "arguments": arguments or {}}).body["result"]
        return result

    def structured(self, name: str, **arguments: Any) -> dict[str, Any]:
        """The structured answer of a tool that did not end in an error."""
        result = self.tool(name, arguments)
        assert "isError" not in result, result
        told: dict[str, Any] = result["structuredContent"]
        return told
