"""Keys made from what is to be done: the same however it is spelled (L-I15), canonical as RFC 8785 has it."""

import json
import random
import struct
from typing import Any

import pytest
import rfc8785

from fencepost import keys


@pytest.mark.parametrize(
    "arguments",
    [
        '{"b": 2, "a": 1}',
        '{"a":1,"b":2}',
        '{"a": 1.0, "b": 2}',
        '{ "a" : 1e0,\n "b" : 20e-1 }',
    ],
)
def test_order_space_and_spelling_of_numbers_do_not_matter(arguments: str) -> None:
    assert keys.for_call("pay", json.loads(arguments)) == keys.for_call("pay", {"a": 1, "b": 2})


def test_the_form_of_unicode_does_not_matter() -> None:
    assert keys.for_call("pay", {"to": "caf\u00e9"}) == keys.for_call("pay", {"to": "cafe\u0301"})


def test_what_differs_has_another_key() -> None:
    made = {
        keys.for_call("pay", {"a": 1}),
        keys.for_call("pay", {"a": 2}),
        keys.for_call("pay", {"a": "1"}),
        keys.for_call("pay", {"a": True}),
        keys.for_call("pay", [1]),
        keys.for_call("refund", {"a": 1}),
        keys.for_call("pay", {"a": 1}, scope="order-7"),
        keys.for_call("pay", None),
    }
    assert len(made) == 8


def test_a_key_is_a_lease_key_and_an_action_key() -> None:
    key = keys.for_call("tools/pay money \u2603", {"a": 1})
    assert len(key) <= 128
    assert all(letter.isascii() and (letter.isalnum() or letter in "-._~:/@+=,") for letter in key)


@pytest.mark.parametrize("unsayable", [float("nan"), float("inf"), 2**53, {1: 2}, {"a", "b"}, object()])
def test_what_json_cannot_say_is_refused(unsayable: Any) -> None:
    with pytest.raises(ValueError):
        keys.for_call("pay", unsayable)


def test_two_names_that_are_one_text_are_refused() -> None:
    with pytest.raises(ValueError, match="same text"):
        keys.canonical({"caf\u00e9": 1, "cafe\u0301": 2})


def test_the_canonical_form_is_that_of_a_library_we_did_not_write() -> None:
    dice = random.Random(8785)
    values: list[Any] = [0.1, 1e21, 1e-7, 1.5e-10, 5e-324, 1e20, 123456789.125, -0.0, 1e300, 2.5e15, 100.0, 0.00001]
    while len(values) < 5000:
        (number,) = struct.unpack(">d", dice.randbytes(8))
        if number == number and abs(number) != float("inf"):
            values.append(number)
    values += ['\u20ac$\x0f\nA\'B"\\\\"/\x7f\u2028', {"\u20ac": 1, "\r": 2, "\ufb33": 3, "1": 4, "\U0001f600": 5}]
    for value in values[:-1]:
        assert keys.canonical(value) == rfc8785.dumps(value), value
    assert json.loads(keys.canonical(values[-1])) == {
        name.replace("\ufb33", "\u05d3\u05bc"): number for name, number in values[-1].items()
    }


@pytest.mark.parametrize(
    ("mint", "prefix"),
    [
        (keys.mint_namespace, "ns_"),
        (keys.mint_owner_token, "own_"),
        (keys.mint_claim_token, "clm_"),
        (keys.mint_once_namespace_token, "nst_"),
    ],
)
def test_minted_secrets_have_their_shape(mint: Any, prefix: str) -> None:
    made = {mint() for _ in range(100)}
    assert len(made) == 100
    assert all(token.startswith(prefix) and len(token) == len(prefix) + 43 for token in made)
