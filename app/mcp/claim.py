"""The once-key tools. Answers of 2xx are signed as over REST: a receipt is worth the same wherever it was given."""

from app.mcp.refusals import BusyRefusal
from app.mcp.tool import Asker, Entry, Hints, Tool
from app.mcp.words import ONCE_CLAIM, ONCE_COMPLETE, ONCE_RELEASE, ONCE_RENEW
from app.services.claim import Claims
from app.services.receipts import Receipts
from app.wire import claim as wire
from app.wire import claim_answers as answers
from app.wire import receipt
from app.wire.reply import Reply

_CAP = 32_768


def tools(claims: Claims, receipts: Receipts) -> list[Entry]:
    """Claim, complete, release and renew."""

    def claim(asked: wire.ClaimAction, asker: Asker) -> Reply:
        answer = claims.claim(
            namespace=asked.namespace,
            action_key=asked.action_key,
            namespace_token=asked.namespace_token,
            payload_sha256=asked.payload_sha256,
            ttl_seconds=asked.ttl,
            lease_ttl_seconds=asked.lease_ttl,
            claim_token=asked.claim_token,
            wait_seconds=asked.wait_seconds,
            caller=asker.caller,
        )
        return signed(
            wire.claimed(asked, answer.outcome, answer.claim_token, answer.namespace_token, answer.suggested_name)
        )

    def complete(asked: wire.CompleteAction, asker: Asker) -> Reply:
        outcome = claims.complete(
            namespace=asked.namespace,
            action_key=asked.action_key,
            namespace_token=asked.namespace_token,
            claim_token=asked.claim_token,
            result=None if asked.result is None else asked.result.text,
            ttl_seconds=asked.ttl,
        )
        return signed(wire.completed(asked, outcome))

    def release(asked: wire.ReleaseAction, asker: Asker) -> Reply:
        outcome = claims.release(
            namespace=asked.namespace,
            action_key=asked.action_key,
            namespace_token=asked.namespace_token,
            claim_token=asked.claim_token,
        )
        return signed(wire.released(asked, outcome))

    def renew(asked: wire.RenewAction, asker: Asker) -> Reply:
        outcome = claims.renew(
            namespace=asked.namespace,
            action_key=asked.action_key,
            namespace_token=asked.namespace_token,
            claim_token=asked.claim_token,
            lease_ttl_seconds=asked.lease_ttl,
        )
        return signed(wire.renewed(asked, outcome))

    def signed(reply: Reply) -> Reply:
        return receipt.signed(reply, receipts.sign)

    return [
        Tool(
            name="once_key_claim",
            title="Claim an action, to do it exactly once",
            description=ONCE_CLAIM,
            members=wire.ClaimAction,
            act=claim,
            answers=answers.CLAIM,
            refusals=(BusyRefusal,),
            hints=Hints(reads_only=False, is_idempotent=False),
            cap=_CAP,
        ),
        Tool(
            name="once_key_complete",
            title="Record that a claimed action is done",
            description=ONCE_COMPLETE,
            members=wire.CompleteAction,
            act=complete,
            answers=answers.COMPLETE,
            refusals=(),
            hints=Hints(reads_only=False, is_idempotent=True),
            cap=_CAP,
        ),
        Tool(
            name="once_key_release",
            title="Give up a claimed action, undone",
            description=ONCE_RELEASE,
            members=wire.ReleaseAction,
            act=release,
            answers=answers.RELEASE,
            refusals=(),
            hints=Hints(reads_only=False, is_idempotent=True),
            cap=_CAP,
        ),
        Tool(
            name="once_key_renew",
            title="Keep the lease of a claimed action",
            description=ONCE_RENEW,
            members=wire.RenewAction,
            act=renew,
            answers=answers.RENEW,
            refusals=(),
            hints=Hints(reads_only=False, is_idempotent=True),
            cap=_CAP,
        ),
    ]
