"""The button of the block page: somebody asks the operator to unblock a page.

The form goes to a fixed path on the blocked page's own site, which the filter answers itself: there it needs no script, no
further certificate and no leave from the browser. What is asked for is judged again, so that nobody can fill the operator's list
with pages that are not blocked, and a request from another site's page does not count.
"""

from collections.abc import Callable
from typing import Final
from urllib.parse import parse_qs

from mitmproxy import http

from gatewayfilter.errors import UrlError
from gatewayfilter.interfaces import Decide, UnblockRequest
from gatewayfilter.model import Request, ResourceType
from gatewayfilter.proxy.pages.block_page import ASK_PATH, notice_response
from gatewayfilter.proxy.request.flow_request import FlowRequest
from gatewayfilter.telemetry import Counters
from gatewayfilter.urls import parse_url

MOST_BYTES: Final = 20_000
_LONGEST_COMMENT: Final = 300


class UnblockForm:
    """Takes requests from block pages.

    Args:
        decide: judges again what is asked for.
        take: puts a request on its way to the database; returns False when too many wait.
        client_of: how a client's address is written down.
        counters: `unblock_requests`.
        clock: Unix seconds.
    """

    def __init__(
        self,
        decide: Decide,
        take: Callable[[UnblockRequest], bool],
        client_of: Callable[[str], str],
        counters: Counters,
        clock: Callable[[], float],
    ) -> None:
        self._decide = decide
        self._take = take
        self._client_of = client_of
        self._counters = counters
        self._clock = clock

    @staticmethod
    def is_for_us(asked: FlowRequest) -> bool:
        """Tells whether a request is one for the desk."""
        return asked.request.url.path == ASK_PATH

    def refuse(self, asked: FlowRequest) -> http.Response | None:
        """Returns the answer to a request that is refused by its head alone, `None` for one whose body is to be read."""
        language = asked.headers.get(b"accept-language", "")
        if asked.request.method != "POST":
            return notice_response("ask-again", language, status=405)
        size = asked.headers.get(b"content-length", "")
        if not size.isdecimal() or int(size) > MOST_BYTES:
            return notice_response("ask-again", language, status=413)
        if asked.headers.get(b"sec-fetch-site", "same-origin") != "same-origin" or not _same_origin(asked):
            return notice_response("ask-again", language, status=403)
        return None

    def answer(self, asked: FlowRequest, body: bytes) -> http.Response:
        """Takes a request and says what became of it."""
        language = asked.headers.get(b"accept-language", "")
        here = asked.request.url
        try:
            form = parse_qs(body.decode("utf-8", "replace"), max_num_fields=8)
            url = parse_url(form.get("url", [""])[0])
        except (UrlError, ValueError):
            return notice_response("ask-again", language, status=400)
        if (url.scheme, url.netloc) != (here.scheme, here.netloc):
            return notice_response("ask-again", language, status=400)
        verdict = self._decide.decide(Request(url, None, ResourceType.DOCUMENT, "GET", asked.request.client))
        if not verdict.blocked:
            return notice_response("not-blocked", language, url=url.text)
        comment = " ".join(form.get("comment", [""])[0].split())[:_LONGEST_COMMENT]
        request = UnblockRequest(
            url=url.text,
            client=self._client_of(asked.request.client),
            reason=verdict.reason.value,
            source_list=verdict.source_list,
            rule=verdict.rule,
            category=verdict.category,
            comment="".join(mark for mark in comment if mark.isprintable()),
            at=self._clock(),
        )
        if not self._take(request):
            return notice_response("ask-later", language, status=503)
        self._counters.add("unblock_requests")
        return notice_response("asked", language, url=url.text)


def _same_origin(asked: FlowRequest) -> bool:
    origin = asked.headers.get(b"origin", "")
    url = asked.request.url
    return not origin or origin.lower() == f"{url.scheme}://{url.netloc}"
