"""Requests made from the OpenAPI document, good and bad ones, to a running dashboard."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import content_type_conformance, response_schema_conformance, status_code_conformance

from tests.web.web_fakes import CSRF, served

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

EXAMPLES = 3
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
ENDLESS = {"/api/v1/events"}
"""Streams of events."""


@pytest.fixture
def base(tmp_path: Path) -> Iterator[str]:
    with served(tmp_path / "state") as address:
        yield address


@pytest.mark.parametrize("mode", ["positive", "negative"])
def test_answers_are_those_of_the_document(mode: str, base: str) -> None:
    schema = schemathesis.openapi.from_url(f"{base}/api/v1/openapi.json", timeout=60)
    failures: list[str] = []
    tried = 0
    for found in schema.get_all_operations():
        assert isinstance(found, Ok)
        operation = found.ok()
        if operation.path in ENDLESS:
            continue
        if mode == "negative" and not (operation.body or operation.query or operation.path_parameters):
            continue
        strategy = operation.as_strategy(generation_mode=schemathesis.GenerationMode(mode))

        @seed(1)
        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=strategy)
        def send(case: schemathesis.Case[Any]) -> None:
            nonlocal tried
            tried += 1
            answer = case.call(headers={"x-csrf-token": CSRF}, timeout=120)
            try:
                case.validate_response(answer, checks=CHECKS)
            except FailureGroup as error:
                failures.append(f"{case.operation.label} {answer.status_code}: {error}")

        send()
    assert not failures, failures[:5]
    assert tried > 100
