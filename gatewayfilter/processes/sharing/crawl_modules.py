"""The crawler's modules as processes over Kafka: `gatewayfilter crawler schedule|fetch|parse|store`."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import threading
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from gatewayfilter.crawl import FleetLeases
from gatewayfilter.errors import GatewayFilterError
from gatewayfilter.interfaces import Channel
from gatewayfilter.scaleout.kafka.module_runner import ModuleRunner, RunnerOptions
from gatewayfilter.scaleout.kafka.module_topics import JobSender
from gatewayfilter.scaleout.kafka.sender import KafkaSender
from gatewayfilter.telemetry import Counters, StatusFile, set_up_logging
from gatewayfilter.termination import calls_on_sigterm
from gatewayfilter.wiring import crawl_modules, open_store

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from gatewayfilter.config import Settings
    from gatewayfilter.interfaces import CrawlModule
    from gatewayfilter.scaleout.kafka.module_topics import ModuleTopics

_log = logging.getLogger(__name__)

IDLE_S: Final = 0.1
PAUSE_S: Final = 2.0
TICK_S: Final = 1.0
FLUSH_EVERY: Final = 60
"""Ticks between two writes of counts that are in memory."""
STORE_WINDOW: Final = 32


class Role(StrEnum):
    """The modules."""

    SCHEDULE = "schedule"
    FETCH = "fetch"
    PARSE = "parse"
    STORE = "store"


@dataclass(frozen=True, slots=True)
class ModuleOptions:
    """How a module runs.

    Attributes:
        topics: where the modules meet.
        partitions: of each topic that the scheduler makes.
        on_the_way: most URLs between scheduler and storage.
    """

    topics: ModuleTopics
    partitions: int = 12
    on_the_way: int = 400


def run_module(role: Role, settings: Settings, options: ModuleOptions) -> None:
    """Runs a module until SIGINT or SIGTERM.

    Raises:
        GatewayFilterError: it cannot start.
    """
    set_up_logging(settings.log.level, settings.log.format)
    asyncio.run(_run(role, settings, options))


async def _run(role: Role, settings: Settings, options: ModuleOptions) -> None:
    stop = asyncio.Event()
    counters = Counters()
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, stop.set)
    status = StatusFile(settings.data_dir / "run", f"crawl-{role}-{os.getpid()}")
    telling = asyncio.create_task(_tell(status, counters))
    try:
        with calls_on_sigterm(stop.set):
            if role is Role.SCHEDULE:
                await _schedule(settings, options, counters, stop)
            else:
                await _serve(role, settings, options, counters, stop)
    finally:
        telling.cancel()
        await asyncio.gather(telling, return_exceptions=True)
        status.remove()


async def _tell(status: StatusFile, counters: Counters) -> None:
    while True:
        status.write(state="crawling", counters=counters.as_dict())
        await asyncio.sleep(TICK_S)


async def _schedule(settings: Settings, options: ModuleOptions, counters: Counters, stop: asyncio.Event) -> None:
    topics = options.topics
    store = await asyncio.to_thread(open_store, settings, counters=counters)
    sender = KafkaSender(topics.brokers, topics.properties)
    leases = FleetLeases(store.frontier, store.crawlers, f"kafka:{topics.prefix}", counters=counters)
    alive = asyncio.create_task(leases.keep_alive(stop))
    made, away = False, ""
    try:
        send = JobSender(sender, topics)
        found = crawl_modules.scheduler(settings, store, counters, leases, send, on_the_way=options.on_the_way)
        while not stop.is_set():
            try:
                if not made:
                    await asyncio.to_thread(topics.make, options.partitions)
                    made = True
                pause_s = 0.0 if await asyncio.to_thread(found.step) else IDLE_S
                away = ""
            except GatewayFilterError as error:
                if not away:
                    counters.add("crawl_kafka_away")
                    _log.warning("no pages are sent to fetchers (%s); they wait in the queue, and it is tried again", error)
                away, pause_s = str(error), PAUSE_S
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), pause_s or 0.001)
    finally:
        alive.cancel()
        await asyncio.gather(alive, return_exceptions=True)
        await asyncio.to_thread(leases.leave)
        sender.close()
        store.close()


async def _serve(role: Role, settings: Settings, options: ModuleOptions, counters: Counters, stop: asyncio.Event) -> None:
    topics = options.topics
    channel = {Role.FETCH: Channel.JOBS, Role.PARSE: Channel.PAGES, Role.STORE: Channel.RESULTS}[role]
    window = {Role.FETCH: settings.crawl.concurrency, Role.PARSE: 8, Role.STORE: STORE_WINDOW}[role]
    async with _opened(role, settings, counters) as module:
        runner = ModuleRunner(RunnerOptions(topics, channel, f"{topics.prefix}.{role}", window), module, counters)
        await runner.run(stop)


@asynccontextmanager
async def _opened(role: Role, settings: Settings, counters: Counters) -> AsyncIterator[CrawlModule]:
    if role is Role.FETCH:
        async with crawl_modules.fetch_module(settings, counters) as module:
            yield module
        return
    if role is Role.PARSE:
        async with crawl_modules.parse_module(settings, counters) as module:
            yield module
        return
    store = await asyncio.to_thread(open_store, settings, counters=counters)
    closing = threading.Event()
    flushing = asyncio.create_task(_flush(store.flush))
    try:
        async with crawl_modules.store_module(settings, store, counters, closing) as module:
            yield module
            closing.set()
    finally:
        flushing.cancel()
        await asyncio.gather(flushing, return_exceptions=True)
        store.close()


async def _flush(flush: Callable[[], object]) -> None:
    while True:
        await asyncio.sleep(FLUSH_EVERY * TICK_S)
        with suppress(GatewayFilterError):
            await asyncio.to_thread(flush)
