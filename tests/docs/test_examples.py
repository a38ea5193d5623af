"""The examples of the OpenAPI document are real answers of today, and there is one for every answer."""

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from app.wire.answers import RefusalAnswer
from app.wire.openapi import CREDIT_OPERATIONS, EXAMPLES, OPERATIONS, answers_of, document
from app.wire.schema import input_schema, output_schema
from tests.docs.examples import ROOT, record, text
from tests.real.plain import Plain

WRITTEN: dict[str, Any] = json.loads((ROOT / "templates" / EXAMPLES).read_text(encoding="utf-8"))


def lacking(examples: dict[str, Any]) -> list[str]:
    """Kinds of answers without an example that fits, and bodies that are not as their route takes them."""
    found = []
    for operation in (*OPERATIONS, *CREDIT_OPERATIONS):
        own = examples["operations"][answers_of(operation.name)]
        for status, kinds in operation.answers.items():
            given = own["answers"].get(str(status), {}).values()
            for kind in kinds:
                schema = Draft202012Validator(output_schema(kind, closed=True))
                if not any(schema.is_valid(answer) for answer in given):
                    found.append(f"{operation.name} {status} {kind.__name__}")
        if operation.members is not None:
            Draft202012Validator(input_schema(operation.members)).validate(own.get("request", {}))
    refusal = Draft202012Validator(output_schema(RefusalAnswer))
    return found + [name for name, answer in examples["responses"].items() if not refusal.is_valid(answer)]


@pytest.mark.real
def test_a_server_answers_today_as_the_examples_say() -> None:
    assert Plain().of(text(record())) == Plain().of(text(WRITTEN)), "run `make reference`"


def test_every_kind_of_answer_has_one() -> None:
    assert lacking(WRITTEN) == []


def test_an_answer_without_one_goes_red() -> None:
    bare = json.loads(json.dumps(WRITTEN))
    del bare["operations"]["lease_acquire"]["answers"]["409"]["lost"]
    bare["responses"]["NotFound"] = {"ok": False}
    assert lacking(bare) == ["lease_short 409 LostAnswer", "lease_acquire 409 LostAnswer", "NotFound"]


def test_the_document_shows_them() -> None:
    paths = document(public_url="http://a", version="1", examples=WRITTEN)["paths"]
    for path in ("/services/v1/lease", "/services/v1/lease/acquire"):
        shown = paths[path]["post"]["responses"]["409"]["content"]["application/json"]["examples"]
        assert shown["lost"]["value"]["code"] == "lease_lost"
