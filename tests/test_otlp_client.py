"""Documents for a collector of OpenTelemetry: what is sent, what counts as taken, and what the log tells of it."""

import http.client
import json
import socket
from http.client import BadStatusLine
from types import SimpleNamespace
from typing import Any

import pytest

from gatewayfilter import __version__, otlp
from gatewayfilter.otlp import OtlpClient, attributes, nanoseconds


class Connections:
    """Stands in for a collector: what it was sent, and its next answers."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked = list[tuple[Any, ...]]()
        self.answers = list[int | Exception]()
        self.closed = 0
        for scheme, name in (("http", "HTTPConnection"), ("https", "HTTPSConnection")):
            monkeypatch.setattr(http.client, name, lambda *to, scheme=scheme, **options: self.open(scheme, *to, **options))

    def open(self, scheme: str, host: str, port: int | None, timeout: float) -> Any:
        def request(method: str, path: str, body: bytes, headers: dict[str, str]) -> None:
            self.asked.append((scheme, host, port, timeout, method, path, json.loads(body), headers))

        def close() -> None:
            self.closed += 1

        return SimpleNamespace(request=request, getresponse=self.answer, close=close)

    def answer(self) -> Any:
        found = self.answers.pop(0)
        if isinstance(found, Exception):
            raise found
        return SimpleNamespace(status=found)


def test_a_document_is_posted_to_the_path_of_its_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Connections(monkeypatch)
    found.answers = [200, 200]
    assert OtlpClient("https://collector:4318/otel/", "/v1/traces", "traces").send({"a": 1})
    assert OtlpClient("http://127.0.0.1", "/v1/metrics", "metrics").send({})
    json_only = {"Content-Type": "application/json"}
    assert found.asked == [
        ("https", "collector", 4318, 10.0, "POST", "/otel/v1/traces", {"a": 1}, json_only),
        ("http", "127.0.0.1", None, 10.0, "POST", "/v1/metrics", {}, json_only),
    ]
    assert found.closed == 2


def test_a_failure_is_logged_when_it_begins_and_when_it_ends(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    found = Connections(monkeypatch)
    found.answers = [199, 200, 299, 300, OSError(111, "Connection refused"), BadStatusLine("x"), 204, TimeoutError(), 200]
    client = OtlpClient("http://collector:4318", "/v1/metrics", "metrics")
    with caplog.at_level("INFO"):
        taken = [client.send({}) for _ in range(9)]
    assert taken == [False, True, True, False, False, False, True, False, True]
    assert caplog.messages == [
        "metrics cannot be sent to collector:4318: HTTP status 199",
        "metrics are sent to collector:4318 again",
        "metrics cannot be sent to collector:4318: HTTP status 300",
        "metrics are sent to collector:4318 again",
        "metrics cannot be sent to collector:4318: TimeoutError",
        "metrics are sent to collector:4318 again",
    ]
    assert found.closed == 9


def test_forms_of_values() -> None:
    assert attributes({"a": "x", "b": 7}) == [
        {"key": "a", "value": {"stringValue": "x"}}, {"key": "b", "value": {"intValue": "7"}},
    ]  # fmt: skip
    assert nanoseconds(1.5) == "1500000000"
    assert otlp.scope() == {"name": "gatewayfilter", "version": __version__}
    named = {one["key"]: one["value"]["stringValue"] for one in otlp.resource()["attributes"]}
    assert named == {"service.name": "gatewayfilter", "service.version": __version__, "host.name": socket.gethostname()}
