"""The parser as a module: pages in, pages with their classification out. Needs no database."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import replace

from gatewayfilter.crawl.modules.failures import failure_of
from gatewayfilter.crawl.modules.fetch_module import given_up
from gatewayfilter.crawl.modules.messages import CrawlMessage, MessageCodec
from gatewayfilter.crawl.net.fetch_errors import HostBusyError
from gatewayfilter.crawl.page_judge import FileReading
from gatewayfilter.errors import ClassifyError
from gatewayfilter.interfaces import Channel, Classify, Letter, Page
from gatewayfilter.model import Classification
from gatewayfilter.telemetry import Counters
from gatewayfilter.urls import redacted

_log = logging.getLogger(__name__)


class ParseModule:
    """Classifies pages. Implements `interfaces.CrawlModule`.

    Counts `pages_parsed`.

    Args:
        classify: judges.
        words: returns the version of the words that it judges by.
        codec: reads and writes messages.
        thread: beside the event loop.
        counters: where pages are counted.
    """

    def __init__(
        self, classify: Classify, words: Callable[[], str], codec: MessageCodec, thread: Executor, counters: Counters
    ) -> None:
        self._classify = classify
        self._words = words
        self._codec = codec
        self._thread = thread
        self._counters = counters
        self._files = FileReading()

    async def handle(self, value: bytes) -> Sequence[Letter]:
        """Classifies a page. Returns it for the storage."""
        message = self._codec.read(Channel.PAGES, value)
        if message.fetched is None:
            raise ValueError("the message has no page")
        page = message.fetched.page
        try:
            if 200 <= page.status < 300 and page.body and not page.content_type.startswith("image/"):
                await self._files.read(page)
                found, words = await asyncio.get_running_loop().run_in_executor(self._thread, self._classified, page)
                message = replace(message, classification=found, words=words)
        except HostBusyError as error:  # too many files wait already
            message = CrawlMessage(message.lease, failure=failure_of(error))
        except Exception as error:  # noqa: BLE001  the outermost boundary of one page: none may end the parser
            _log.error("classifying %s failed", redacted(page.url), exc_info=error)
            message = CrawlMessage(message.lease, failure=failure_of(error))
        self._counters.add("pages_parsed")
        return [self._codec.letter(Channel.RESULTS, message)]

    def given_up(self, value: bytes, reason: str) -> Sequence[Letter]:
        """Returns the failure of a page that ended parsers."""
        return given_up(self._codec, Channel.PAGES, value, reason)

    def _classified(self, page: Page) -> tuple[Classification | None, str]:
        words = self._words()
        try:
            return self._classify.classify_page(page), words
        except ClassifyError:
            return None, words
