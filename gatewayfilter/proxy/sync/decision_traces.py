"""Traces of decisions: a span for a share of the log's records, sent to an OpenTelemetry collector.

Spans are made of records, which the log's privacy level has reduced already: what is not logged is not traced. Clients, users,
rules and the query of a URL are left out. A span is the decision as a whole: its deciders take about a microsecond each, as much
as it costs to measure one. The event loop draws and appends; a thread makes and sends the spans.
"""

import random
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final

from gatewayfilter.model import LogRecord, host_of
from gatewayfilter.otlp import OtlpClient, attributes, nanoseconds, resource, scope
from gatewayfilter.telemetry import Counters

PATH: Final = "/v1/traces"
_EVERY_S: Final = 5.0
_MOST: Final = 2_000
"""Records that wait to be sent; beyond it they are dropped and counted."""
_STOP_S: Final = 1.0
_INTERNAL: Final = 1


class DecisionTraces:
    """Passes records on to the log, and draws those that are traced.

    Args:
        write: takes each record.
        client: sends the spans.
        share: of the records that is traced, from 0 to 1.
        counters: `traces_sent`, `traces_dropped`.
        draw: returns a number from 0 to 1.
    """

    def __init__(
        self,
        write: Callable[[LogRecord], None],
        client: OtlpClient,
        share: float,
        counters: Counters,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self._write = write
        self._client = client
        self._share = share
        self._counters = counters
        self._draw = draw
        self._waiting: deque[LogRecord] = deque()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="decision-traces", daemon=True)

    def write(self, record: LogRecord) -> None:
        """Takes a record."""
        self._write(record)
        if self._draw() < self._share:
            if len(self._waiting) < _MOST:
                self._waiting.append(record)
            else:
                self._counters.add("traces_dropped")

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Sends what waits, and ends the thread; a collector that hangs is not waited for."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(_STOP_S)

    def send(self) -> None:
        """Sends what waits. What the collector does not take is dropped and counted."""
        records = [self._waiting.popleft() for _ in range(len(self._waiting))]
        if records:
            sent = self._client.send(document(records))
            self._counters.add("traces_sent" if sent else "traces_dropped", len(records))

    def _run(self) -> None:
        while not self._stopping.wait(_EVERY_S):
            self.send()
        self.send()


def document(records: Sequence[LogRecord]) -> dict[str, Any]:
    """Returns an `ExportTraceServiceRequest` with a span for each record."""
    return {
        "resourceSpans": [
            {"resource": resource(), "scopeSpans": [{"scope": scope(), "spans": [span_of(record) for record in records]}]}
        ]
    }


def span_of(record: LogRecord) -> dict[str, Any]:
    """Returns the span of a decision, a trace of its own."""
    named: dict[str, str | int] = {
        "gatewayfilter.action": record.action,
        "gatewayfilter.reason": record.reason,
        "gatewayfilter.list": record.source_list,
        "gatewayfilter.category": record.category,
        "gatewayfilter.resource_type": record.resource_type,
        "gatewayfilter.decision_us": record.elapsed_us,
        "http.request.method": record.method,
        "server.address": host_of(record.url),
        "url.full": record.url.partition("?")[0] if "://" in record.url else "",
    }
    return {
        "traceId": f"{random.getrandbits(128):032x}",
        "spanId": f"{random.getrandbits(64):016x}",
        "name": "decision",
        "kind": _INTERNAL,
        "startTimeUnixNano": nanoseconds(record.at - record.elapsed_us / 1e6),
        "endTimeUnixNano": nanoseconds(record.at),
        "attributes": attributes({name: value for name, value in named.items() if value != ""}),
    }
