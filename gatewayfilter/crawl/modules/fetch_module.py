"""The fetcher as a module: jobs in, pages and failures out. Needs no database."""

import logging
from collections.abc import Sequence

from gatewayfilter.crawl.fetch.fetcher import PATIENCE_S
from gatewayfilter.crawl.modules.failures import CRASHED, failure_of
from gatewayfilter.crawl.modules.messages import CrawlMessage, Failure, MessageCodec
from gatewayfilter.crawl.page_fetch import PageFetch
from gatewayfilter.errors import FetchError, UrlError
from gatewayfilter.interfaces import Channel, Letter
from gatewayfilter.urls import parse_url, redacted

_log = logging.getLogger(__name__)


class FetchModule:
    """Fetches the pages of jobs. Implements `interfaces.CrawlModule`.

    Args:
        fetch: fetches; policy, robots.txt, delays and the guard of addresses hold as in one process.
        codec: reads and writes messages.
        places: pages in flight; beyond half of them none waits for its host.
    """

    def __init__(self, fetch: PageFetch, codec: MessageCodec, places: int) -> None:
        self._fetch = fetch
        self._codec = codec
        self._places = places
        self._busy = 0

    async def handle(self, value: bytes) -> Sequence[Letter]:
        """Fetches a page. Returns it for the parsers, or its failure for the storage."""
        lease = self._codec.read(Channel.JOBS, value).lease
        patience_s = PATIENCE_S if self._busy < self._places / 2 else 0.0
        self._busy += 1
        try:
            fetched = await self._fetch.fetch(parse_url(lease.url), lease.priority, patience_s=patience_s)
        except Exception as error:  # noqa: BLE001  the outermost boundary of one page: none may end the fetcher
            if not isinstance(error, FetchError | UrlError):
                _log.error("fetching %s failed", redacted(lease.url), exc_info=error)
            return [self._codec.letter(Channel.RESULTS, CrawlMessage(lease, failure=failure_of(error)))]
        finally:
            self._busy -= 1
        return [self._codec.letter(Channel.PAGES, CrawlMessage(lease, fetched))]

    def given_up(self, value: bytes, reason: str) -> Sequence[Letter]:
        """Returns the failure of a page that ended fetchers."""
        return given_up(self._codec, Channel.JOBS, value, reason)


def given_up(codec: MessageCodec, channel: Channel, value: bytes, reason: str) -> Sequence[Letter]:
    """Returns the failure of the URL of a message, for the storage; nothing for what is no message."""
    try:
        lease = codec.read(channel, value).lease
    except ValueError:
        return []
    return [codec.letter(Channel.RESULTS, CrawlMessage(lease, failure=Failure(CRASHED, reason)))]
