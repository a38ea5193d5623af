"""The lease over REST."""

from flask import Blueprint

from app.services.lease import Leases
from app.web.edge import Call, Edge
from app.wire import lease as wire
from app.wire.members import NoMembers, parse
from app.wire.reply import Reply

_CAP = 65_536


def blueprint(edge: Edge, leases: Leases) -> Blueprint:
    """The seven routes under /services/v1/lease."""
    routes = Blueprint("lease", __name__, url_prefix="/services/v1/lease")

    def mint_namespace(call: Call) -> Reply:
        parse(NoMembers, call.body)
        return wire.namespace_minted(leases.mint_namespace())

    def acquire(call: Call) -> Reply:
        asked = parse(wire.AcquireLease, call.body)
        acquisition = leases.acquire(
            key=asked.key,
            namespace=asked.namespace,
            ttl_seconds=asked.ttl_seconds,
            fingerprint=asked.fingerprint,
            owner_token=asked.owner_token,
            wait_seconds=asked.wait_seconds,
            holder=asked.holder,
            caller=call.connection,
        )
        return wire.acquired(acquisition.outcome, acquisition.owner_token)

    def renew(call: Call) -> Reply:
        asked = parse(wire.RenewLease, call.body)
        return wire.renewed(
            leases.renew(
                key=asked.key,
                namespace=asked.namespace,
                owner_token=asked.owner_token,
                ttl_seconds=asked.ttl_seconds,
            )
        )

    def release(call: Call) -> Reply:
        asked = parse(wire.ReleaseLease, call.body)
        return wire.released(leases.release(key=asked.key, namespace=asked.namespace, owner_token=asked.owner_token))

    def complete(call: Call) -> Reply:
        asked = parse(wire.CompleteLease, call.body)
        return wire.completed(
            leases.complete(
                key=asked.key, namespace=asked.namespace, owner_token=asked.owner_token, result=asked.result.text
            )
        )

    def status(call: Call) -> Reply:
        asked = parse(wire.LeaseStatus, call.body)
        return wire.status(leases.status(key=asked.key, namespace=asked.namespace))

    def verify(call: Call) -> Reply:
        asked = parse(wire.VerifyLease, call.body)
        return wire.verified(leases.verify(key=asked.key, namespace=asked.namespace, fence=asked.fencing_token))

    edge.route(routes, "/namespace", mint_namespace, cap=_CAP)
    edge.route(routes, "", acquire, cap=_CAP)
    edge.route(routes, "/acquire", acquire, cap=_CAP)
    edge.route(routes, "/renew", renew, cap=_CAP)
    edge.route(routes, "/release", release, cap=_CAP)
    edge.route(routes, "/complete", complete, cap=_CAP)
    edge.route(routes, "/status", status, cap=_CAP)
    edge.route(routes, "/verify", verify, cap=_CAP)
    return routes
