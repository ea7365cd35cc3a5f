"""Traces: what is drawn of the log arrives as spans, without what names a person, and a collector that is away costs nothing."""

import re
import socket
import time
from typing import Any

import pytest

from gatewayfilter.config import load
from gatewayfilter.errors import ConfigError
from gatewayfilter.model import LogRecord
from gatewayfilter.otlp import OtlpClient
from gatewayfilter.proxy.sync import decision_traces
from gatewayfilter.proxy.sync.decision_traces import PATH, DecisionTraces, document
from gatewayfilter.telemetry import Counters
from tests.otlp_receiver import receiving

RECORD = LogRecord(
    100.0,
    "192.0.2.7",
    "GET",
    "https://shop.example/basket?name=kim&card=4711",
    "document",
    "block",
    "adblock",
    "easylist",
    "||shop.example^",
    "ads",
    250,
    "kim",
)


def spans(taken: dict[str, Any]) -> list[dict[str, Any]]:
    (resource,) = taken["resourceSpans"]
    (scope,) = resource["scopeSpans"]
    return list(scope["spans"])


def named(span: dict[str, Any]) -> dict[str, str]:
    return {one["key"]: next(iter(one["value"].values())) for one in span["attributes"]}


def test_a_span_tells_the_decision_and_nobody() -> None:
    (span,) = spans(document([RECORD]))
    assert named(span) == {
        "gatewayfilter.action": "block",
        "gatewayfilter.reason": "adblock",
        "gatewayfilter.list": "easylist",
        "gatewayfilter.category": "ads",
        "gatewayfilter.resource_type": "document",
        "gatewayfilter.decision_us": "250",
        "http.request.method": "GET",
        "server.address": "shop.example",
        "url.full": "https://shop.example/basket",
    }
    assert (span["startTimeUnixNano"], span["endTimeUnixNano"]) == ("99999750000", "100000000000")
    assert re.fullmatch("[0-9a-f]{32}", span["traceId"])
    assert re.fullmatch("[0-9a-f]{16}", span["spanId"])


@pytest.mark.parametrize(("url", "shown"), [("shop.example", {"server.address": "shop.example"}), ("", {})])
def test_less_privacy_is_not_made_up(url: str, shown: dict[str, str]) -> None:
    (span,) = spans(document([RECORD._replace(url=url)]))
    assert {name: text for name, text in named(span).items() if name in {"server.address", "url.full"}} == shown


def test_a_share_is_sent_and_everything_is_logged() -> None:
    logged, counters, draws = list[LogRecord](), Counters(), iter([0.0, 0.099, 0.1, 0.9])
    with receiving() as receiver:
        traces = DecisionTraces(logged.append, OtlpClient(receiver.url, PATH, "traces"), 0.1, counters, lambda: next(draws))
        for number in range(4):
            traces.write(RECORD._replace(url=f"https://a.example/{number}"))
        traces.start()
        traces.stop()
        (taken,) = receiver.taken
    assert len(logged) == 4
    assert [named(span)["url.full"] for span in spans(taken)] == ["https://a.example/0", "https://a.example/1"]
    assert len({span["traceId"] for span in spans(taken)}) == 2
    assert counters.as_dict() == {"traces_sent": 2}


def test_what_a_collector_does_not_take_is_dropped_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decision_traces, "_MOST", 3)
    logged, counters = list[LogRecord](), Counters()
    with receiving() as receiver:
        receiver.status = 503
        traces = DecisionTraces(logged.append, OtlpClient(receiver.url, PATH, "traces"), 1.0, counters)
        for _ in range(5):
            traces.write(RECORD)
        assert counters.as_dict() == {"traces_dropped": 2}
        traces.send()
        assert counters.as_dict() == {"traces_dropped": 5}
        receiver.status = 200
        traces.write(RECORD)
        traces.send()
        traces.send()
        assert len(receiver.taken) == 1
    assert counters.as_dict() == {"traces_dropped": 5, "traces_sent": 1}
    assert len(logged) == 6


def test_a_collector_that_hangs_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decision_traces, "_STOP_S", 0.01)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        client = OtlpClient(f"http://127.0.0.1:{silent.getsockname()[1]}", PATH, "traces")
        traces = DecisionTraces(lambda _: None, client, 1.0, Counters())
        traces.write(RECORD)
        traces.start()
        began = time.monotonic()
        traces.stop()
        assert time.monotonic() - began < 5.0


@pytest.mark.parametrize("options", [{"metrics.trace_share": 0.1}, {"metrics.trace_share": 2.0, "metrics.otlp": "http://a:1"}])
def test_a_share_that_cannot_be_sent_is_refused(options: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match="trace_share"):
        load(options=options, environ={})
