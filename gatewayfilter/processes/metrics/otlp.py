"""Export of the metrics by OTLP over HTTP, as JSON: to an OpenTelemetry collector.

Source: OpenTelemetry Protocol Specification 1.3, "OTLP/HTTP" and "JSON Protobuf Encoding".
Deviation: what a collector refuses is not sent again, as the next export holds the same totals and later ones.
"""

import json
import logging
import socket
import time
from collections.abc import Callable, Iterable
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, Final
from urllib.parse import urlsplit

from prometheus_client.core import Metric

from gatewayfilter import __version__
from gatewayfilter.use_cases.metrics.exposition import PREFIX, StatusCollector

PATH: Final = "/v1/metrics"
_TIMEOUT_S: Final = 10.0
_OK: Final = range(200, 300)
_CUMULATIVE: Final = 2
_UNITS: Final = {"seconds": "s", "bytes": "By"}
_log = logging.getLogger(__name__)


class OtlpExporter:
    """Sends all metrics to a collector.

    Args:
        collector: of the metrics.
        endpoint: `http://127.0.0.1:4318`; `/v1/metrics` is appended, as the specification has it.
        clock: Unix seconds.
    """

    def __init__(self, collector: StatusCollector, endpoint: str, clock: Callable[[], float] = time.time) -> None:
        self._collector = collector
        self._parts = urlsplit(endpoint)
        self._clock = clock
        self._begun = clock()
        self._failure = ""

    def export(self) -> bool:
        """Sends what is counted now. Returns whether the collector took it; a failure is logged when it begins."""
        try:
            failure = self._post(json.dumps(document(self._collector.collect(), self._begun, self._clock())).encode())
        except (OSError, HTTPException) as error:
            failure = str(error) or type(error).__name__
        if failure and not self._failure:
            _log.warning("metrics cannot be sent to %s: %s", self._parts.netloc, failure)
        elif self._failure and not failure:
            _log.info("metrics are sent to %s again", self._parts.netloc)
        self._failure = failure
        return not failure

    def _post(self, body: bytes) -> str:
        """Returns why a document was not taken, `""` when it was."""
        parts = self._parts
        kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        connection = kind(parts.hostname or "", parts.port, timeout=_TIMEOUT_S)
        try:
            connection.request("POST", parts.path.rstrip("/") + PATH, body, {"Content-Type": "application/json"})
            status = connection.getresponse().status
        finally:
            connection.close()
        return "" if status in _OK else f"HTTP status {status}"


def document(metrics: Iterable[Metric], begun: float, now: float) -> dict[str, Any]:
    """Returns an `ExportMetricsServiceRequest`.

    Args:
        metrics: of Prometheus.
        begun: since when totals are counted (Unix seconds).
        now: Unix seconds.
    """
    times = {"startTimeUnixNano": _nanoseconds(begun), "timeUnixNano": _nanoseconds(now)}
    found = [one for one in (_metric(metric, times) for metric in metrics) if one is not None]
    resource = {"service.name": PREFIX, "service.version": __version__, "host.name": socket.gethostname()}
    scope = {"scope": {"name": PREFIX, "version": __version__}, "metrics": found}
    return {"resourceMetrics": [{"resource": {"attributes": _attributes(resource)}, "scopeMetrics": [scope]}]}


def _metric(metric: Metric, times: dict[str, str]) -> dict[str, Any] | None:
    """Returns a metric, `None` for one without a value or that the resource has."""
    if not metric.samples or metric.type == "info":
        return None
    found: dict[str, Any] = {
        "name": metric.name,
        "description": metric.documentation,
        "unit": _UNITS.get(metric.name.rpartition("_")[2], "1"),
    }
    if metric.type == "histogram":
        return found | {"histogram": {"aggregationTemporality": _CUMULATIVE, "dataPoints": _histograms(metric, times)}}
    points = [{"attributes": _attributes(sample.labels), "asDouble": float(sample.value), **times} for sample in metric.samples]
    if metric.type == "counter":
        return found | {"sum": {"aggregationTemporality": _CUMULATIVE, "isMonotonic": True, "dataPoints": points}}
    return found | {"gauge": {"dataPoints": points}}


def _histograms(metric: Metric, times: dict[str, str]) -> list[dict[str, Any]]:
    """Returns a point for each process; buckets of Prometheus are sums of all lower ones, those of OTLP are not."""
    found: dict[str, dict[str, Any]] = {}
    for sample in metric.samples:
        process = sample.labels.get("process", "")
        point = found.setdefault(
            process, {"attributes": _attributes({"process": process}), "bucketCounts": [], "explicitBounds": [], **times}
        )
        if sample.name.endswith("_sum"):
            point["sum"] = float(sample.value)
        elif sample.name.endswith("_bucket"):
            below = sum(map(int, point["bucketCounts"]))
            point["bucketCounts"].append(str(int(sample.value) - below))
            if sample.labels["le"] == "+Inf":
                point["count"] = str(int(sample.value))
            else:
                point["explicitBounds"].append(float(sample.labels["le"]))
    return list(found.values())


def _attributes(labels: dict[str, str]) -> list[dict[str, Any]]:
    return [{"key": name, "value": {"stringValue": value}} for name, value in labels.items()]


def _nanoseconds(seconds: float) -> str:
    return str(int(seconds * 1e9))
