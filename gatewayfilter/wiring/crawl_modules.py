"""Wiring of the crawler's modules over Kafka: `gatewayfilter crawler`."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from gatewayfilter.wiring.classification import reloading_classifier, rule_book
from gatewayfilter.wiring.crawling import crawl_context
from gatewayfilter.wiring.shared import fingerprint_key

if TYPE_CHECKING:
    import threading
    from collections.abc import AsyncIterator

    from gatewayfilter.config import Settings
    from gatewayfilter.crawl.modules.messages import MessageCodec
    from gatewayfilter.crawl.modules.scheduler import Scheduler
    from gatewayfilter.interfaces import CrawlModule, LeaseUrls, Page, SendLetters
    from gatewayfilter.model import Classification
    from gatewayfilter.store import Store
    from gatewayfilter.telemetry import Counters


def message_codec(settings: Settings) -> MessageCodec:
    """Returns what writes and reads the messages between modules.

    Raises:
        StartupError: the key cannot be read.
    """
    from gatewayfilter.crawl.modules.messages import MessageCodec
    from gatewayfilter.learn import load_key

    return MessageCodec(load_key(fingerprint_key(settings)), settings.crawl.max_bytes)


def scheduler(
    settings: Settings, store: Store, counters: Counters, leases: LeaseUrls, send: SendLetters, *, on_the_way: int
) -> Scheduler:
    """Returns the scheduler; the arguments are those of `Scheduler`."""
    from gatewayfilter.crawl import CrawlContext
    from gatewayfilter.crawl.modules.scheduler import Scheduler
    from gatewayfilter.crawl.outcomes import OutcomeHandler

    context = CrawlContext(store.frontier, _NoSink(), settings.crawl, counters, leases=leases, together=store.settling)
    return Scheduler(context, OutcomeHandler(context), send, message_codec(settings), on_the_way)


class _NoSink:
    """The sink of a scheduler, which judges nothing."""

    def page(self, page: Page) -> Classification | None:
        raise NotImplementedError(page.url)


@asynccontextmanager
async def fetch_module(settings: Settings, counters: Counters) -> AsyncIterator[CrawlModule]:
    """Opens a fetcher.

    Raises:
        ConfigError: `crawl.upstream_ca` cannot be read.
        StartupError: the key cannot be read.
    """
    from gatewayfilter.crawl.modules.fetch_module import FetchModule
    from gatewayfilter.crawl.runtime import HostState, open_fetch

    codec = message_codec(settings)
    images = settings.crawl.page_images > 0  # the storage queues pictures only where they are judged
    async with open_fetch(settings.crawl, counters, HostState(settings.crawl, counters), lambda: images) as fetch:
        yield FetchModule(fetch, codec, settings.crawl.concurrency)


@asynccontextmanager
async def parse_module(settings: Settings, counters: Counters) -> AsyncIterator[CrawlModule]:
    """Opens a parser.

    Raises:
        ClassifyError: the words cannot be used.
        StartupError: the key cannot be read.
    """
    from concurrent.futures import ThreadPoolExecutor

    from gatewayfilter.crawl.modules.parse_module import ParseModule

    judge = reloading_classifier(settings)
    with ThreadPoolExecutor(1, "crawl-judge") as thread:
        yield ParseModule(judge, judge.words_version, message_codec(settings), thread, counters)


@asynccontextmanager
async def store_module(
    settings: Settings, store: Store, counters: Counters, closing: threading.Event
) -> AsyncIterator[CrawlModule]:
    """Opens the storage.

    Raises:
        ClassifyError, ConfigError, StartupError: as `learning_sink`.
    """
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

    from gatewayfilter.crawl.modules.classified_ahead import ClassifiedAhead
    from gatewayfilter.crawl.modules.store_module import StoreModule
    from gatewayfilter.crawl.outcome_batcher import OutcomeBatcher
    from gatewayfilter.crawl.outcomes import OutcomeHandler
    from gatewayfilter.crawl.page_judge import PageJudge

    judge = reloading_classifier(settings, rule_book(settings, store))
    ahead = ClassifiedAhead(judge, judge.words_version)
    context = crawl_context(settings, store, counters, judge=judge, classify=ahead)
    outcomes = OutcomeHandler(context)
    with ThreadPoolExecutor(1, "crawl-judge") as thread, ThreadPoolExecutor(1, "crawl-queue") as queue:
        batcher = OutcomeBatcher(context, outcomes, queue, closing)
        yield StoreModule(context, ahead, PageJudge(context, thread), outcomes, batcher, message_codec(settings))
        await batcher.finish()
        await batcher.call(context.seen.save)
        if context.buffer is not None:
            await asyncio.get_running_loop().run_in_executor(thread, context.buffer.flush)
