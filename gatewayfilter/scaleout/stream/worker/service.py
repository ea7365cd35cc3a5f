"""The stream worker as a process: options, signals, metrics."""

from __future__ import annotations

import logging
import signal
from dataclasses import dataclass, field
from threading import Event
from typing import TYPE_CHECKING

from gatewayfilter.scaleout.stream.batch_process import set_up_process
from gatewayfilter.scaleout.stream.rule_set import RuleFolder
from gatewayfilter.scaleout.stream.traffic.formats import TrafficFormat, reader_of
from gatewayfilter.scaleout.stream.worker.answers import Answering
from gatewayfilter.scaleout.stream.worker.consumer import StreamWorker, Topics, WorkerOptions
from gatewayfilter.scaleout.stream.worker.meters import Meters

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    """The options of `gatewayfilter stream worker`, named as there."""

    brokers: str
    topics: tuple[str, ...]
    group: str
    rules: Path
    output: str = ""
    dead: str = ""
    counts: str = ""
    window_s: int = 60
    form: str = "jsonl"
    blocked_only: bool = False
    together: int = 1
    batch: int = 20_000
    metrics: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)


def serve(options: ServiceOptions, off_categories: tuple[str, ...] = ()) -> None:
    """Works until SIGINT or SIGTERM; the batch under way is finished.

    Raises:
        SnapshotError: there are no rules.
        GatewayFilterError: a setting of Kafka is wrong, or the address of the metrics cannot be listened on.
    """
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    stop = Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    form = TrafficFormat(options.form)
    window_s = options.window_s if options.counts else 0
    answering = Answering(reader_of(form), form is TrafficFormat.JSON, options.blocked_only, window_s, options.together)
    topics = Topics(options.topics, options.output, options.dead, options.counts)
    kafka = WorkerOptions(options.brokers, options.group, topics, options.batch, options.properties)
    set_up_process()
    meters = Meters()
    if options.metrics:
        meters.listen(options.metrics)
    StreamWorker(kafka, answering, RuleFolder(options.rules, off_categories), meters, stop).run()
