"""The offers of unknown pages to the crawler, each once a minute at most."""

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from gatewayfilter.interfaces import CrawlRequest, CrawlRequestSink
from gatewayfilter.model import PAGE_TYPES, Request, ResourceType
from gatewayfilter.urls import registrable_domain

_REMEMBER_S: Final = 60.0
_MOST_REMEMBERED: Final = 8_192
_LONGEST_URL: Final = 2_048
"""A longer URL is a message to one server rather than a page that others will visit."""


class UnknownPages:
    """Queues the URLs of unknown pages.

    Args:
        sink: the queue to the frontier.
        clock: monotonic seconds.
    """

    def __init__(self, sink: CrawlRequestSink, clock: Callable[[], float] = time.monotonic) -> None:
        self._sink = sink
        self._clock = clock
        self._offered: OrderedDict[str, float] = OrderedDict()

    def offer(self, request: Request, *, frames: bool) -> bool:
        """Queues a page.

        Args:
            request: of the page; other types than pages, and other methods than GET, are passed over.
            frames: frames in pages of other sites are queued too: they wait for their verdict.

        Returns:
            Whether it was queued now.
        """
        text = request.url.text
        if request.resource_type not in PAGE_TYPES or request.method != "GET" or len(text) > _LONGEST_URL:
            return False
        if not text.startswith("http") or (not frames and _is_foreign_frame(request)):
            return False
        now = self._clock()
        if now - self._offered.get(text, -_REMEMBER_S) < _REMEMBER_S or not self._sink.offer(CrawlRequest(text)):
            return False
        self._offered.pop(text, None)
        if len(self._offered) >= _MOST_REMEMBERED:
            self._offered.popitem(last=False)
        self._offered[text] = now
        return True


def _is_foreign_frame(request: Request) -> bool:
    if request.resource_type is not ResourceType.SUBDOCUMENT:
        return False
    source = request.source
    return source is None or registrable_domain(source.host) != registrable_domain(request.url.host)
