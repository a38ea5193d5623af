"""Servers that are wrong in one place, as their authors' kinds are known to have been. A suite that finds no fault in
them proves nothing about ours.

Each mutant replaces one function of the application by a wrong one. `HISTORIES` are found by a run and a rule of the
checkers, `TESTS` by a test of the ordinary suite, which must go red when it meets them (`mutant_plugin.py`).
"""

import json
import os
import random
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import gevent
from sqlalchemy import bindparam, delete

from app.clock import RisingOffset
from app.core import claim, handoff, lease
from app.core.instants import SECOND
from app.core.redaction import redact
from app.push import addresses, answer, guard, recheck, webhook
from app.push.hub import Ticket
from app.services import handoff as handoff_service
from app.services import lease as lease_service
from app.storage import fence, postgres_transaction, sqlite, sqlite_file, sweep_claims, tables
from app.storage import handoff as handoff_rows
from app.storage.postgres_transaction import PostgresTransaction
from app.storage.sqlite_transaction import SqliteTransaction
from app.storage.sqlite_writer import Writer
from app.storage.statement import Statement
from app.web import address, body
from tests.faults.schedule import Schedule

native_sleep = time.sleep
APPLICATION = "tests.faults.mutant_app:application"


def _put(place: object, name: str, wrong: Callable[..., Any]) -> None:
    setattr(place, name, wrong)


# Leases and claims


def fence_before_the_lock() -> None:
    """PostgreSQL draws the fence before it has the row, so a later number may be granted first."""
    right = PostgresTransaction.trip

    def trip(self: Any, *steps: Any, **parameters: Any) -> Any:
        early = None
        if self._lent is None and any(getattr(step, "insert", None) is not None for step in steps):
            connection = self._begun()
            with connection.pipeline():
                self._catch_up(connection)
                drawn = connection.execute("SELECT nextval('fence_count')")
            early = drawn.fetchone()[0]
            gevent.sleep(0.05 if early % 8 == 0 else 0.0)
        rows = right(self, *steps, **parameters)
        if early is not None:
            self._fence = fence.fence(self._fence >> fence.COUNT_BITS, early)
        return rows

    _put(PostgresTransaction, "trip", trip)


def time_from_the_start_of_the_transaction() -> None:
    """PostgreSQL's now(), which stands still while the transaction waits for the row."""
    for name in ("_PROBE", "_PROBE_AND_FENCE"):
        text = getattr(postgres_transaction, name)
        setattr(postgres_transaction, name, text.replace("clock_timestamp()", "now()"))


def fence_restarts_with_a_lifecycle() -> None:
    right = lease._first_ownership
    _put(lease, "_first_ownership", lambda ask, fence, now: right(ask, 1, now))


def fences_forgotten_by_a_restart() -> None:
    """The count is not written with what it was drawn for."""
    right = SqliteTransaction.save_marks

    def save_marks(self: Any) -> None:
        kept = self.fence_count
        self.fence_count = self.__dict__.setdefault("_at_the_start", self._saved_count)
        try:
            right(self)
        finally:
            self.fence_count = kept

    _put(SqliteTransaction, "save_marks", save_marks)


def acquire_without_looking() -> None:
    """A check and a write with nothing between them: now and then the check is too early."""
    right = lease.acquire

    def acquire(record: Any, ask: Any, draw_fence: Any, now: int) -> Any:
        outcome = right(record, ask, draw_fence, now)
        is_unlucky = draw_fence is not lease_service._no_fence and now % 16 == 0
        if is_unlucky and isinstance(outcome, lease.Held):
            return lease.Granted(lease._next_ownership(outcome.record, ask, draw_fence(), now))
        return outcome

    _put(lease, "acquire", acquire)


def release_by_anybody() -> None:
    right = lease.release
    _put(lease, "release", lambda record, owner, now: right(record, (record and record.owner_hash) or owner, now))


def complete_by_anybody() -> None:
    right = lease.complete

    def complete(record: Any, owner: bytes, result: bytes, now: int) -> Any:
        return right(record, (record and record.owner_hash) or owner, result, now)

    _put(lease, "complete", complete)


def renew_after_the_end() -> None:
    """A lapsed lease that nobody took may be renewed."""
    right = lease.renew

    def renew(record: Any, owner: bytes, ttl_seconds: int, now: int) -> Any:
        if record is not None and record.owner_hash == owner and record.completed_at is None:
            record = replace(record, lease_expires_at=max(record.lease_expires_at, now + 1))
        return right(record, owner, ttl_seconds, now)

    _put(lease, "renew", renew)


def leases_end_early() -> None:
    """Four fifths of the seconds asked for."""
    right = lease._ownership

    def ownership(ask: Any, fence: int, now: int, end: int, *, attempt: int) -> Any:
        granted = right(ask, fence, now, end, attempt=attempt)
        return replace(granted, lease_expires_at=now + granted.ttl_seconds * SECOND * 4 // 5)

    _put(lease, "_ownership", ownership)


def leases_last_twice_as_long() -> None:
    right = lease._ownership

    def ownership(ask: Any, fence: int, now: int, end: int, *, attempt: int) -> Any:
        granted = right(ask, fence, now, end, attempt=attempt)
        return replace(granted, lease_expires_at=now + 2 * granted.ttl_seconds * SECOND)

    _put(lease, "_ownership", ownership)


def repeat_is_a_new_grant() -> None:
    """The same acquire sent again draws a new fence."""
    right = lease.acquire

    def acquire(record: Any, ask: Any, draw_fence: Any, now: int) -> Any:
        outcome = right(record, ask, draw_fence, now)
        if isinstance(outcome, lease.Granted) and outcome.repeated:
            return lease.Granted(replace(outcome.record, fence=draw_fence()))
        return outcome

    _put(lease, "acquire", acquire)


def no_conflict_once_completed() -> None:
    right = lease.acquire

    def acquire(record: Any, ask: Any, draw_fence: Any, now: int) -> Any:
        if record is not None and record.is_completed(now):
            return lease.Completed(record)
        return right(record, ask, draw_fence, now)

    _put(lease, "acquire", acquire)


def result_replaced_by_the_next() -> None:
    """Completing a claim again records the new result."""
    right = claim.complete

    def complete(record: Any, claimant: Any, result: Any, ttl_seconds: int, now: int) -> Any:
        if record is not None and record.is_completed():
            record = replace(record, completed_at=None)
        return right(record, None, result, ttl_seconds, now)

    _put(claim, "complete", complete)


def complete_over_a_takeover() -> None:
    """A late claimant completes over its successor."""
    right = claim.complete
    _put(claim, "complete", lambda record, claimant, *rest: right(record, None, *rest))


def unleased_claim_taken_over() -> None:
    """A claim without a lease is taken for an orphan after half a second."""
    right = claim.claim

    def claim_(record: Any, ask: Any, draw_fence: Any, now: int) -> Any:
        if record is not None and record.lease_expires_at is None and not record.is_completed():
            record = replace(record, lease_expires_at=min(record.expires_at, record.claimed_at + SECOND // 2))
        return right(record, ask, draw_fence, now)

    _put(claim, "claim", claim_)


# Time and storage


def clock_without_a_mark() -> None:
    """The clock may step back, and what had lapsed lives again."""
    _put(RisingOffset, "__call__", lambda self: self._read())


def answered_before_the_commit() -> None:
    def attempt(self: Any, calls: Any) -> None:
        self._connection.execute("BEGIN IMMEDIATE")
        for call in calls:
            self._operate(call)
        self._transaction.save_marks()
        self._lane.answer(calls)
        native_sleep(0.02)
        self._connection.execute("COMMIT")
        self._transaction.marks_are_durable()

    _put(Writer, "_attempt", attempt)


def commits_without_a_sync() -> None:
    """synchronous=NORMAL: the log is synced when it is copied, and not at each commit."""
    right = sqlite_file.connect_writer

    def connect(path: Any) -> Any:
        connection = right(path)
        connection.execute("PRAGMA synchronous = NORMAL")
        return connection

    _put(sqlite, "connect_writer", connect)


def sweep_by_key_alone() -> None:
    """A claim that was over when it was chosen is deleted, whatever it has become."""
    by_key = delete(tables.claim).where(tables.claim.c.claim_hash == bindparam("claim_hash"))
    sweep_claims._DROP_CLAIM = Statement(by_key)


# Handoffs and waits


def moves_from_anywhere() -> None:
    """The state that a move names is not compared."""
    right = handoff.move
    _put(handoff, "move", lambda record, wish, now: right(record, replace(wish, expected=record.state), now))


def handoffs_cached() -> None:
    """A worker shows what it read before."""
    right = handoff_rows.find_as_party
    seen: dict[str, Any] = {}

    def find(reader: Any, handoff_id: str, **hashes: Any) -> Any:
        if handoff_id not in seen or random.Random(reader.now()).random() < 0.1:
            seen[handoff_id] = right(reader, handoff_id, **hashes)
        return seen[handoff_id]

    _put(handoff_rows, "find_as_party", find)


def waits_listen_after_they_read() -> None:
    right_enter, right_wait = Ticket.__enter__, Ticket.wait

    def enter(self: Any) -> Any:
        self._is_late = True
        return self

    def wait(self: Any, timeout_seconds: float) -> bool:
        if self.__dict__.pop("_is_late", False):
            native_sleep(0.0)
            right_enter(self)
        return right_wait(self, timeout_seconds)

    _put(Ticket, "__enter__", enter)
    _put(Ticket, "wait", wait)


def moves_wake_nobody() -> None:
    """A move rings nobody: whoever waits finds out when its time is up."""
    _put(handoff_service, "topic", lambda handoff_id: f"nobody:{handoff_id}")


def hints_without_a_second_look() -> None:
    """Nobody looks again for what a lost hint would have said."""
    _put(recheck.Recheck, "start", lambda self: None)


# Found by tests of the ordinary suite


def nonce_kept_by_a_refusal() -> None:
    right = handoff.move
    spent: dict[tuple[str, str], Any] = {}

    def move(record: Any, wish: Any, now: int) -> Any:
        if wish.nonce is not None and spent.setdefault((record.handoff_id, wish.nonce), wish) != wish:
            return handoff.NonceConflict(record, wish.by)
        return right(record, wish, now)

    _put(handoff, "move", move)


def replay_ignores_the_target() -> None:
    _put(handoff, "_replay", lambda record, wish, version: handoff.Moved(record, version, repeated=True))


def renewal_moves_the_absolute_end() -> None:
    right = lease.renew

    def renew(record: Any, owner: bytes, ttl_seconds: int, now: int) -> Any:
        outcome = right(record, owner, ttl_seconds, now)
        if isinstance(outcome, lease.Renewed):
            longer = replace(outcome.record, absolute_expires_at=outcome.record.absolute_expires_at + SECOND)
            return lease.Renewed(longer)
        return outcome

    _put(lease, "renew", renew)


def results_through_a_parser() -> None:
    right = redact
    _put(lease_service, "redact", lambda result: json.dumps(json.loads(right(result))))


def webhook_before_the_commit() -> None:
    """A move is announced while it is being decided."""
    program = "import sys, urllib.request; urllib.request.urlopen(sys.argv[1], b'{}')"

    def announce(tx: Any, *, notify_url: str, **members: Any) -> None:
        os.posix_spawn(sys.executable, [sys.executable, "-c", program, notify_url], os.environ)

    _put(handoff_service, "announce", announce)


def only_private_addresses_refused() -> None:
    def judge(found: Any, allow: Any = ()) -> Any:
        return addresses.Standing.PRIVATE if found.is_private else addresses.Standing.PUBLIC

    _put(addresses, "judge_address", judge)
    _put(guard, "judge_address", judge)


def redirects_followed() -> None:
    right = webhook.Webhook._exchange

    def exchange(self: Any, connection: Any, target: Any, notice: Any) -> Any:
        result = right(self, connection, target, notice)
        is_redirect = 300 <= getattr(result, "status", 0) < 400
        return right(self, self._connect([target.address], target.port), target, notice) if is_redirect else result

    _put(webhook.Webhook, "_exchange", exchange)


def forwarded_addresses_believed() -> None:
    right = address.of_client
    _put(address, "of_client", lambda environ, trusted: right(environ, max(1, trusted)))


def long_bodies_cut() -> None:
    """A chunked body over the cap is read up to the cap and taken for whole."""
    right = body._read
    _put(body, "_read", lambda environ, most, seconds: right(environ, most - 1, seconds))


def error_answers_read_for_ever() -> None:
    """A receiver's answer is read to its end, however long it is."""
    answer.MOST_READ = 2**40


@dataclass(frozen=True)
class Hunt:
    """How a mutant is found: on which engine and under what, and the rules of which one must find it.

    With `only`, all callers do this one kind of work on one key.
    """

    engine: str
    nemesis: str
    rules: frozenset[str]
    environment: tuple[tuple[str, str], ...] = ()
    only: str | None = None

    def schedule(self, seed: int, seconds: float) -> Schedule:
        """The run of this seed."""
        plan = Schedule(self.engine, self.nemesis, seed, seconds, APPLICATION, self.environment)
        return plan if self.only is None else replace(plan, only=self.only, keys=1, generation_seconds=20.0)


def _hunt(engine: str, nemesis: str, rules: str, only: str | None = None, **environment: str) -> Hunt:
    return Hunt(engine, nemesis, frozenset(rules.split()), tuple(environment.items()), only)


HISTORIES: dict[Callable[[], None], Hunt] = {
    acquire_without_looking: _hunt("sqlite", "quiet", "M1 O2"),
    release_by_anybody: _hunt("sqlite", "quiet", "O1 O2 M1"),
    complete_by_anybody: _hunt("sqlite", "quiet", "O1 O2"),
    renew_after_the_end: _hunt("sqlite", "quiet", "O1"),
    leases_end_early: _hunt("sqlite", "quiet", "M1 O2"),
    leases_last_twice_as_long: _hunt("sqlite", "quiet", "M2 O1"),
    no_conflict_once_completed: _hunt("sqlite", "quiet", "R4"),
    result_replaced_by_the_next: _hunt("sqlite", "quiet", "R2 O1"),
    complete_over_a_takeover: _hunt("sqlite", "quiet", "O1 O2", only="once"),
    unleased_claim_taken_over: _hunt("sqlite", "quiet", "M1 O2"),
    moves_from_anywhere: _hunt("sqlite", "quiet", "V2 V3 V4"),
    handoffs_cached: _hunt("sqlite", "quiet", "V6"),
    moves_wake_nobody: _hunt("sqlite", "quiet", "V7"),
    waits_listen_after_they_read: _hunt("sqlite", "quiet", "V7"),
    repeat_is_a_new_grant: _hunt("sqlite", "line", "F1 O1 M1 O2"),
    fence_restarts_with_a_lifecycle: _hunt("sqlite", "clock", "F1 F2"),
    clock_without_a_mark: _hunt("sqlite", "clock", "M2 O1 M1"),
    fences_forgotten_by_a_restart: _hunt("sqlite", "kill", "F1 F2", only="lease"),
    answered_before_the_commit: _hunt("sqlite", "kill", "F1 F2 O2 R1 V1 V6 V9 M1"),
    fence_before_the_lock: _hunt("postgresql", "quiet", "M1 F2", only="lease"),
    hints_without_a_second_look: _hunt("postgresql", "quiet", "V7", FENCEPOST_BUS="redis://127.0.0.1:1"),
}
_HANDOFFS, _WEBHOOKS = "tests/core/test_handoff.py", "tests/real/test_webhook.py"
_CLAIMS = "tests/services/test_claims.py"
_DATABASE = "tests/real/test_postgres_faults.py"
_IN_FULL = "test_a_lease_that_waited_for_its_row_lock_is_granted_in_full"
TESTS: dict[Callable[[], None], str] = {
    time_from_the_start_of_the_transaction: f"{_DATABASE}::{_IN_FULL}",
    sweep_by_key_alone: f"{_CLAIMS}::test_the_sweep_leaves_a_claim_alone_that_began_anew_after_it_looked",
    nonce_kept_by_a_refusal: f"{_HANDOFFS}::test_h6_a_refused_wish_leaves_its_nonce_free",
    replay_ignores_the_target: f"{_HANDOFFS}::test_h5_the_nonce_with_anything_else_different_is_a_conflict",
    renewal_moves_the_absolute_end: "tests/core/test_lease.py",
    results_through_a_parser: "tests/real/test_lease_rows.py::test_a_result_comes_back_exactly_as_sent",
    webhook_before_the_commit: f"{_WEBHOOKS}::test_a_move_that_was_never_committed_is_never_announced",
    only_private_addresses_refused: "tests/push/test_guard.py",
    redirects_followed: "tests/push/test_webhook.py::test_a_redirect_is_not_followed",
    forwarded_addresses_believed: "tests/real/test_conventions.py",
    long_bodies_cut: "tests/real/test_conventions.py::test_the_cap_holds_with_and_without_a_length",
    error_answers_read_for_ever: "tests/push/test_answer.py",
}
POWER = [commits_without_a_sync]
"""Found by test_disk.py."""
BY_NAME = {mutant.__name__: mutant for mutant in [*HISTORIES, *TESTS, *POWER]}
