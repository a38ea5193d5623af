"""The lease tools."""

from app.mcp.refusals import ResultTooLargeRefusal, WaitersRefusal
from app.mcp.tool import BEGINS, LOOKS, MINTS, SETTLES, Asker, Entry, Tool
from app.mcp.words import ACQUIRE, CHECK, COMPLETE, NAMESPACE, RELEASE, RENEW
from app.services.lease import Leases
from app.wire import lease as wire
from app.wire import lease_answers as answers
from app.wire.members import NoMembers
from app.wire.reply import Reply

_CAP = 65_536


def tools(leases: Leases) -> list[Entry]:
    """The six of them, in the order in which they are used."""

    def create_namespace(asked: NoMembers, asker: Asker) -> Reply:
        return wire.namespace_minted(leases.mint_namespace())

    def acquire(asked: wire.AcquireLease, asker: Asker) -> Reply:
        acquisition = leases.acquire(
            key=asked.key,
            namespace=asked.namespace,
            ttl_seconds=asked.ttl_seconds,
            fingerprint=asked.fingerprint,
            owner_token=asked.owner_token,
            wait_seconds=asked.wait_seconds,
            holder=asked.holder,
            caller=asker.caller,
        )
        return wire.acquired(acquisition.outcome, acquisition.owner_token)

    def renew(asked: wire.RenewLease, asker: Asker) -> Reply:
        outcome = leases.renew(
            key=asked.key, namespace=asked.namespace, owner_token=asked.owner_token, ttl_seconds=asked.ttl_seconds
        )
        return wire.renewed(outcome)

    def release(asked: wire.ReleaseLease, asker: Asker) -> Reply:
        return wire.released(leases.release(key=asked.key, namespace=asked.namespace, owner_token=asked.owner_token))

    def complete(asked: wire.CompleteLease, asker: Asker) -> Reply:
        outcome = leases.complete(
            key=asked.key, namespace=asked.namespace, owner_token=asked.owner_token, result=asked.result.text
        )
        return wire.completed(outcome)

    def check(asked: wire.CheckLease, asker: Asker) -> Reply:
        return wire.checked(*leases.check(key=asked.key, namespace=asked.namespace, fence=asked.fencing_token))

    return [
        Tool(
            "create_lease_namespace",
            "Create a lease namespace",
            NAMESPACE,
            NoMembers,
            create_namespace,
            answers.NAMESPACE,
            MINTS,
            _CAP,
        ),
        Tool(
            "acquire_lease",
            "Acquire a lease",
            ACQUIRE,
            wire.AcquireLease,
            acquire,
            answers.ACQUIRE,
            BEGINS,
            _CAP,
            (WaitersRefusal,),
        ),
        Tool("renew_lease", "Renew a lease", RENEW, wire.RenewLease, renew, answers.RENEW, SETTLES, _CAP),
        Tool("release_lease", "Release a lease", RELEASE, wire.ReleaseLease, release, answers.RELEASE, SETTLES, _CAP),
        Tool(
            "complete_lease",
            "Complete a lease",
            COMPLETE,
            wire.CompleteLease,
            complete,
            answers.COMPLETE,
            SETTLES,
            _CAP,
            (ResultTooLargeRefusal,),
        ),
        Tool("check_lease", "Check a lease", CHECK, wire.CheckLease, check, answers.CHECK, LOOKS, _CAP),
    ]
