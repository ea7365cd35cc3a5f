"""OTLP over HTTP: what a receiver gets is what Prometheus reads."""

import json
import logging
import time
from collections.abc import Iterator
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from gatewayfilter.config import load
from gatewayfilter.errors import ConfigError
from gatewayfilter.processes.metrics.endpoint import run_metrics
from gatewayfilter.processes.metrics.otlp import OtlpExporter
from gatewayfilter.use_cases.metrics.exposition import StatusCollector
from tests.otlp_receiver import Receiver, receiving


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as server:
        yield server


def write(folder: Path, **facts: Any) -> None:
    (folder / "proxy-0.json").write_text(json.dumps({"pid": 1, "at": 100.0} | facts))


def metrics(taken: dict[str, Any]) -> dict[str, dict[str, Any]]:
    (resource,) = taken["resourceMetrics"]
    (scope,) = resource["scopeMetrics"]
    return {one["name"]: one for one in scope["metrics"]}


def test_a_receiver_gets_what_prometheus_reads(receiver: Receiver, tmp_path: Path) -> None:
    write(tmp_path, counters={"requests": 7}, decision_us={"5": 2, "10": 3, "inf": 1, "sum": 1_000_000}, rss_bytes=9)
    exporter = OtlpExporter(StatusCollector(tmp_path, lambda: 105.0), receiver.url, lambda: 105.0)
    assert exporter.export()
    found = metrics(receiver.taken[0])
    total = found["gatewayfilter_requests"]["sum"]
    assert (total["isMonotonic"], total["aggregationTemporality"]) == (True, 2)
    (point,) = total["dataPoints"]
    assert point["asDouble"] == 7.0
    assert point["attributes"] == [{"key": "process", "value": {"stringValue": "proxy-0"}}]
    assert point["timeUnixNano"] == "105000000000"
    memory = found["gatewayfilter_process_resident_memory_bytes"]
    assert (memory["unit"], memory["gauge"]["dataPoints"][0]["asDouble"]) == ("By", 9.0)
    (times,) = found["gatewayfilter_decision_seconds"]["histogram"]["dataPoints"]
    assert (times["count"], times["sum"]) == ("6", 1.0)
    assert len(times["bucketCounts"]) == len(times["explicitBounds"]) + 1
    assert [times["bucketCounts"][place] for place in (0, 1, 2, -1)] == ["2", "3", "0", "1"]
    assert times["explicitBounds"][:2] == [5e-06, 1e-05]
    attributes = {
        one["key"]: one["value"]["stringValue"] for one in receiver.taken[0]["resourceMetrics"][0]["resource"]["attributes"]
    }
    assert attributes["service.name"] == "gatewayfilter"
    assert attributes["service.version"]
    write(tmp_path, pid=2, counters={"requests": 2})
    exporter.export()
    (point,) = metrics(receiver.taken[1])["gatewayfilter_requests"]["sum"]["dataPoints"]
    assert point["asDouble"] == 9.0


def test_failures_are_logged_once(receiver: Receiver, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    exporter = OtlpExporter(StatusCollector(tmp_path), receiver.url)
    for status in (503, 503, 200, 200, 404):
        receiver.status = status
        assert exporter.export() == (status == 200)
    assert [record.levelname for record in caplog.records if "metrics" in record.message] == ["WARNING", "INFO", "WARNING"]
    assert len(receiver.taken) == 2


def test_a_collector_that_is_away(tmp_path: Path, receiver: Receiver) -> None:
    assert not OtlpExporter(StatusCollector(tmp_path), "http://127.0.0.1:9").export()
    assert not OtlpExporter(StatusCollector(tmp_path), f"{receiver.url}/elsewhere/").export()


@pytest.mark.parametrize(
    "url", ["collector:4318", "ftp://a/", "http://", "http://kim:secret@a:4318", "http://a:x", "http://a/?b=c"]
)
def test_no_endpoint(url: str) -> None:
    with pytest.raises(ConfigError, match="otlp"):
        load(options={"metrics.otlp": url}, environ={})


@pytest.mark.slow
def test_the_process_exports_without_listening(receiver: Receiver, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    write(tmp_path / "run", counters={"requests": 3})
    options = {"data_dir": str(tmp_path), "metrics.otlp": receiver.url, "metrics.otlp_every_s": 1.0}
    process = get_context("spawn").Process(target=run_metrics, args=(load(options=options, environ={}).settings,))
    process.start()
    try:
        for _ in range(600):
            if len(receiver.taken) >= 2:
                break
            time.sleep(0.1)
        (point,) = metrics(receiver.taken[1])["gatewayfilter_requests"]["sum"]["dataPoints"]
        assert point["asDouble"] == 3.0
    finally:
        process.terminate()
        process.join(60)
    assert process.exitcode == 0
