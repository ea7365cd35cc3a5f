"""The reference page of the API."""

from pathlib import Path

import pytest

from gatewayfilter.web.pages.system.reference import kind, operations_by_subject
from tests.web.web_fakes import dashboard


@pytest.mark.slow
def test_the_page_names_every_operation_and_each_is_described(tmp_path: Path) -> None:
    with dashboard(tmp_path) as web:
        document = web.client.get("/api/v1/openapi.json").json()
        page = web.client.get("/api")
    assert page.status_code == 200
    operations = [one for found in operations_by_subject(document).values() for one in found]
    assert len(operations) == sum(len(item) for item in document["paths"].values())
    assert [one.key for one in operations if f'id="{one.key}"' not in page.text] == []
    assert [one.key for one in operations if not one.description] == []
    fields = [(one.key, field.name) for one in operations for field in (*one.fields, *one.answer_fields) if not field.description]
    assert fields == []
    keys = [one.key for one in operations]
    assert len(keys) == len(set(keys))
    assert [key for key in keys if not key.islower() or "_" not in key or key.endswith(("_get", "_post"))] == []


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "string"}, "string"),
        ({"$ref": "#/components/schemas/Rule"}, "Rule"),
        ({"type": "array", "items": {"$ref": "#/a/Rule"}}, "list of Rule"),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "integer or null"),
        ({"enum": ["a", "b"]}, "a | b"),
        ({"const": 3}, "3"),
        ({}, "any"),
    ],
)
def test_types_in_words(schema: dict[str, object], words: str) -> None:
    assert kind(schema) == words
