"""Requests made from the OpenAPI document to the dashboard of a real `gatewayfilter run`, with a token of its admin."""

import json
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.core.result import Ok

from tests.e2e.e2e_gateway import ANSWER_S, COMMAND, GatewayProcess, until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

BOUND_S = 60.0
LEAST = 50
"""Requests are made, however long it takes."""
ENDLESS = {"/api/v1/events"}
"""Streams of events."""


@pytest.fixture
def running(tmp_path: Path) -> Iterator[tuple[GatewayProcess, str, str]]:
    """The filter, the address of its dashboard, and a token."""
    gateway = GatewayProcess(tmp_path / "state", proxy__workers="1", web__listen="127.0.0.1:0")
    add = [COMMAND, "user", "add", "ada", "--password-stdin"]
    subprocess.run(add, input="correct horse battery\n", env=gateway.environment, text=True, check=True, timeout=60)
    token = gateway.json("user", "token", "add", "ada", "tests", "--scope", "admin")["token"]
    with gateway:
        yield gateway, until("dashboard", lambda: gateway.status("web").get("url"), 30.0).rstrip("/"), token


def test_no_request_makes_a_server_error(running: tuple[GatewayProcess, str, str]) -> None:
    gateway, base, token = running
    headers = {"authorization": f"Bearer {token}"}
    ask = urllib.request.Request(f"{base}/api/v1/openapi.json", headers=headers)
    with urllib.request.urlopen(ask, timeout=60) as answer:
        schema = schemathesis.openapi.from_dict(json.load(answer))
    schema.config.update(base_url=base)
    failures: list[str] = []
    tried = 0
    ends = time.monotonic() + BOUND_S
    for found in schema.get_all_operations():
        assert isinstance(found, Ok)
        operation = found.ok()
        if operation.path in ENDLESS or (tried > LEAST and time.monotonic() > ends):
            continue

        @seed(2)
        @settings(max_examples=2, deadline=None, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
        @given(case=operation.as_strategy())
        def send(case: schemathesis.Case[Any]) -> None:
            nonlocal tried
            tried += 1
            answer = case.call(headers=headers, timeout=ANSWER_S)
            try:
                case.validate_response(answer, checks=[not_a_server_error])
            except FailureGroup as error:
                failures.append(f"{case.operation.label} {answer.status_code}: {error}")

        send()
    assert failures == []
    assert tried > LEAST
    assert gateway.status("proxy-0")["state"] == "serving"
    assert gateway.child("web").is_running()
