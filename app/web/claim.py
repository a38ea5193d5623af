"""The once-key over REST, at the root and under /services/v1; receipts and the keys that verify them."""

from flask import Blueprint

from app.services.claim import Claims, Rotated
from app.services.receipts import Receipts
from app.web.edge import Call, Edge
from app.wire import claim as wire
from app.wire import receipt
from app.wire.members import parse
from app.wire.reply import Reply

_CAP = 32_768
_VERIFY_CAP = 65_536
_PREFIXES = {"once_root": "", "once_v1": "/services/v1"}


def blueprints(edge: Edge, claims: Claims, receipts: Receipts) -> list[Blueprint]:
    """The same routes twice, so that programs written for the public services of this kind find them."""
    mounted = [_mount(edge, claims, receipts, name, prefix) for name, prefix in _PREFIXES.items()]
    keys = Blueprint("receipt_keys", __name__, url_prefix="/.well-known")
    edge.route(keys, "/fencepost-keys.json", lambda call: Reply(200, receipts.published()), method="GET")
    return [*mounted, keys]


def _mount(edge: Edge, claims: Claims, receipts: Receipts, name: str, prefix: str) -> Blueprint:
    routes = Blueprint(name, __name__, url_prefix=prefix or None)

    def claim(call: Call) -> Reply:
        asked = parse(wire.ClaimAction, call.body)
        answer = claims.claim(
            namespace=asked.namespace,
            action_key=asked.action_key,
            namespace_token=asked.namespace_token,
            payload_sha256=asked.payload_sha256,
            ttl_seconds=asked.ttl,
            lease_ttl_seconds=asked.lease_ttl,
            claim_token=asked.claim_token,
            wait_seconds=asked.wait_seconds,
            caller=call.connection,
            credit_token=asked.credit_token or call.environ.get("HTTP_X_CREDIT_TOKEN"),
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

    def complete(call: Call) -> Reply:
        asked = parse(wire.CompleteAction, call.body)
        outcome = claims.complete(
            namespace=asked.namespace,
            action_key=asked.action_key,
            namespace_token=asked.namespace_token,
            claim_token=asked.claim_token,
            result=None if asked.result is None else asked.result.text,
            ttl_seconds=asked.ttl,
        )
        return signed(wire.completed(asked, outcome))

    def release(call: Call) -> Reply:
        asked = parse(wire.ReleaseAction, call.body)
        outcome = claims.release(
            namespace=asked.namespace,
            action_key=asked.action_key,
            namespace_token=asked.namespace_token,
            claim_token=asked.claim_token,
        )
        return signed(wire.released(asked, outcome))

    def renew(call: Call) -> Reply:
        asked = parse(wire.RenewAction, call.body)
        outcome = claims.renew(
            namespace=asked.namespace,
            action_key=asked.action_key,
            namespace_token=asked.namespace_token,
            claim_token=asked.claim_token,
            lease_ttl_seconds=asked.lease_ttl,
        )
        return signed(wire.renewed(asked, outcome))

    def status(call: Call) -> Reply:
        asked = parse(wire.ActionStatus, call.body)
        outcome = claims.status(
            namespace=asked.namespace, action_key=asked.action_key, namespace_token=asked.namespace_token
        )
        return signed(wire.status(asked, outcome))

    def rotate_token(call: Call) -> Reply:
        asked = parse(wire.RotateToken, call.body)
        outcome = claims.rotate_token(namespace=asked.namespace, namespace_token=asked.namespace_token)
        return signed(wire.rotated(asked, outcome.namespace_token if isinstance(outcome, Rotated) else None))

    def verify(call: Call) -> Reply:
        return receipt.verified(call.body, receipts.is_valid)

    def signed(reply: Reply) -> Reply:
        return receipt.signed(reply, receipts.sign)

    edge.route(routes, "/once-key", claim, cap=_CAP)
    edge.route(routes, "/once-key/complete", complete, cap=_CAP)
    edge.route(routes, "/once-key/release", release, cap=_CAP)
    edge.route(routes, "/once-key/renew", renew, cap=_CAP)
    edge.route(routes, "/once-key/status", status, cap=_CAP)
    edge.route(routes, "/once-key/rotate-token", rotate_token, cap=_CAP)
    edge.route(routes, "/receipts/verify", verify, cap=_VERIFY_CAP)
    return routes
