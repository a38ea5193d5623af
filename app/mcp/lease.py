"""The lease tools."""

from app.mcp.refusals import BusyRefusal, TooLargeRefusal
from app.mcp.tool import Asker, Entry, Hints, Tool
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
            name="create_lease_namespace",
            title="Create a lease namespace",
            description=NAMESPACE,
            members=NoMembers,
            act=create_namespace,
            answers=answers.NAMESPACE,
            refusals=(),
            hints=Hints(reads_only=True, is_idempotent=False),
            cap=_CAP,
        ),
        Tool(
            name="acquire_lease",
            title="Acquire a lease",
            description=ACQUIRE,
            members=wire.AcquireLease,
            act=acquire,
            answers=answers.ACQUIRE,
            refusals=(BusyRefusal,),
            hints=Hints(reads_only=False, is_idempotent=False),
            cap=_CAP,
        ),
        Tool(
            name="renew_lease",
            title="Renew a lease",
            description=RENEW,
            members=wire.RenewLease,
            act=renew,
            answers=answers.RENEW,
            refusals=(),
            hints=Hints(reads_only=False, is_idempotent=True),
            cap=_CAP,
        ),
        Tool(
            name="release_lease",
            title="Release a lease",
            description=RELEASE,
            members=wire.ReleaseLease,
            act=release,
            answers=answers.RELEASE,
            refusals=(),
            hints=Hints(reads_only=False, is_idempotent=True),
            cap=_CAP,
        ),
        Tool(
            name="complete_lease",
            title="Complete a lease",
            description=COMPLETE,
            members=wire.CompleteLease,
            act=complete,
            answers=answers.COMPLETE,
            refusals=(TooLargeRefusal,),
            hints=Hints(reads_only=False, is_idempotent=True),
            cap=_CAP,
        ),
        Tool(
            name="check_lease",
            title="Check a lease",
            description=CHECK,
            members=wire.CheckLease,
            act=check,
            answers=answers.CHECK,
            refusals=(),
            hints=Hints(reads_only=True, is_idempotent=True),
            cap=_CAP,
        ),
    ]
