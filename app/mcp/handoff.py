"""The handoff tools. What REST has in paths and headers (the name, the token, the known version) are arguments here."""

from collections.abc import Callable

from app.mcp.refusals import (
    FullRefusal,
    LimitRefusal,
    NotFoundRefusal,
    NotifyRefusal,
    PayloadTooLargeRefusal,
    WaitersRefusal,
)
from app.mcp.tool import BEGINS, LOOKS, Asker, Entry, Tool
from app.mcp.words import ADVANCE, CREATE, READ
from app.push import guard, target
from app.services.handoff import Handoffs
from app.wire import handoff as wire
from app.wire import handoff_answers as answers
from app.wire import handoff_members as members
from app.wire.reply import Reply

_CREATE_CAP = 24_576
_MOVE_CAP = 8_192


def tools(
    handoffs: Handoffs, *, public_url: str, notify_secret: Callable[[str], str], webhooks: guard.Policy
) -> list[Entry]:
    """Create, read and advance; the arguments are those of the REST blueprint."""

    def create(asked: members.CreateHandoff, asker: Asker) -> Reply:
        if asked.notify_url is not None:
            verdict = guard.judge_url(asked.notify_url, webhooks)
            if isinstance(verdict, target.Refused):
                return wire.notify_url_refused(verdict.says)
        creation = handoffs.create(
            payload=asked.payload.text,
            note=asked.note,
            machine=asked.machine,
            ttl_seconds=asked.ttl_seconds,
            title=asked.title,
            audience=asked.audience,
            notify_url=asked.notify_url,
            nonce=asked.nonce,
            owner_token=asked.owner_token,
            receiver_token=asked.receiver_token,
            address=asker.address,
        )
        return wire.created(
            creation.outcome,
            owner_token=creation.owner_token,
            receiver_token=creation.receiver_token,
            public_url=public_url,
            notify_secret=notify_secret,
        )

    def read(asked: members.ReadHandoff, asker: Asker) -> Reply:
        handoff_id = members.known_form(asked.handoff_id)
        if asked.wait_seconds is None and asked.since_version is None:
            return wire.read(handoffs.read(token=asked.token, handoff_id=handoff_id), None)
        outcome = handoffs.wait(
            token=asked.token,
            handoff_id=handoff_id,
            known=None if asked.since_version is None else frozenset([asked.since_version]),
            wait_seconds=asked.wait_seconds or 0,
            caller=asker.caller,
        )
        return wire.waited(outcome)

    def advance(asked: members.AdvanceHandoff, asker: Asker) -> Reply:
        outcome = handoffs.move(
            token=asked.token,
            handoff_id=members.known_form(asked.handoff_id),
            to=asked.to,
            expected=asked.expected,
            nonce=asked.nonce,
            note=asked.note,
        )
        return wire.moved(outcome)

    return [
        Tool(
            "create_agent_handoff",
            "Create a handoff",
            CREATE,
            members.CreateHandoff,
            create,
            answers.CREATE,
            BEGINS,
            _CREATE_CAP,
            (
                PayloadTooLargeRefusal,
                NotifyRefusal,
                LimitRefusal,
                FullRefusal,
            ),
        ),
        Tool(
            "read_agent_handoff",
            "Read a handoff, or wait for news of it",
            READ,
            members.ReadHandoff,
            read,
            {200: (answers.SeenAnswer, answers.WaitedAnswer), 410: (answers.ExpiredAnswer,)},
            LOOKS,
            _MOVE_CAP,
            (NotFoundRefusal, WaitersRefusal),
        ),
        Tool(
            "advance_agent_handoff",
            "Move a handoff into another state",
            ADVANCE,
            members.AdvanceHandoff,
            advance,
            answers.MOVE,
            BEGINS,
            _MOVE_CAP,
            (NotFoundRefusal,),
        ),
    ]
