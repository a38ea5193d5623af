# ruff: noqa: RUF001, E501 - the look-alikes are the point of this table
"""Every document with what this service says of it: the table of documents.py, and the rest of the ways to go wrong.

The cases are those on which public test suites show JSON parsers to differ, written anew: each faulty value stands as
a member, in an array and alone; each good one as a member. `DOCUMENTS` pairs bytes with a verdict:

- `empty`: counts as `{}`
- `object`: good JSON, one object whose members nobody knows
- `no_object`: good JSON, another value
- `invalid`: no JSON that this service reads
"""

from collections.abc import Iterator
from typing import Literal

from tests.wire.documents import BACKSLASH, EMPTY, NO_OBJECTS, REFUSED, VALUES, nested

Verdict = Literal["empty", "object", "no_object", "invalid"]

# Wherever one of these stands for a value, the document is no JSON.
FAULTY: list[bytes] = [
    # numbers that other languages write
    b"-", b"+", b"+0", b"++1", b"-+1", b"- 1", b"1-", b"1+", b"1-1", b"-2.", b"2.e3", b"2.e+3", b"2.e-3", b"0.e1", b".2e-3",
    b"-.123", b"0.3e", b"0.3e+", b"0e", b"0e+", b"0E", b"0E+", b"1.0e", b"1.0e+", b"1.0e-", b"1eE2", b"1e+-2", b"1e2.5", b"1e 2",
    b"1 .5", b"1. 5", b"012", b"-012", b"-00", b"00.5", b"0 1", b"1 000.0", b"1'000", b"0x", b"0x42", b"0X1F", b"0b1", b"0o7", b"1f",
    b"1n", b"1d", b"1j", b"1a", b"1ea", b"-1x", b"-foo", b"2.3.4", b"9.e+", b"--2.", b"1..2", b"$1", b"1%", b"#1", b"1e\xef\xbc\x91",
    b"\xe2\x88\x921", b"\xe2\x88\x9e", b"\xd9\xa1", b"1\x00", b"1\xc2\xa0", b"0.1\xe2\x80\x8b",
    # words
    b"tru", b"truE", b"TRUE", b"truefalse", b"true1", b"fals", b"False", b"nul", b"nulll", b"NULL", b"nil", b"none", b"yes",
    b"undefined", b"NaNN", b"-nan", b"INF", b"infinity", b"Infinit", b"-Infinityx", b"\xef\xbd\x8eull", b"a", b"a b", b"key", b"*", b"@",
    # strings
    b"'", b"''", b"'single'", b"`back`", b"\xe2\x80\x9ccurly\xe2\x80\x9d", b'"', b'"\\"', b'"\\', b'"\\u', b'"\\u0', b'"\\u00', b'"\\u000',
    b'"\\u00A', b'"\\uD834\\"', b'"\\uD834\\u"', b'"\\uD834\\uD"', b'"\\uqqqq"', b'"\\u\xef\xbc\x91\xef\xbc\x91\xef\xbc\x91\xef\xbc\x91"', b'"\\u12 4"',
    b'"\\ "', b'"\\\t"', b'"\\\n"', b'"\\\x00"', b'"\\v"', b'"\\e"', b'"\\N"', b'"\\1"', b'"\\8"', b'"\\ua"', b'"\\\xf0\x9f\x8c\x80"', b'"\\\xc3\xa9"',
    b'"a\x00a"', b'"\r"', b'"\x08"', b'"\x0b"', b'"\x0c"', b'"\x1b[2J"', b'"a" "b"', b'"a""b"', b'"a"b', b'a"b"', b'"a"+"b"', b'"a"\\', b"\\", b"\\u0020",
    b'u"a"', b'b"a"', b'r"a"', b'"""a"""', b'@"a"',
    # nothing, or something else in its place
    b"", b"  ", b",", b":", b";", b"=", b"-->", b"<!--x-->", b"<null>", b"(1)", b"()", b"/*x*/", b"1/*x*/", b"//x", b"1//x", b"#", b"#x\n1", b"--x",
    b"/", b"{{}}", b"function(){}", b"new Date()", b"Date(0)", b"ObjectId(1)", b"[*]", b"[-]", b"...", b"${1}", b"{{x}}", b"%s", b"\xef\xbb\xbf1", b"\xc2\xa01",
    b"\xe2\x80\xa8", b"\xe2\x81\xa0", b"\xc2\x85", b"\x00", b"\x0c1", b"\x1e1", b"\xff", b"\xc3", b"\xe5", b"\xa0", b"\xfe\xff", b"\xc0\xaf", b"\xe0\x80\x80",
    b'"\xe0\xff"', b'"\xf4\xbf\xbf\xbf"', b'"\xfc\x80\x80\x80\x80\x80"', b'"\xf0\x80\x80\x80"', b'"\xc3("', b'"\xed\xbf\xbf"', b'"a\xff"', b'"\xe6\x97\xa5\xd1\x88\xfa"',
    # arrays and objects within
    b"[", b"[1", b"[,", b"[,]", b"[,,]", b"[1,,2]", b"[1,]", b"[1,,]", b"[,1]", b"[1 true]", b"[1 1]", b"[a", b"[1:1]", b'["a":1]', b"[1}", b"[[1]", b"[3[4]]", b"[;]",
    b"[1;2]", b'["x"', b'["",', b"[\n1\n,1", b"[{}", b"[{]}", b"[}]", b"{", b"{]", b"{[]}", b"{,}", b'{"a"}', b'{"a",}', b'{"a" 1}', b'{"a"1}', b'{"a":}', b'{"a":1 2}',
    b'{"a":1,}', b'{"a":1,,}', b'{"a"::1}', b'{"a":=1}', b'{"a"=>1}', b'{"a"->1}', b'{:1}', b'{:"a"}', b'{1:1}', b'{1.5:1}', b'{true:1}', b'{null:null}', b'{a:1}',
    b"{'a':1}", b'{[]:1}', b'{{}:1}', b'{"a":1 "b":2}', b'{"a":1;"b":2}', b'{"a":1:2}', b'{"a":"b",,"c":1}', b'{"a":"b"/**/,"c":1', b'{"a":(1)}', b'{"a\x01":1}',
    b'{"a":1,"b"', b'{"a":1,"b":', b'{"a":1,"a":1}', b'{"":1,"":1}', b'{"\\u0000":1,"\\u0000":1}', b'{"\xc3\xa9":1,"\\u00e9":1}', b'{"a":1,"b":1,"\\u0061":1}',
    b'[{"a":1,"a":1}]', b'{"a":{"b":1,"c":2,"b":3}}', b"[NaN]", b'{"a":Infinity}', b"[-Infinity]", b'["\\ud800"]', b'["\\udfff\\ud800"]', b'["\\ud800\\ud800"]',
    b'["\\ud83d\\\\ude00"]', b'{"\\udc00":1}', b'["\\ud83d\\n\\ude00"]', b'["\\udbff\\u0000"]',
    b"[" * 64 + b"]" * 64, b"[" * 100, b'{"a":' * 64 + b"1" + b"}" * 64, b"[{" * 40, b'[{"":' * 200, b"[" * 3_000 + b"]" * 3_000,
]  # fmt: skip

# Wherever one of these stands for a value, the document is good.
MORE_VALUES: list[str] = [
    "-1.0e-99999", "20e1", "123e45", "123.456e78", "123.456789", "-0e-0", "0E0", "1E22", "0.00", "1.000000000000000000000000001",
    "100000000000000000000", "-123123e100000", "2e-10000", "1e5000", "18446744073709551616", "-9223372036854775808", "4294967296", "0.5e+10",
    '"asd "', '" \\u0020 "', '"\\u0012"', '"\\uFFFE"', '"\\ufdd0"', '"\\uDBFF\\uDFFE"', '"\\u200B\\u2064"', '"\\u0060\\u012a\\u12AB"', '"\\uD834\\uDd1e"', '"\\u005C"',
    '"\\u0022"', '"\\u002F"', '"\\u0026lt;script\\u0026gt;"', '"\\\\a"', '"\\\\n"', '"a/*b*/c/*d//e"', '"<!-- -->"', '"]]>"', '"${jndi:ldap://x}"', '"{{7*7}}"', "\"'; DROP TABLE x;--\"",
    '"\\u0000\\u0000"', '"\U0001f3f4\U000e0067"', '"\u202etxt.exe"', '"\ud7ff\ue000"', '"\u0080"', '"\u00ad\u200d"', '"ａｂｃ"', '"à̖"', '"\U0002f800"', '"\uff07"', '"%00%0d%0a"',
    '[""]', '["a"]', "[false]", "[null,1,\"1\",{}]", "[1\n]", " [1]", "[1] ", "[[]   ]", "[1,null,null,null,2]", "[ \t\r\n]", '[{"a":1},{"a":1}]', "[" * 62 + "]" * 62,
    '{"a":[]}', '{"a":null,"b":null}', '{"\\u0000":0}', '{"\\uD834\\uDD1E":1}', '{"a":"b","asd":"sdf"}', '{ "min": -1.0e+28, "max": 1.0e+28 }', '{"x":[{"id":"x"}],"id":"x"}',
    '{\n"a": "b"\n}', '{"constructor":{"prototype":1}}', '{"hasOwnProperty":1}', '{"$ref":"#"}', '{"$where":"1"}', '{"toString":1,"valueOf":2}', '{"@type":"x"}', '{"NaN":1}', '{"a":{},"b":{"a":{}}}',
    '{"a.b":1,"a":{"b":2}}', '{"ａ":1,"a":2}', '{"K":1,"K":2,"k":3}', '{"a":{"a":1},"A":{"a":1}}', "[" + "0," * 4_000 + "0]", "{" + ",".join(f'"m{n}":{n}' for n in range(800)) + "}",
]  # fmt: skip

TO_STORE: list[str] = [text.strip() for text in VALUES + MORE_VALUES if text != "null"]
"""Values to keep and to give back as they were spelled, each good at the second level of a document."""


def _documents() -> Iterator[tuple[bytes, Verdict]]:
    for body in EMPTY:
        yield body, "empty"
    for body in NO_OBJECTS:
        yield body, "no_object"
    for text in VALUES + MORE_VALUES:
        yield f'{{"never":{text}}}'.encode(), "object"
    for text in MORE_VALUES:
        if not text.strip().startswith("{"):
            yield f"\t{text}\r\n".encode(), "no_object"
    for body, _ in REFUSED:
        yield body, "invalid"
    for fragment in FAULTY:
        yield b'{"never":' + fragment + b"}", "invalid"
        if fragment.strip():  # an array may hold nothing, and so may a body
            yield b'{"never":[1,' + fragment + b"]}", "invalid"
    yield from ((b"[" + fragment + b"]", "invalid") for fragment in FAULTY[:60])
    for size in (1, 7, 100, 1_000):  # a document may end anywhere but where it ends
        whole = b'{"never":{"a":[1,2.5e-3,"\\ud83d\\ude00",{"b":null}],"c":"' + b"x" * size + b'"}}'
        yield whole, "object"
        yield from ((whole[:cut], "invalid") for cut in range(1, min(60, len(whole)), 3))
    for depth in (2, 10, 63, 64):
        yield nested(depth).replace(b'"a"', b'"never"'), "object"
    for tail in (
        b"\x00",
        b"\x1a",
        b"\xef\xbb\xbf",
        b"\xc2\xa0",
        b"{}",
        b"//",
        b"]",
        b"}",
        b",",
        b"null",
        BACKSLASH.encode(),
    ):
        yield b'{"never":1}' + tail, "invalid"


DOCUMENTS: tuple[tuple[bytes, Verdict], ...] = tuple(dict(_documents()).items())
