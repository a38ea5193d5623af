"""A whole story told through an official Python client, of whichever generation runs this file.

`python story_client.py URL [auto|legacy]` with the interpreter of that generation. It imports nothing of ours. Two
agents share a key; a payload passes to the other side, which waits for it; an action is claimed once. Any surprise is
an exception; the last line says which client and which revision told the story.
"""

import json
import sys
from contextlib import AsyncExitStack
from importlib.metadata import version

import anyio


class Story:
    """What happens, told in calls. `call(name, arguments)` gives (is it an error, the answer)."""

    def __init__(self, call):
        self.call = call

    async def told(self, name, **arguments):
        is_error, answer = await self.call(name, arguments)
        assert not is_error, (name, answer)
        return answer

    async def lease(self):
        namespace = (await self.told("create_lease_namespace"))["namespace"]
        work = {"key": "report-2026", "namespace": namespace, "fingerprint": "v1"}
        mine = await self.told("acquire_lease", **work, holder="first")
        assert (mine["ok"], mine["status"], mine["attempt"]) == (True, "held", 1)
        theirs = await self.told("acquire_lease", **work)
        assert (theirs["ok"], theirs["status"], theirs["holder"]) == (False, "held", "first")
        other = await self.told("acquire_lease", **{**work, "fingerprint": "v2"})
        assert (other["ok"], other["status"]) == (False, "conflict")
        proof = {"key": work["key"], "namespace": namespace, "owner_token": mine["owner_token"]}
        renewed = await self.told("renew_lease", **proof, ttl_seconds=120)
        assert renewed["fencing_token"] == mine["fencing_token"]
        checked = await self.told(
            "check_lease", key=work["key"], namespace=namespace, fencing_token=mine["fencing_token"]
        )
        assert (checked["status"], checked["fence"]) == ("held", "current")
        done = await self.told("complete_lease", **proof, result={"pages": 12})
        assert done["status"] == "completed"
        again = await self.told("acquire_lease", **work)
        assert (again["status"], again["result"]) == ("completed", {"pages": 12})
        late = await self.told("renew_lease", **proof)
        assert (late["ok"], late["status"]) == (False, "lost")

    async def handoff(self):
        made = await self.told("create_agent_handoff", payload={"task": "review", "lines": [1, 2]}, note="please")
        theirs = {"handoff_id": made["handoff_id"], "token": made["receiver_token"]}
        ours = {"handoff_id": made["handoff_id"], "token": made["owner_token"]}
        seen = await self.told("read_agent_handoff", **theirs)
        assert (seen["role"], seen["state"], seen["payload"]["lines"]) == ("receiver", "offered", [1, 2])
        news = {}

        async def wait():
            news.update(await self.told("read_agent_handoff", **ours, wait_seconds=25, since_version=1))

        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            await anyio.sleep(0.3)
            move = {"from": "offered", "to": "accepted", "nonce": "n1"}
            moved = await self.told("advance_agent_handoff", **theirs, **move)
            assert (moved["ok"], moved["state"], moved["by"]) == (True, "accepted", "receiver")
        assert (news["wait_reason"], news["state"], news["history"][-1]["by"]) == ("changed", "accepted", "receiver")
        late = await self.told("advance_agent_handoff", **ours, **{"from": "offered", "to": "returned"})
        assert (late["ok"], late["code"], late["current_state"]) == (False, "state_mismatch", "accepted")

    async def once(self, unique):
        action = {"namespace": f"shop-{unique}", "action_key": "charge-1"}
        claimed = await self.told("once_key_claim", **action, payload_sha256="ab")
        assert claimed["status"] == "claimed"
        proof = {**action, "namespace_token": claimed["namespace_token"]}
        assert (await self.told("once_key_claim", **proof))["status"] == "held"
        done = await self.told("once_key_complete", **proof, claim_token=claimed["claim_token"], result={"paid": 7})
        assert done["status"] == "completed"
        again = await self.told("once_key_claim", **proof)
        assert (again["status"], again["result"], again["has_result"]) == ("duplicate", {"paid": 7}, True)
        assert (await self.told("once_key_claim", **action))["status"] == "forbidden"

    async def mistakes(self):
        is_error, answer = await self.call("acquire_lease", {"key": "k", "fingerprnt": "x"})
        assert (is_error, answer["code"], answer["field"]) == (True, "invalid_request", "fingerprnt")
        said = ""
        try:
            await self.call("no_such_tool", {})
        except Exception as fault:  # noqa: BLE001 - each generation has its own class
            said = str(fault)
        assert "Unknown tool" in said, said

    async def tell(self, tools, unique):
        assert len(tools) == len(set(tools)) >= 13, tools
        await self.lease()
        await self.handoff()
        await self.once(unique)
        await self.mistakes()


def answer_of(result):
    """Structured where the generation knows that, else the text."""
    structured = getattr(result, "structured_content", getattr(result, "structuredContent", None))
    text = json.loads(result.content[0].text)
    assert structured in (None, text)
    return getattr(result, "is_error", getattr(result, "isError", None)), text


async def today(url, mode):
    from mcp import Client

    async with Client(url, mode=mode) as client:

        async def call(name, arguments):
            return answer_of(await client.call_tool(name, arguments))

        tools = [tool.name for tool in (await client.list_tools()).tools]
        await Story(call).tell(tools, mode)
        return client.protocol_version


async def before(url):
    from mcp import ClientSession
    from mcp.client.streamable_http import streamablehttp_client  # type: ignore[attr-defined]

    async with AsyncExitStack() as stack:
        read, write, _ = await stack.enter_async_context(streamablehttp_client(url))
        session = await stack.enter_async_context(ClientSession(read, write))
        opened = await session.initialize()
        await session.send_ping()

        async def call(name, arguments):
            return answer_of(await session.call_tool(name, arguments))

        tools = [tool.name for tool in (await session.list_tools()).tools]
        await Story(call).tell(tools, version("mcp"))
        return opened.protocolVersion  # type: ignore[attr-defined]


async def main(url, mode="auto"):
    generation = version("mcp")
    revision = await (before(url) if generation.startswith("1.") else today(url, mode))
    sys.stdout.write(f"told by {generation} in {revision}\n")


anyio.run(main, *sys.argv[1:])  # type: ignore[arg-type]
