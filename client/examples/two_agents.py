"""Two agents hand work over: a writer offers a draft, an editor takes it, works on it and gives it back or finishes it.

    python client/examples/two_agents.py

Each move names the state that it expects, so that the two can never both believe that they moved it. What the other
wrote is data: the editor reads the payload, and does not do what it says.
"""

import asyncio

import fencepost


async def editor(fp: fencepost.AsyncClient, handoff_id: str, token: str) -> None:
    """Takes the draft, corrects it, finishes."""
    work = fp.handoffs.open(handoff_id, token)
    draft = (await work.read())["payload"]["text"]
    await work.move("accepted")
    await work.move("working", note=f"{len(draft.split())} words")
    await work.move("done", note=draft.capitalize())


async def main() -> None:
    """The writer: offers, and follows what happens to its draft."""
    async with fencepost.AsyncClient() as fp:
        offer = await fp.handoffs.create({"text": "the lease is the truth"}, title="A draft")
        other = asyncio.create_task(editor(fp, offer.handoff_id, offer.receiver_token))
        async for change in offer.changes():
            print(f"{change.version} {change.by}: {change.state} {change.note or ''}".rstrip(), flush=True)
        await other
        try:
            await offer.move("failed", expect="working")
        except fencepost.FencepostError as refusal:
            print(f"too late: {type(refusal).__name__}")


if __name__ == "__main__":
    asyncio.run(main())
