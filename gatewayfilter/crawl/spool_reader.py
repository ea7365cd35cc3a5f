"""The reader of the page spool (store/page_spool.py): judges pages that passed the proxy, without fetching them."""

import asyncio
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from gatewayfilter.crawl.fetch.url_policy import may_crawl
from gatewayfilter.crawl.links.images import page_pictures
from gatewayfilter.crawl.links.page_links import out_links
from gatewayfilter.errors import GatewayFilterError, StoreError
from gatewayfilter.interfaces import CrawlRequest, Frontier, Page, PageSink, Priority
from gatewayfilter.settings import CrawlSettings
from gatewayfilter.store.page_spool import read_page, waiting_pages
from gatewayfilter.telemetry import Counters
from gatewayfilter.urls import parse_url, redacted

_log = logging.getLogger(__name__)

_POLL_S: Final = 0.05
_STORE_PAUSE_S: Final = 1.0
_TOO_OLD_S: Final = 3600.0


class SpoolReader:
    """Judges the pages in the spool, the oldest first, and queues their links.

    Args:
        folder: the spool.
        sink: judges and learns; called in one thread.
        frontier: where links of harmful pages go.
        settings: what may be learned from: URLs that the crawler may fetch too.
        counters: `captures_classified`.
        images: whether pictures are judged.
    """

    def __init__(
        self,
        folder: Path,
        sink: PageSink,
        frontier: Frontier,
        settings: CrawlSettings,
        counters: Counters,
        images: Callable[[], bool] = lambda: False,
    ) -> None:
        self._images = images
        self._folder = folder
        self._sink = sink
        self._frontier = frontier
        self._settings = settings
        self._counters = counters

    async def run(self, stop: asyncio.Event) -> None:
        """Works until `stop` is set."""
        changed = -1
        while not stop.is_set():
            now = self._last_change()
            pause_s = _POLL_S
            if now != changed:
                done = await asyncio.to_thread(self.work_off, stop)
                changed = now if done else -1
                pause_s = _POLL_S if done else _STORE_PAUSE_S
            try:
                await asyncio.wait_for(stop.wait(), pause_s)
            except TimeoutError:
                continue

    def _last_change(self) -> int:
        try:
            return self._folder.stat().st_mtime_ns
        except OSError:
            return 0

    def work_off(self, stop: asyncio.Event | None = None) -> bool:
        """Judges all pages that wait. Returns False when database or disk refuse and some had to be left."""
        for path in waiting_pages(self._folder):
            if stop is not None and stop.is_set():
                return False
            try:
                page = read_page(path)
                if page is not None:
                    self._judge(page)
            except (StoreError, OSError) as error:
                if _is_young(path):
                    _log.warning("%s; pages that passed are judged later", error)
                    return False
            except GatewayFilterError as error:
                _log.warning("a page that passed cannot be judged: %s", error)
            except Exception:  # noqa: BLE001  none may end the reading of the others
                _log.exception("judging a page that passed failed")
            try:
                path.unlink(missing_ok=True)
            except OSError as error:  # a disk that can be read alone: nothing was learned of the page
                _log.warning("%s; pages that passed are judged later", error)
                return False
        return True

    def _judge(self, page: Page) -> None:
        if refusal := may_crawl(parse_url(page.url), self._settings):
            _log.debug("nothing is learned of %s: %s", redacted(page.url), refusal)
            return
        classification = self._sink.page(page)
        self._counters.add("captures_classified")
        if classification is None:  # its harm may stand in the request: the crawler sends another one
            self._frontier.add([CrawlRequest(page.url)], time.time())
            return
        links = out_links(page, classification.charset, self._settings) if classification.harmful else []
        if self._images():
            links += page_pictures(page, classification.charset, self._settings)
        if links:
            now = time.time()
            self._frontier.add([CrawlRequest(link.text, Priority.LINK, now) for link in links], now)


def _is_young(path: Path) -> bool:
    try:
        return time.time() - path.stat().st_mtime < _TOO_OLD_S
    except OSError:
        return False
