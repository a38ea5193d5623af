"""All pages, on one blueprint."""

from flask import Blueprint

from app.dashboard import assets, bulk, claims, deliveries, handoff, handoffs, leases, now, records, review, sign_in
from app.dashboard.gate import Gate
from app.services.agenda import Agendas
from app.services.audit import Audit
from app.services.claim import Claims
from app.services.handoff import Handoffs
from app.services.lease import Leases
from app.services.outbox import Outbox
from app.services.overview import Overview


def blueprint(
    gate: Gate,
    overview: Overview,
    agendas: Agendas,
    of_handoffs: Handoffs,
    of_leases: Leases,
    of_claims: Claims,
    audit: Audit,
    outbox: Outbox,
) -> Blueprint:
    """The pages from `/` on, and what they load."""
    routes = Blueprint("dashboard", __name__)
    assets.add_routes(routes)
    sign_in.add_routes(routes, gate)
    now.add_routes(routes, gate, agendas, of_handoffs)
    handoffs.add_routes(routes, gate, overview, of_handoffs)
    bulk.add_routes(routes, gate, of_handoffs)
    handoff.add_routes(routes, gate, of_handoffs, overview, outbox)
    review.add_routes(routes, gate, of_handoffs)
    leases.add_routes(routes, gate, overview, of_leases)
    claims.add_routes(routes, gate, overview, of_claims)
    deliveries.add_routes(routes, gate, overview, outbox)
    records.add_routes(routes, gate, audit)
    return routes
