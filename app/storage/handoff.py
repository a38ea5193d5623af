"""The handoff row, written once, and its history, to which lines are only added.

The history is the truth: state and version in the row repeat its last line for lists and are never read back into a
decision. The row is what a move locks.
"""

import json

from sqlalchemy import bindparam, func, insert, or_, select, update

from app.core.handoff import NONCE_SECONDS, Entry, HandoffRecord, Offer
from app.core.instants import SECOND
from app.core.machine import Machine
from app.storage.engine import Lock, Reader, Transaction
from app.storage.statement import Row, Statement, Value, insert_if_absent, insert_unless_taken
from app.storage.tables import handoff, handoff_history, meta

_HANDOFF = [column.name for column in handoff.columns]
_LINE = [column.name for column in handoff_history.columns]

_BY_ID = Statement(select(handoff).where(handoff.c.handoff_id == bindparam("handoff_id")))
_IS_PARTY = or_(handoff.c.owner_hash == bindparam("owner_hash"), handoff.c.receiver_hash == bindparam("receiver_hash"))
_OF_PARTY = Statement(select(handoff).where(handoff.c.handoff_id == bindparam("handoff_id"), _IS_PARTY))
_BY_CREATION = Statement(select(handoff.c.handoff_id).where(handoff.c.creation_hash == bindparam("creation_hash")))
_LINES = Statement(
    select(handoff_history)
    .where(handoff_history.c.handoff_id == bindparam("handoff_id"))
    .order_by(handoff_history.c.version)
)
_LINES_OF_PARTY = Statement(
    select(handoff_history)
    .join(handoff, handoff.c.handoff_id == handoff_history.c.handoff_id)
    .where(handoff_history.c.handoff_id == bindparam("handoff_id"), _IS_PARTY)
    .order_by(handoff_history.c.version)
)
_LIVE = Statement(
    select(func.count(), func.min(handoff.c.expires_at))
    .select_from(handoff)
    .where(handoff.c.expires_at > bindparam("now"))
)
_GATE = Statement(select(meta.c.number).where(meta.c.name == bindparam("name")))
_HOLD_GATE = Statement(lambda dialect: insert_if_absent(dialect, meta, {"number": 0}))
_INSERT = Statement(lambda dialect: insert_unless_taken(dialect, handoff))
_ADD_LINE = Statement(insert(handoff_history).values({name: bindparam(name) for name in _LINE}))
_ADVANCE = Statement(
    update(handoff)
    .where(handoff.c.handoff_id == bindparam("known_id"))
    .values({name: bindparam(name) for name in ("state", "version", "ended", "changed_at")})
)
_FORGET_CREATION = Statement(
    update(handoff).where(handoff.c.creation_hash == bindparam("known_hash")).values(creation_hash=None)
)


def find(reader: Reader, handoff_id: str) -> HandoffRecord | None:
    """The handoff as committed, without a lock."""
    return _record(reader, *reader.together(_BY_ID, _LINES, handoff_id=handoff_id))


def lock(tx: Transaction, handoff_id: str) -> HandoffRecord | None:
    """The handoff, locked until the end of the transaction."""
    return _record(tx, *tx.trip(Lock(_BY_ID), _LINES, handoff_id=handoff_id))


def find_as_party(reader: Reader, handoff_id: str, *, owner_hash: bytes, receiver_hash: bytes) -> HandoffRecord | None:
    """The handoff if one of its tokens has this digest. An unknown one and a wrong token look the same from here on."""
    party: dict[str, Value] = {"handoff_id": handoff_id, "owner_hash": owner_hash, "receiver_hash": receiver_hash}
    return _record(reader, *reader.together(_OF_PARTY, _LINES_OF_PARTY, **party))


def lock_as_party(tx: Transaction, handoff_id: str, *, owner_hash: bytes, receiver_hash: bytes) -> HandoffRecord | None:
    """The same, locked until the end of the transaction."""
    party: dict[str, Value] = {"handoff_id": handoff_id, "owner_hash": owner_hash, "receiver_hash": receiver_hash}
    return _record(tx, *tx.trip(Lock(_OF_PARTY), _LINES, **party))


def find_creation(reader: Reader, creation_hash: bytes) -> HandoffRecord | None:
    """The handoff that was created with this nonce and owner token."""
    row = reader.one(_BY_CREATION, creation_hash=creation_hash)
    return None if row is None else find(reader, str(row[0]))


def forget_creation(tx: Transaction, creation_hash: bytes) -> None:
    """Free a nonce whose day is over, though the sweep has not come by."""
    tx.write(_FORGET_CREATION, known_hash=creation_hash)


def lock_gate(tx: Transaction) -> None:
    """Let nobody else count the live handoffs before this transaction is over."""
    tx.lock(_GATE, _HOLD_GATE, name="handoff_gate")


def live(reader: Reader, now: int) -> tuple[int, int | None]:
    """How many handoffs have not expired, and when the soonest will."""
    row = reader.one(_LIVE, now=now)
    assert row is not None
    return row  # type: ignore[return-value]


def add(tx: Transaction, record: HandoffRecord, creation_hash: bytes | None) -> bool:
    """Store a new handoff. False, and nothing is stored, when somebody else just used the nonce."""
    offer = record.offer
    remembered = 0 if creation_hash is None else record.created_at + NONCE_SECONDS * SECOND
    touched = tx.execute(
        _INSERT,
        handoff_id=record.handoff_id,
        owner_hash=offer.owner_hash,
        receiver_hash=offer.receiver_hash,
        creation_hash=creation_hash,
        machine=_encode_machine(offer.machine),
        payload=offer.payload,
        title=_encode(offer.title),
        audience=offer.audience,
        notify_url=_encode(offer.notify_url),
        ttl_seconds=offer.ttl_seconds,
        created_at=record.created_at,
        expires_at=record.expires_at,
        removable_at=max(record.expires_at, remembered),
        **_standing(record),
    )
    if touched:
        _add_line(tx, record)
    return touched > 0


def advance(tx: Transaction, record: HandoffRecord) -> None:
    """Store the last line of a locked handoff's history."""
    _add_line(tx, record)
    tx.write(_ADVANCE, known_id=record.handoff_id, **_standing(record))


def _standing(record: HandoffRecord) -> dict[str, Value]:
    return {
        "state": record.state,
        "version": record.version,
        "ended": int(record.is_ended),
        "changed_at": record.history[-1].at,
    }


def _add_line(tx: Transaction, record: HandoffRecord) -> None:
    entry = record.history[-1]
    tx.write(
        _ADD_LINE,
        handoff_id=record.handoff_id,
        version=record.version,
        state=entry.state,
        previous=entry.previous,
        mover=entry.by,
        actor=_encode(entry.actor),
        at=entry.at,
        note=_encode(entry.note),
        nonce=entry.nonce,
    )


def _record(reader: Reader, rows: list[Row], lines: list[Row]) -> HandoffRecord | None:
    if not rows or not lines:  # the latter: removed between the two reads
        return None
    found = dict(zip(_HANDOFF, rows[0], strict=True))
    history = tuple(_entry(line) for line in lines)
    reader.not_before(history[-1].at)
    offer = Offer(
        handoff_id=str(found["handoff_id"]),
        owner_hash=found["owner_hash"],  # type: ignore[arg-type]
        receiver_hash=found["receiver_hash"],  # type: ignore[arg-type]
        machine=_decode_machine(found["machine"]),
        payload=found["payload"],  # type: ignore[arg-type]
        note=history[0].note,
        title=_decode(found["title"]),
        audience=found["audience"],  # type: ignore[arg-type]
        notify_url=_decode(found["notify_url"]),
        ttl_seconds=found["ttl_seconds"],  # type: ignore[arg-type]
    )
    return HandoffRecord(offer, found["created_at"], found["expires_at"], history)  # type: ignore[arg-type]


def _entry(row: Row) -> Entry:
    line = dict(zip(_LINE, row, strict=True))
    return Entry(
        state=line["state"],  # type: ignore[arg-type]
        previous=line["previous"],  # type: ignore[arg-type]
        by=line["mover"],  # type: ignore[arg-type]
        at=line["at"],  # type: ignore[arg-type]
        note=_decode(line["note"]),
        actor=_decode(line["actor"]),
        nonce=line["nonce"],  # type: ignore[arg-type]
    )


def _encode(text: str | None) -> bytes | None:
    return None if text is None else text.encode("utf-8")


def _decode(text: object) -> str | None:
    return text.decode("utf-8") if isinstance(text, bytes) else None


def _encode_machine(machine: Machine) -> bytes:
    members = {
        "states": machine.states,
        "final": machine.final,
        "transitions": machine.transitions,
        "permissions": machine.permissions,
    }
    return json.dumps(members, separators=(",", ":")).encode("ascii")


def _decode_machine(text: object) -> Machine:
    assert isinstance(text, bytes)
    members = json.loads(text)
    return Machine(
        states=tuple(members["states"]),
        final=tuple(members["final"]),
        transitions={state: tuple(targets) for state, targets in members["transitions"].items()},
        permissions=members["permissions"],
    )
