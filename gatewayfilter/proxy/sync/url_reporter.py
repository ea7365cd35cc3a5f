"""Which unknown URLs are offered to the frontier, and which are not offered again yet."""

import time
from collections.abc import Callable

from gatewayfilter.config import UnknownRule
from gatewayfilter.content_encoding import media_type
from gatewayfilter.interfaces import CrawlRequest, CrawlRequestSink
from gatewayfilter.model import ResourceType
from gatewayfilter.proxy.request.flow_request import FlowRequest

_PAGES = frozenset({ResourceType.DOCUMENT, ResourceType.SUBDOCUMENT})
_GUESSED = frozenset({ResourceType.OTHER, ResourceType.XMLHTTPREQUEST})
_REMEMBER_S = 60.0
_MOST_REMEMBERED = 8192
_LONGEST_URL = 2048
"""Beyond this a URL is a message to one server rather than a page that somebody else will visit."""


class UrlReporter:
    """Offers URLs that nobody knows, each once a minute at most.

    Args:
        sink: the way to the frontier.
        unknown: what becomes of unknown pages. Where they wait for a verdict, frames in pages of other sites are offered too;
            else not, because any site that a person visits chooses their URLs, and nobody need see them.
        clock: monotonic seconds.
    """

    def __init__(self, sink: CrawlRequestSink, unknown: UnknownRule, clock: Callable[[], float] = time.monotonic) -> None:
        self._sink = sink
        self._frames = unknown in {UnknownRule.HOLD, UnknownRule.BLOCK}
        self._clock = clock
        self._offered: dict[str, float] = {}

    def offer_page(self, asked: FlowRequest) -> bool:
        """Offers the URL of a page at once; anything else waits for its response to tell what it is.

        Returns:
            Whether a verdict is to be expected: it was offered, now or in the last minute.
        """
        return asked.request.resource_type in _PAGES and self._offer(asked)

    def is_due(self, asked: FlowRequest) -> bool:
        """Tells whether the page could be offered, and was not in the last minute."""
        return asked.request.resource_type in _PAGES and self._may(asked) and not self._lately(asked.request.url.text)

    def note(self, asked: FlowRequest) -> None:
        """Takes note that the page has reached the learner by another way."""
        self._remember(asked.request.url.text)

    def offer_html(self, asked: FlowRequest, content_type: str) -> None:
        """Offers a URL whose type was a guess, now that its response turns out to be a page."""
        if (
            asked.plain_client
            and asked.request.resource_type in _GUESSED
            and media_type(content_type) in {"text/html", "application/xhtml+xml"}
        ):
            self._offer(asked)

    def _offer(self, asked: FlowRequest) -> bool:
        if not self._may(asked):
            return False
        text = asked.request.url.text
        if self._lately(text):
            return True
        if not self._sink.offer(CrawlRequest(text)):
            return False
        self._remember(text)
        return True

    def _may(self, asked: FlowRequest) -> bool:
        text = asked.request.url.text
        if asked.private or (asked.foreign_frame and not self._frames):
            return False
        return asked.request.method == "GET" and text.startswith("http") and len(text) <= _LONGEST_URL

    def _lately(self, text: str) -> bool:
        return self._clock() - self._offered.get(text, -_REMEMBER_S) < _REMEMBER_S

    def _remember(self, text: str) -> None:
        self._offered.pop(text, None)
        if len(self._offered) >= _MOST_REMEMBERED:
            del self._offered[next(iter(self._offered))]
        self._offered[text] = self._clock()
