"""The reporter of unknown URLs to the crawler's queue, each once a minute at most."""

import time
from collections.abc import Callable

from gatewayfilter.config import UnknownRule
from gatewayfilter.content_encoding import media_type
from gatewayfilter.interfaces import CrawlRequest, CrawlRequestSink
from gatewayfilter.model import PAGE_TYPES, ResourceType
from gatewayfilter.proxy.request.flow_request import FlowRequest

_GUESSED = frozenset({ResourceType.OTHER, ResourceType.XMLHTTPREQUEST})
_REMEMBER_S = 60.0
_MOST_REMEMBERED = 8192
_LONGEST_URL = 2048
"""A longer URL is a message to one server rather than a page that others will visit."""


class UrlReporter:
    """Queues the URLs of unknown pages.

    Args:
        sink: the queue to the frontier.
        unknown: `proxy.unknown`. Where unknown pages wait for a verdict, frames in pages of other sites are queued too; else
            not, because any site that a user visits chooses their URLs, and they need not be visible.
        clock: monotonic seconds.
    """

    def __init__(self, sink: CrawlRequestSink, unknown: UnknownRule, clock: Callable[[], float] = time.monotonic) -> None:
        self._sink = sink
        self._frames = unknown in {UnknownRule.HOLD, UnknownRule.BLOCK}
        self._clock = clock
        self._offered: dict[str, float] = {}

    def with_frames(self) -> "UrlReporter":
        """Returns a reporter for unknown pages that wait for a verdict: it queues frames in pages of other sites, too."""
        return UrlReporter(self._sink, UnknownRule.BLOCK, self._clock)

    def queue_page(self, flow_request: FlowRequest) -> bool:
        """Queues the URL of a page; other resource types are queued by their response.

        Returns:
            Whether a verdict is to be expected: it was queued, now or in the last minute.
        """
        return flow_request.request.resource_type in PAGE_TYPES and self._offer(flow_request)

    def is_due(self, flow_request: FlowRequest) -> bool:
        """Returns whether a page may be queued, and was not in the last minute."""
        return (
            flow_request.request.resource_type in PAGE_TYPES
            and self._may(flow_request)
            and not self._lately(flow_request.request.url.text)
        )

    def mark_queued(self, flow_request: FlowRequest) -> None:
        """Counts a page as queued: it has reached the learner by another way."""
        self._remember(flow_request.request.url.text)

    def queue_html(self, flow_request: FlowRequest, content_type: str) -> None:
        """Queues a URL with a guessed resource type after its response turned out to be a page."""
        if (
            flow_request.plain_client
            and flow_request.request.resource_type in _GUESSED
            and media_type(content_type) in {"text/html", "application/xhtml+xml"}
        ):
            self._offer(flow_request)

    def _offer(self, flow_request: FlowRequest) -> bool:
        if not self._may(flow_request):
            return False
        text = flow_request.request.url.text
        if self._lately(text):
            return True
        if not self._sink.offer(CrawlRequest(text)):
            return False
        self._remember(text)
        return True

    def _may(self, flow_request: FlowRequest) -> bool:
        text = flow_request.request.url.text
        if flow_request.private or (flow_request.foreign_frame and not self._frames):
            return False
        return flow_request.request.method == "GET" and text.startswith("http") and len(text) <= _LONGEST_URL

    def _lately(self, text: str) -> bool:
        return self._clock() - self._offered.get(text, -_REMEMBER_S) < _REMEMBER_S

    def _remember(self, text: str) -> None:
        self._offered.pop(text, None)
        if len(self._offered) >= _MOST_REMEMBERED:
            del self._offered[next(iter(self._offered))]
        self._offered[text] = self._clock()
