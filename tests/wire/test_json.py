"""The strict reader and the writer that keeps what it was given."""

import json as stdlib
from itertools import pairwise
from time import perf_counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.wire.json import InvalidJson, NotAnObject, Number, RawJson, dump, read_elements, read_object
from tests.wire.documents import EMPTY, NO_OBJECTS, REFUSED, VALUES, nested

WORDS = {
    "bom": "byte-order mark",
    "utf8": "not UTF-8",
    "surrogate": "surrogate pair",
    "twice": "stands twice",
    "constant": "NaN and Infinity",
    "deep": "nested deeper",
    "after": "after the document",
}


def test_the_table_is_as_long_as_it_should_be() -> None:
    assert len(EMPTY) + len(NO_OBJECTS) + len(VALUES) + len(REFUSED) >= 250


@pytest.mark.parametrize("body", EMPTY)
def test_nothing_and_null_count_as_an_empty_object(body: bytes) -> None:
    assert read_object(body) == {}


@pytest.mark.parametrize("body", NO_OBJECTS, ids=lambda body: body[:20].decode())
def test_good_json_that_is_no_object_is_told_apart_from_bad_json(body: bytes) -> None:
    with pytest.raises(NotAnObject):
        read_object(body)


@pytest.mark.parametrize("text", VALUES, ids=lambda text: ascii(text[:30]))
def test_a_raw_member_is_kept_as_sent(text: str) -> None:
    spaced = f'\n{{ "before" : 1 ,"raw"\t:\r\n {text} \t, "after":[] }} '.encode()
    assert read_object(spaced, raw=frozenset({"raw"}))["raw"] == RawJson(text)
    tight = f'{{"raw":{text}}}'.encode()
    members = read_object(tight, raw=frozenset({"raw"}))
    assert members == {"raw": RawJson(text)}
    assert dump(members) == tight


@pytest.mark.parametrize("text", VALUES, ids=lambda text: ascii(text[:30]))
def test_the_size_of_a_raw_value_is_its_bytes(text: str) -> None:
    assert RawJson(text).size == len(text.encode())


@pytest.mark.parametrize(("body", "kind"), REFUSED, ids=lambda case: ascii(case[:40]))
def test_a_bad_document_is_refused_with_its_reason_and_position(body: bytes, kind: str) -> None:
    with pytest.raises(InvalidJson) as refused:
        read_object(body)
    assert 0 <= refused.value.position <= len(body)
    if kind in WORDS:
        assert WORDS[kind] in refused.value.reason
    else:
        assert not any(word in refused.value.reason for word in WORDS.values())


@pytest.mark.parametrize(
    ("body", "kind"), [case for case in REFUSED if case[0][:1] not in (b"{", b"[")] + [(b"[{}", ""), (b"[1 2]", "")]
)
def test_the_reader_of_arrays_refuses_alike(body: bytes, kind: str) -> None:
    with pytest.raises(InvalidJson):
        read_elements(body)


@pytest.mark.parametrize(
    ("body", "position"),
    [
        (b'{"a":1,}', 7),
        (b'{"a":1} x', 8),
        ('{"é":x}'.encode(), 6),
        ('{"é":"é","a":1,"a":2}'.encode(), 17),
        (b'{"a":{"b":1,"b":2}}', 12),
        (b'{"a":NaN}', 5),
        (b'{"a":"b","c":"\\ud800"}', 13),
        (b'{"a":"\xff"}', 6),
        (nested(65), 68),
        (b'{"a":01}', 6),
        (b'{"a":"x', 5),
    ],
)
def test_the_position_counts_bytes_from_zero(body: bytes, position: int) -> None:
    with pytest.raises(InvalidJson) as refused:
        read_object(body)
    assert refused.value.position == position


def test_64_levels_are_taken_and_65_are_not() -> None:
    assert read_object(nested(64), raw=frozenset({"a"}))["a"] == RawJson("[" * 63 + "]" * 63)
    with pytest.raises(InvalidJson):
        read_object(nested(65))


def test_brackets_in_text_are_no_levels() -> None:
    body = ('{"a":"' + '[{\\"[{' * 3000 + '","b":' + "[" * 63 + "]" * 63 + "}").encode()
    assert set(read_object(body)) == {"a", "b"}


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 20_000,
        b'{"a":' * 13_000,
        b'"' * 65_536,
        b'\\"' * 32_768,
        b'{"' + b'\\"' * 32_000,
        b"[]" * 32_768,
        b"{" + b" " * 65_000,
        (b'{"a":[' + b"[]," * 21_000 + b"[" * 64),
        b'{"a":"' + b"\\ud83d\\ude00" * 5_400 + b'\\ud83d"}',
        b"{" + b",".join(b'"%d":[]' % n for n in range(6_000)) + b',"0":1}',
        b'{"a":' + b"9" * 65_000 + b"x}",
    ],
    ids=range(11),
)
def test_a_hostile_document_of_64_kib_is_refused_fast(body: bytes) -> None:
    began = perf_counter()
    with pytest.raises(InvalidJson):
        read_object(body)
    assert perf_counter() - began < 1.0


def test_a_plain_integer_is_an_int_and_every_other_number_is_not() -> None:
    body = b'{"a":60,"b":60.0,"c":6e1,"d":-5,"e":999999999999999999,"f":1000000000000000000,"g":-0,"h":-0.0}'
    assert read_object(body) == {
        "a": 60,
        "b": Number("60.0"),
        "c": Number("6e1"),
        "d": -5,
        "e": 999_999_999_999_999_999,
        "f": Number("1000000000000000000"),
        "g": 0,
        "h": Number("-0.0"),
    }


def test_an_integer_of_5000_digits_is_no_fault() -> None:
    digits = "9" * 5000
    assert read_object(f'{{"a":{digits}}}'.encode()) == {"a": Number(digits)}


def test_true_and_null_are_no_numbers() -> None:
    members = read_object(b'{"a":true,"b":null,"c":"1"}')
    assert members["a"] is True
    assert members["b"] is None
    assert members["c"] == "1"


def test_members_keep_their_order_and_their_unescaped_names() -> None:
    assert list(read_object(b'{"z":1,"\\u0061":2,"m":3}')) == ["z", "a", "m"]


def test_a_raw_member_is_known_by_its_unescaped_name() -> None:
    assert read_object(b'{"\\u0061":1.10}', raw=frozenset({"a"})) == {"a": RawJson("1.10")}


def test_elements_of_an_array_come_as_their_text() -> None:
    assert read_elements(b' [ 1.10 ,{"a" : 1}, "x"] ') == [RawJson("1.10"), RawJson('{"a" : 1}'), RawJson('"x"')]
    assert read_elements(b"[ ]") == []
    for other in (b"{}", b"1", b"null"):
        with pytest.raises(NotAnObject):
            read_elements(other)


def test_an_error_holds_nothing_of_the_document() -> None:
    for body in (
        b'{"k":"own_SECRET"x}',
        b'{"own_SECRET":1,"own_SECRET":2}',
        b'{"k":"own_SECRET\\ud800"}',
        b"own_SECRET",
    ):
        with pytest.raises(InvalidJson) as refused:
            read_object(body)
        assert "SECRET" not in str(refused.value)
        assert refused.value.__cause__ is None
        assert refused.value.__suppress_context__ or refused.value.__context__ is None


def test_an_answer_is_compact_utf8_in_the_order_given() -> None:
    answer = {"ok": True, "é": '😀\n"\\/', "list": [1, None, False, {"x": 1.5}], "": {}}
    assert dump(answer) == '{"ok":true,"é":"😀\\n\\"\\\\/","list":[1,null,false,{"x":1.5}],"":{}}'.encode()
    assert stdlib.loads(dump(answer)) == answer


def test_raw_text_is_spliced_at_any_depth() -> None:
    raw = RawJson('{"b" : 1e400, "a":1.10}')
    answer = {"r": raw, "d": {"r": raw}, "l": [raw, [raw, {"r": raw}]], "n": Number("-0.0")}
    text = raw.text
    expected = f'{{"r":{text},"d":{{"r":{text}}},"l":[{text},[{text},{{"r":{text}}}]],"n":-0.0}}'
    assert dump(answer) == expected.encode()


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_nan_is_never_written(number: float) -> None:
    for answer in ({"a": number}, {"a": [{"b": number}]}):
        with pytest.raises(ValueError, match="not JSON compliant"):
            dump(answer)


def test_half_a_surrogate_pair_is_never_written() -> None:
    with pytest.raises(ValueError, match="surrogates"):
        dump({"a": "\ud800"})


def test_what_has_no_json_form_is_an_error_and_not_a_text() -> None:
    with pytest.raises(TypeError):
        dump({"a": b"bytes"})


scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
documents = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5), max_leaves=30
)


@settings(max_examples=400, deadline=None)
@given(value=documents, plain=st.booleans(), indent=st.sampled_from([None, 0, 2]))
def test_whatever_the_standard_library_writes_is_read_and_kept(value: object, plain: bool, indent: int | None) -> None:
    text = stdlib.dumps(value, ensure_ascii=plain, indent=indent)
    body = f'{{"value": {text} }}'.encode()
    assert read_object(body, raw=frozenset({"value"})) == {"value": RawJson(text)}
    assert stdlib.loads(dump({"value": value})) == stdlib.loads(body)


@settings(max_examples=400, deadline=None)
@given(body=st.binary(max_size=60) | st.text(alphabet='{}[]",:\\u0dD8fa1-.e \n', max_size=40).map(str.encode))
def test_any_bytes_get_a_verdict_and_never_a_crash(body: bytes) -> None:
    try:
        members = read_object(body, raw=frozenset({"a"}))
    except (InvalidJson, NotAnObject):
        return
    for value in members.values():
        if isinstance(value, RawJson):
            stdlib.loads(value.text)


@settings(max_examples=200, deadline=None)
@given(names=st.lists(st.text(min_size=1, max_size=3), min_size=2, max_size=6))
def test_names_are_refused_exactly_when_two_are_equal(names: list[str]) -> None:
    document = ",".join(f"{stdlib.dumps(name)}:[]" for name in names)
    for body in (f"{{{document}}}".encode(), f'{{"outer":[{{{document}}}]}}'.encode()):
        if any(one == other for one, other in pairwise(sorted(names))):
            with pytest.raises(InvalidJson, match="stands twice"):
                read_object(body)
        else:
            read_object(body)
