"""What is taken out of a result before it is written, and what is left to the letter."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.redaction import NAMES, redact

R = '"[redacted]"'


@pytest.mark.parametrize("name", [*NAMES, "PASSWORD", "Api-Key", "api_key", "private key", "pass\\u0077ord", "To-ken"])
@pytest.mark.parametrize("value", ["1", "null", "true", '"x"', "[1,2]", '{"a":{"b":[]}}', "1e400"])
def test_a_name_that_is_a_secret_loses_its_value_whatever_it_is(name: str, value: str) -> None:
    assert redact(f'{{"{name}":{value}}}') == f'{{"{name}":{R}}}'


@pytest.mark.parametrize("name", ["db_password", "accessToken", "x-api-key", "total_tokens", "client_secret_1"])
def test_a_name_that_contains_one_loses_text_objects_and_arrays_only(name: str) -> None:
    for value in ['"x"', "[1]", '{"a":1}', '""', "[]", "{}"]:
        assert redact(f'{{"{name}": {value}}}') == f'{{"{name}": {R}}}'
    for value in ["512", "-1.10", "true", "false", "null"]:
        assert redact(f'{{"{name}": {value}}}') == f'{{"{name}": {value}}}'


@pytest.mark.parametrize(
    "text",
    [
        '"token"',
        '["password", "x"]',
        '{"a":"\\"password\\":1"}',
        '{"tok":1,"en":2}',
        '{ "b" : 1.10 , "a" : [ 1e400 , -0.0 ] }',
        '{"pass word1": 5}',
        "null",
        '{"\u017fecret": "a long s is no ASCII letter"}',
        '{"to\u212aen": "nor is the sign of the kelvin"}',
    ],
)
def test_what_is_not_under_a_secret_name_stays_to_the_letter(text: str) -> None:
    assert redact(text) == text


def test_it_reaches_every_depth_and_leaves_the_rest_alone() -> None:
    text = '[{"a": [{"Password" : {"deep": "x"}, "n": 1.0}]}, {"k":"v\\\\"}, {"secret":"]}"}, 7]'
    expected = '[{"a": [{"Password" : ' + R + ', "n": 1.0}]}, {"k":"v\\\\"}, {"secret":' + R + "}, 7]"
    assert redact(text) == expected


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["token", "Db-Password", "a", "b c", "x_secret", "é", "api_key"]), inner)
    ),
    max_leaves=20,
)


def _expected(value: object) -> object:
    if isinstance(value, list):
        return [_expected(item) for item in value]
    if isinstance(value, dict):
        return {name: _replaced(name, inner) for name, inner in value.items()}
    return value


def _replaced(name: str, value: object) -> object:
    plain = name.lower().replace("-", "").replace("_", "").replace(" ", "")
    if plain in NAMES or (any(word in plain for word in NAMES) and isinstance(value, str | list | dict)):
        return "[redacted]"
    return _expected(value)


@given(JSON, st.booleans())
def test_it_agrees_with_redacting_the_parsed_value(value: object, ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    assert json.loads(redact(text)) == _expected(value)
