"""Metrics of the stream worker, for Prometheus."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, start_http_server

from gatewayfilter.errors import StartupError

if TYPE_CHECKING:
    from gatewayfilter.scaleout.stream.worker.answers import Answers


class Meters:
    """Counters of one worker.

    Attributes:
        outages: times that Kafka was away or refused a transaction.
        rules_refused: rule sets that could not be used.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        name = "gatewayfilter_stream"
        self._messages = Counter(f"{name}_messages", "messages answered", registry=self.registry)
        self._records = Counter(f"{name}_records", "records decided", ["action"], registry=self.registry)
        self._dead = Counter(f"{name}_dead_letters", "messages that held no request", registry=self.registry)
        self._cpu = Counter(f"{name}_cpu_seconds", "CPU time of deciding and sending", registry=self.registry)
        self._rules = Gauge(f"{name}_rules", "rules in force", ["version"], registry=self.registry)
        self.outages = Counter(f"{name}_outages", "failed transactions and connections", registry=self.registry)
        self.rules_refused = Counter(f"{name}_rules_refused", "rule sets that could not be used", registry=self.registry)

    def done(self, messages: int, answers: Answers, version: str, cpu_s: float) -> None:
        """Counts a batch that was committed."""
        self._messages.inc(messages)
        self._records.labels("block").inc(answers.blocked)
        self._records.labels("allow").inc(answers.records - answers.blocked)
        self._dead.inc(len(answers.dead))
        self._cpu.inc(cpu_s)
        self._rules.clear()
        self._rules.labels(version).set(1)

    def listen(self, address: str) -> None:
        """Serves `GET /metrics`.

        Args:
            address: `HOST:PORT`.

        Raises:
            StartupError: it cannot be listened on.
        """
        host, _, port = address.rpartition(":")
        try:
            start_http_server(int(port), host.strip("[]") or "127.0.0.1", self.registry)
        except (OSError, ValueError, OverflowError) as error:
            raise StartupError(f"cannot listen on {address}: {error}") from error
