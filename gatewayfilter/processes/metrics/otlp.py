"""Export of the metrics to an OpenTelemetry collector (`gatewayfilter.otlp`).

Deviation: what a collector refuses is not sent again, as the next export holds the same totals and later ones.
"""

import time
from collections.abc import Callable, Iterable
from typing import Any, Final

from prometheus_client.core import Metric

from gatewayfilter.otlp import OtlpClient, attributes, nanoseconds, resource, scope
from gatewayfilter.use_cases.metrics.exposition import StatusCollector

PATH: Final = "/v1/metrics"
_CUMULATIVE: Final = 2
_UNITS: Final = {"seconds": "s", "bytes": "By"}


class OtlpExporter:
    """Sends all metrics to a collector.

    Args:
        collector: of the metrics.
        endpoint: `http://127.0.0.1:4318`; `/v1/metrics` is appended.
        clock: Unix seconds.
    """

    def __init__(self, collector: StatusCollector, endpoint: str, clock: Callable[[], float] = time.time) -> None:
        self._collector = collector
        self._client = OtlpClient(endpoint, PATH, "metrics")
        self._clock = clock
        self._begun = clock()

    def export(self) -> bool:
        """Sends what is counted now. Returns whether the collector took it; a failure is logged when it begins."""
        return self._client.send(document(self._collector.collect(), self._begun, self._clock()))


def document(metrics: Iterable[Metric], begun: float, now: float) -> dict[str, Any]:
    """Returns an `ExportMetricsServiceRequest`.

    Args:
        metrics: of Prometheus.
        begun: since when totals are counted (Unix seconds).
        now: Unix seconds.
    """
    times = {"startTimeUnixNano": nanoseconds(begun), "timeUnixNano": nanoseconds(now)}
    found = [one for one in (_metric(metric, times) for metric in metrics) if one is not None]
    return {"resourceMetrics": [{"resource": resource(), "scopeMetrics": [{"scope": scope(), "metrics": found}]}]}


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
    points = [{"attributes": attributes(sample.labels), "asDouble": float(sample.value), **times} for sample in metric.samples]
    if metric.type == "counter":
        return found | {"sum": {"aggregationTemporality": _CUMULATIVE, "isMonotonic": True, "dataPoints": points}}
    return found | {"gauge": {"dataPoints": points}}


def _histograms(metric: Metric, times: dict[str, str]) -> list[dict[str, Any]]:
    """Returns a point for each process; buckets of Prometheus are sums of all lower ones, those of OTLP are not."""
    found: dict[str, dict[str, Any]] = {}
    for sample in metric.samples:
        process = sample.labels.get("process", "")
        point = found.setdefault(
            process, {"attributes": attributes({"process": process}), "bucketCounts": [], "explicitBounds": [], **times}
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
