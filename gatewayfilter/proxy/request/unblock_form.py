"""The unblock form of the block page: a user requests that the operator unblocks a page.

The form is sent to a fixed path (`block_page.ASK_PATH`) on the site of the blocked page, where the filter answers it: there it
needs no script, no further certificate and no permission of the browser. The page is decided again, so that the operator's list
cannot be filled with pages that are not blocked. A request from a page of another site is refused.
"""

from collections.abc import Callable
from typing import Final
from urllib.parse import parse_qs

from mitmproxy import http

from gatewayfilter.errors import UrlError
from gatewayfilter.interfaces import Decide, UnblockRequest
from gatewayfilter.model import Request, ResourceType
from gatewayfilter.proxy.pages.block_page import BlockPages
from gatewayfilter.proxy.request.flow_request import FlowRequest
from gatewayfilter.telemetry import Counters
from gatewayfilter.urls import parse_url

MOST_BYTES: Final = 20_000
_LONGEST_COMMENT: Final = 300


class UnblockForm:
    """Takes the requests of block pages.

    Args:
        decide: decides the page again.
        take: queues a request for the database; returns False when the queue is full.
        client_of: how a client's address is written down.
        counters: `unblock_requests`.
        clock: Unix seconds.
        pages: makes the answers.
    """

    def __init__(
        self,
        decide: Decide,
        take: Callable[[UnblockRequest], bool],
        client_of: Callable[[str], str],
        counters: Counters,
        clock: Callable[[], float],
        pages: BlockPages,
    ) -> None:
        self._decide = decide
        self._take = take
        self._client_of = client_of
        self._counters = counters
        self._clock = clock
        self._pages = pages

    def refuse(self, flow_request: FlowRequest) -> http.Response | None:
        """Returns the answer to a request that is refused by its headers, `None` for one whose body is to be read."""
        language = flow_request.headers.get(b"accept-language", "")
        if flow_request.request.method != "POST":
            return self._pages.notice("ask-again", language, status=405)
        size = flow_request.headers.get(b"content-length", "")
        if not size.isdecimal() or int(size) > MOST_BYTES:
            return self._pages.notice("ask-again", language, status=413)
        if flow_request.headers.get(b"sec-fetch-site", "same-origin") != "same-origin" or not _same_origin(flow_request):
            return self._pages.notice("ask-again", language, status=403)
        return None

    def answer(self, flow_request: FlowRequest, body: bytes) -> http.Response:
        """Stores a request to unblock a page; returns the page that shows the result."""
        language = flow_request.headers.get(b"accept-language", "")
        here = flow_request.request.url
        try:
            form = parse_qs(body.decode("utf-8", "replace"), max_num_fields=8)
            url = parse_url(form.get("url", [""])[0])
        except (UrlError, ValueError):
            return self._pages.notice("ask-again", language, status=400)
        if (url.scheme, url.netloc) != (here.scheme, here.netloc):
            return self._pages.notice("ask-again", language, status=400)
        verdict = self._decide.decide(Request(url, None, ResourceType.DOCUMENT, "GET", flow_request.request.client))
        if not verdict.blocked:
            return self._pages.notice("not-blocked", language, url=url.text)
        comment = " ".join(form.get("comment", [""])[0].split())[:_LONGEST_COMMENT]
        request = UnblockRequest(
            url=url.text,
            client=self._client_of(flow_request.request.client),
            reason=verdict.reason.value,
            source_list=verdict.source_list,
            rule=verdict.rule,
            category=verdict.category,
            comment="".join(mark for mark in comment if mark.isprintable()),
            at=self._clock(),
        )
        if not self._take(request):
            return self._pages.notice("ask-later", language, status=503)
        self._counters.add("unblock_requests")
        return self._pages.notice("asked", language, url=url.text)


def _same_origin(flow_request: FlowRequest) -> bool:
    origin = flow_request.headers.get(b"origin", "")
    url = flow_request.request.url
    return not origin or origin.lower() == f"{url.scheme}://{url.netloc}"
