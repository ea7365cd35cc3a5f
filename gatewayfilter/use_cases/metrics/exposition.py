"""The exposition format of Prometheus. Names follow its conventions: `gatewayfilter_requests_total{process="proxy-0"}`."""

import time
from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate
from pathlib import Path
from typing import Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from gatewayfilter import __version__
from gatewayfilter.telemetry import DECISION_BOUNDS_US, METRICS
from gatewayfilter.use_cases.metrics.status_files import TIMES, MonotoneCounters, ProcessStatus, read_children, read_processes

PREFIX: Final = "gatewayfilter"
CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_GAUGES: Final[Mapping[str, tuple[str, str]]] = {
    "rss_bytes": ("process_resident_memory_bytes", "resident memory, pages shared with other workers included"),
    "feed_seq": ("feed_seq", "newest list change in effect in this process"),
    "published_seq": ("published_seq", "newest list change in the published snapshot"),
    "snapshot_created_at": ("snapshot_created_timestamp_seconds", "when the snapshot in use was built"),
}
"""Number of a status file → name without prefix, and help."""
_BOUNDS_S: Final = (*(f"{bound / 1e6:g}" for bound in DECISION_BOUNDS_US), "+Inf")


def metric_name(counter: str) -> str:
    """Returns the name of a counter of `METRICS` in the exposition."""
    return f"{PREFIX}_{counter}_total"


class StatusCollector(Collector):
    """Collects the metrics of a state folder. Totals are kept over restarts of processes as long as the collector lives.

    Args:
        run_folder: `run/` of the state folder.
        clock: Unix seconds.
    """

    def __init__(self, run_folder: Path, clock: Callable[[], float] = time.time) -> None:
        self._run_folder = run_folder
        self._clock = clock
        self._counters = MonotoneCounters()

    def poll(self) -> list[ProcessStatus]:
        """Reads the status files: once a second, so that little is lost of what a process counts before its end."""
        processes = read_processes(self._run_folder, self._clock())
        self._counters.take(processes)
        return processes

    def collect(self) -> Iterator[Metric]:
        """Yields all metrics."""
        processes = self.poll()
        yield InfoMetricFamily(f"{PREFIX}_build", "version of the program", value={"version": __version__})
        yield from self._counter_families()
        yield from self._decision_times()
        yield from _gauges(processes)
        yield from self._children()

    def _counter_families(self) -> Iterator[Metric]:
        totals = self._counters.totals()
        for counter, meaning in METRICS.items():
            family = CounterMetricFamily(f"{PREFIX}_{counter}", meaning, labels=["process"])
            for process, values in totals.items():
                family.add_metric([process], values.get(counter, 0))
            yield family

    def _decision_times(self) -> Iterator[Metric]:
        family = HistogramMetricFamily(
            f"{PREFIX}_decision_seconds", "time from a request's head to its verdict, in a proxy worker", labels=["process"]
        )
        for process, values in self._counters.totals().items():
            numbers = accumulate(values.get(name, 0) for bound, name in TIMES.items() if bound != "sum")
            buckets = list(zip(_BOUNDS_S, numbers, strict=True))
            if buckets[-1][1]:
                family.add_metric([process], buckets, values.get(TIMES["sum"], 0) / 1e6)
        yield family

    def _children(self) -> Iterator[Metric]:
        children = read_children(self._run_folder)
        up = GaugeMetricFamily(f"{PREFIX}_process_up", "whether the process runs", labels=["process"])
        restarts = CounterMetricFamily(
            f"{PREFIX}_process_restarts", "times that the process was started again", labels=["process"]
        )
        stalls = CounterMetricFamily(
            f"{PREFIX}_process_stalls", "times that the process was killed as it hung", labels=["process"]
        )
        for child in children:
            up.add_metric([child.name], child.is_up)
            restarts.add_metric([child.name], child.restarts)
            stalls.add_metric([child.name], child.stalls)
        yield from (up, restarts, stalls)


def _gauges(processes: list[ProcessStatus]) -> Iterator[Metric]:
    age = GaugeMetricFamily(f"{PREFIX}_status_age_seconds", "seconds since the process wrote its status", labels=["process"])
    for process in processes:
        age.add_metric([process.name], process.age_s)
    yield age
    for fact, (name, meaning) in _GAUGES.items():
        family = GaugeMetricFamily(f"{PREFIX}_{name}", meaning, labels=["process"])
        for process in processes:
            if fact in process.facts:
                family.add_metric([process.name], process.facts[fact])
        yield family


def exposition(collector: StatusCollector) -> bytes:
    """Returns all metrics as text."""
    registry = CollectorRegistry()
    registry.register(collector)
    return generate_latest(registry)
