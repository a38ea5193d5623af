"""The once-key tools. Answers of 2xx are signed as over REST: a receipt is worth the same wherever it was given."""

from app.mcp.refusals import UnpaidRefusal, WaitersRefusal
from app.mcp.tool import BEGINS, SETTLES, Asker, Entry, Tool
from app.mcp.words import ONCE_CLAIM, ONCE_COMPLETE, ONCE_RELEASE, ONCE_RENEW
from app.services.claim import Claims
from app.services.receipts import Receipts
from app.wire import claim as wire
from app.wire import claim_answers as answers
from app.wire import receipt
from app.wire.prices import CLAIM, FREE, Prices, told
from app.wire.reply import Reply

_CAP = 32_768


def tools(claims: Claims, receipts: Receipts, prices: Prices = FREE) -> list[Entry]:
    """Claim, complete, release and renew; what a price stands for says so."""
    cost = told(prices, CLAIM)

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
            credit_token=asked.credit_token,
        )
        return signed(
            wire.claimed(
                asked,
                answer.outcome,
                answer.claim_token,
                answer.namespace_token,
                answer.suggested_name,
                answer.charged,
            )
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
            "once_key_claim",
            "Claim an action, to do it exactly once",
            ONCE_CLAIM if cost is None else f"{ONCE_CLAIM}\n{cost}",
            wire.ClaimAction,
            claim,
            answers.CLAIM,
            BEGINS,
            _CAP,
            (WaitersRefusal,) if cost is None else (WaitersRefusal, UnpaidRefusal),
        ),
        Tool(
            "once_key_complete",
            "Record that a claimed action is done",
            ONCE_COMPLETE,
            wire.CompleteAction,
            complete,
            answers.COMPLETE,
            SETTLES,
            _CAP,
        ),
        Tool(
            "once_key_release",
            "Give up a claimed action, undone",
            ONCE_RELEASE,
            wire.ReleaseAction,
            release,
            answers.RELEASE,
            SETTLES,
            _CAP,
        ),
        Tool(
            "once_key_renew",
            "Keep the lease of a claimed action",
            ONCE_RENEW,
            wire.RenewAction,
            renew,
            answers.RENEW,
            SETTLES,
            _CAP,
        ),
    ]
