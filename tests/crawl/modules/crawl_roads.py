"""The roads of a crawl: one process, modules that hand messages to each other in memory, and modules over Kafka."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from gatewayfilter.config import CrawlSettings
from gatewayfilter.crawl import CrawlContext, CrawlWorker
from gatewayfilter.crawl.modules.classified_ahead import ClassifiedAhead
from gatewayfilter.crawl.modules.fetch_module import FetchModule
from gatewayfilter.crawl.modules.messages import MessageCodec
from gatewayfilter.crawl.modules.parse_module import ParseModule
from gatewayfilter.crawl.modules.scheduler import Scheduler
from gatewayfilter.crawl.modules.store_module import StoreModule
from gatewayfilter.crawl.outcome_batcher import OutcomeBatcher
from gatewayfilter.crawl.outcomes import OutcomeHandler
from gatewayfilter.crawl.page_judge import PageJudge
from gatewayfilter.crawl.runtime import HostState, open_fetch
from gatewayfilter.interfaces import Channel, CrawlModule, Letter, Page, SendLetters
from gatewayfilter.model import Classification
from gatewayfilter.telemetry import Counters
from tests.crawl.crawl_fakes import HARMFUL, HARMLESS, FakeFrontier, FakeSink
from tests.crawl.crawl_origin import loopback_settings

NOW = 1_700_000_000.0
KEY = bytes(range(32))


class FakeClassify:
    """Satisfies `interfaces.Classify`."""

    def __init__(self) -> None:
        self.pages: list[Page] = []
        self.error: Exception | None = None

    def classify_page(self, page: Page) -> Classification:
        self.pages.append(page)
        if self.error is not None:
            raise self.error
        return HARMFUL if b"casino" in page.body else HARMLESS

    def classify_text(self, text: str) -> Classification:
        return HARMLESS


@dataclass
class Crawl:
    """What a crawl has to do with."""

    frontier: FakeFrontier
    sink: FakeSink = field(default_factory=FakeSink)
    settings: CrawlSettings = field(default_factory=loopback_settings)
    counters: Counters = field(default_factory=Counters)

    def __post_init__(self) -> None:
        self.context = CrawlContext(self.frontier, self.sink, self.settings, self.counters, clock=lambda: NOW)
        self.codec = MessageCodec(KEY, self.settings.max_bytes)

    async def settled(self, count: int) -> None:
        async with asyncio.timeout(90):
            while self.frontier.settled < count:  # noqa: ASYNC110  it ends in another thread
                await asyncio.sleep(0.005)


@contextlib.asynccontextmanager
async def modules_of(crawl: Crawl, classify: FakeClassify | None = None) -> AsyncIterator[dict[Channel, CrawlModule]]:
    """Opens a fetcher, a parser and the storage."""
    judge = classify or FakeClassify()
    images: Callable[[], bool] = lambda: False  # noqa: E731
    host_state = HostState(crawl.settings, crawl.counters, lambda: NOW)
    outcomes = OutcomeHandler(crawl.context)
    with ThreadPoolExecutor(1) as parsing, ThreadPoolExecutor(1) as judging, ThreadPoolExecutor(1) as queue:
        async with open_fetch(crawl.settings, crawl.counters, host_state, images) as fetch:
            batcher = OutcomeBatcher(crawl.context, outcomes, queue, threading.Event())
            page_judge = PageJudge(crawl.context, judging)
            yield {
                Channel.JOBS: FetchModule(fetch, crawl.codec, crawl.settings.concurrency),
                Channel.PAGES: ParseModule(judge, lambda: "v1", crawl.codec, parsing, crawl.counters),
                Channel.RESULTS: StoreModule(
                    crawl.context, ClassifiedAhead(judge, lambda: "v1"), page_judge, outcomes, batcher, crawl.codec
                ),
            }


def scheduler_of(crawl: Crawl, send: SendLetters, on_the_way: int = 100) -> Scheduler:
    return Scheduler(crawl.context, OutcomeHandler(crawl.context), send, crawl.codec, on_the_way)


class Outbox:
    """Satisfies `interfaces.SendLetters`."""

    def __init__(self) -> None:
        self.letters: list[Letter] = []

    def send(self, letters: Sequence[Letter]) -> None:
        self.letters += letters


async def in_one_process(crawl: Crawl, count: int) -> None:
    stop = asyncio.Event()
    running = asyncio.create_task(CrawlWorker(crawl.context).run(stop))
    try:
        await crawl.settled(count)
    finally:
        stop.set()
        await running


async def by_modules(crawl: Crawl, count: int, *, copies: int = 1) -> None:
    """Hands each message to its module, `copies` times."""
    outbox = Outbox()
    async with modules_of(crawl) as modules:
        await asyncio.to_thread(scheduler_of(crawl, outbox).step)
        while outbox.letters:
            letters, outbox.letters = outbox.letters * copies, []
            answers = await asyncio.gather(*(modules[letter.channel].handle(letter.value) for letter in letters))
            outbox.letters = [letter for answer in answers for letter in answer]
    await crawl.settled(count)
