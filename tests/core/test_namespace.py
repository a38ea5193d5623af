"""The invariants N1 to N4 of app/core/namespace.py."""

import pytest

from app.core.instants import DAY_SECONDS, SECOND
from app.core.namespace import (
    NamespaceForbidden,
    NamespaceFounded,
    NamespaceOwned,
    NamespaceRecord,
    NamespaceWeak,
    enter,
    found,
    is_abandoned,
    is_strong,
    rotate,
)

START = 1_800_000_000_000_000
RIGHT, WRONG = bytes([1]) * 32, bytes([2]) * 32


def test_n3_a_missing_token_a_wrong_one_and_nobody_s_namespace_are_one_refusal() -> None:
    record = NamespaceRecord(RIGHT, START, START)
    refusals = [
        enter(record, None),
        enter(record, WRONG),
        enter(None, None),
        enter(None, RIGHT),
        enter(None, bytes(32)),
    ]
    assert refusals == [NamespaceForbidden()] * 5
    assert enter(record, RIGHT) == NamespaceOwned(record)


def test_n1_the_first_claim_founds_the_namespace_with_its_token() -> None:
    assert found("billing", RIGHT, strong_names=False, now=START) == NamespaceFounded(
        NamespaceRecord(RIGHT, START, START)
    )


def test_a_malformed_token_founds_nothing() -> None:
    assert found("billing", None, strong_names=False, now=START) == NamespaceForbidden()
    assert found("billing", None, strong_names=True, now=START) == NamespaceForbidden()


def test_n2_a_rotated_token_replaces_the_old_one() -> None:
    record = rotate(NamespaceRecord(RIGHT, START, START), WRONG)
    assert enter(record, RIGHT) == NamespaceForbidden()
    assert enter(record, WRONG) == NamespaceOwned(record)


@pytest.mark.parametrize(
    ("name", "strong"),
    [
        ("billing-app-123", False),  # 15
        ("billing-app-1234", True),  # 16
        ("billingapplicati", False),  # one class
        ("BILLINGAPPLICATI", False),
        ("1234567890123456", False),
        ("----------------", False),
        ("billingapplicatI", True),
        ("billingapplicat1", True),
        ("billing applicat", True),
        ("123456789012345-", True),
    ],
)
def test_a_strong_name_has_sixteen_characters_of_two_classes(name: str, strong: bool) -> None:
    assert is_strong(name) is strong
    weak = found(name, RIGHT, strong_names=True, now=START) == NamespaceWeak()
    assert weak is not strong


def test_n4_ownership_is_dropped_thirty_days_after_the_last_claim_ended() -> None:
    record = NamespaceRecord(RIGHT, START, START + SECOND)
    end = START + SECOND + 30 * DAY_SECONDS * SECOND
    assert not is_abandoned(record, end - 1)
    assert is_abandoned(record, end)
