"""The judging half of a visit: the verdict on a fetched page, and the links that are followed. Fetches nothing."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import Final

from gatewayfilter.crawl.buffer.classify_batcher import ClassifyBatcher
from gatewayfilter.crawl.context import CrawlContext
from gatewayfilter.crawl.links.page_links import out_links
from gatewayfilter.crawl.links.sitemap_discovery import task_links
from gatewayfilter.crawl.links.strategy import Strategy
from gatewayfilter.crawl.net.fetch_errors import HostBusyError
from gatewayfilter.crawl.page_fetch import FetchedPage
from gatewayfilter.documents.pdf_text import is_pdf, read_pdf_aside
from gatewayfilter.interfaces import Page, Priority, Validators
from gatewayfilter.model import Classification
from gatewayfilter.urls import Url

_MOST_FILES: Final = 4
"""PDF files that may wait to be read: each may take five seconds, and the places of the crawler are for pages too."""
_FILES_REST_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class VisitResult:
    """A page that was fetched and judged.

    Attributes:
        links: those that its strategy follows, as a rule of harmful pages alone, and those that an extraction rule names.
        buffered: it is in the buffer and is judged later.
        unchanged: not modified, by its origin's answer; the last verdict is renewed.
        rendered: by a browser, so its origin's validators do not cover all of it.
        task: to which it belongs, `""` for none.
        links_depth: how many links away from where the task began its links lead.
    """

    page: Page
    classification: Classification | None
    links: tuple[Url, ...]
    buffered: bool = False
    unchanged: bool = False
    rendered: bool = False
    task: str = ""
    links_depth: int = 0


@dataclass(frozen=True, slots=True)
class Target:
    """A URL to visit.

    Attributes:
        url: canonical.
        priority: see `Priority`.
        strategy: decides which links are followed.
        depth: links away from where the task began.
        validators: of the page that was judged before, for a conditional request; `None` fetches it whole.
    """

    url: Url
    priority: int
    strategy: Strategy
    depth: int = 0
    validators: Validators | None = None


class FileReading:
    """Has PDF files read outside of the judge's thread, which a file that was made to be slow would block."""

    def __init__(self) -> None:
        self._files = 0

    async def read(self, page: Page) -> None:
        """Reads the page if it is a PDF file, so that judging it takes no time.

        Raises:
            HostBusyError: too many files wait already.
        """
        if not is_pdf(page.content_type, page.body):
            return
        if self._files >= _MOST_FILES:
            raise HostBusyError("other files are read first", _FILES_REST_S)
        self._files += 1
        try:
            await asyncio.wrap_future(read_pdf_aside(page.body))
        finally:
            self._files -= 1


class PageJudge:
    """Judges fetched pages, and finds the links that are followed.

    Args:
        context: the crawler's collaborators.
        thread: beside the event loop, one, so that the sink is never called by two at a time.
    """

    def __init__(self, context: CrawlContext, thread: Executor) -> None:
        self._context = context
        self._thread = thread
        self._batcher = ClassifyBatcher(context.sink, thread)

    async def judge(self, fetched: FetchedPage, target: Target) -> VisitResult:
        """Judges a page. One of a PDF file was read by `FileReading` before.

        Raises:
            StoreError: the verdict could not be kept.
        """
        conclude = partial(self._visit_result, fetched, target)
        return await self._batcher.judge(fetched.page, conclude, urgent=target.priority <= Priority.VISIT)

    async def in_thread[T](self, work: Callable[[], T]) -> T:
        """Runs something in the judge's thread."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _visit_result(self, fetched: FetchedPage, target: Target, classification: Classification | None) -> VisitResult:
        return self.with_links(fetched, classification, target.strategy, target.depth)

    def with_links(
        self, fetched: FetchedPage, classification: Classification | None, strategy: Strategy, depth: int
    ) -> VisitResult:
        """Returns the visit of a page with this verdict. Runs in the judge's thread, right after the judgement."""
        settings, page, sitemaps, rendered = self._context.settings, fetched.page, fetched.sitemaps, fetched.rendered
        more: Sequence[Url] = ()
        if self._context.links is not None:
            more = self._context.links.links(page, classification, sitemaps)
        harmful = classification is not None and classification.harmful
        charset = classification.charset if classification is not None else ""
        links = [*out_links(page, charset, settings, strategy), *more] if strategy.follows(depth, harmful=harmful) else []
        if not strategy.task:
            return VisitResult(page, classification, tuple(links or more), rendered=rendered)
        named, next_depth = task_links(page, charset, sitemaps, strategy, depth, settings)
        return VisitResult(page, classification, (*links, *named), rendered=rendered, task=strategy.task, links_depth=next_depth)
